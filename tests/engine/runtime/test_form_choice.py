"""Test how the model's prompt form is chosen: by the setting, for the starter, from an earlier trial, or by a new one."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from waggle.core.errors import Stopped
from waggle.engine.runtime import form_choice
from waggle.protocol.events import PromptFormChoice
from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams, nothing
from waggle.sapo.fakes import FakePolicy, FakeSwarm, FakeTokenizer
from waggle.sapo.prompt_form import FORMS
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

RULES = RoundSettings(max_new=40)
TRIAL = PromptFormChoice(form="example", why="trial", readable=17, total=24)


class ChatTokenizer(FakeTokenizer):
    """A tokenizer of a model that was trained to chat."""

    has_chat_template = True


class TaughtByExample(FakePolicy):
    """Writes the answer tags if the prompt shows them."""

    def __init__(self) -> None:
        super().__init__(["Four.", "<answer>4</answer>"])

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        has_example = [re.search(r"<answer>(?! and )[^<]", FakeTokenizer().decode(prompt)) for prompt in prompts]
        return super().sample(prompts, np.array([[0.9 if tags else 0.1] for tags in has_example]), params)


@pytest.fixture
def node(verifier: Verifier) -> Node:
    return Node(
        policy=TaughtByExample(), tokenizer=FakeTokenizer(), swarm=FakeSwarm(), verifier=verifier, charter=first_swarm(),
        origin=b"m" * 38, seed=7,
    )  # fmt: skip


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The file of an earlier trial."""
    path = tmp_path / "prompt_form.json"
    path.write_bytes(msgspec.json.encode(form_choice.StoredChoice(form=TRIAL.form, readable=TRIAL.readable, total=TRIAL.total)))
    return path


@pytest.mark.parametrize("is_starter", [True, False])
def test_the_setting_wins(node: Node, stored: Path, is_starter: bool) -> None:
    choice = form_choice.settled_form("example_opened", is_starter, node, stored)
    assert choice == PromptFormChoice(form="example_opened", why="setting")
    assert form_choice.form_of(choice) is FORMS["example_opened"]


def test_the_starter_is_asked_in_the_form_that_it_was_trained_on(node: Node, stored: Path) -> None:
    assert form_choice.settled_form("auto", True, node, stored) == PromptFormChoice(form="plain", why="starter")


def test_the_form_of_an_earlier_trial_is_used_again(node: Node, stored: Path) -> None:
    assert form_choice.settled_form("auto", False, node, stored) == TRIAL


@pytest.mark.parametrize("content", [b"", b"{", b'{"form":"example"}', b'{"form":"rhyme","readable":1,"total":2}', b"\xff"])
def test_after_a_damaged_file_the_forms_are_tried_again(node: Node, stored: Path, content: bytes) -> None:
    stored.write_bytes(content)
    assert form_choice.settled_form("auto", False, node, stored) is None


def test_without_a_file_the_forms_are_tried(node: Node, tmp_path: Path) -> None:
    assert form_choice.settled_form("auto", False, node, tmp_path / "prompt_form.json") is None


def test_a_model_without_a_chat_template_is_never_asked_in_a_chat(node: Node, stored: Path) -> None:
    assert form_choice.settled_form("chat_example", False, node, stored) == TRIAL, "as if nothing was set"
    stored.write_bytes(stored.read_bytes().replace(b'"example"', b'"chat"'))  # of another model that stood in this folder
    assert form_choice.settled_form("auto", False, node, stored) is None
    chatting = replace(node, tokenizer=ChatTokenizer())
    assert form_choice.settled_form("chat_example", False, chatting, stored) == PromptFormChoice(
        form="chat_example", why="setting"
    )
    assert form_choice.settled_form("auto", False, chatting, stored) == msgspec.structs.replace(TRIAL, form="chat")


def test_a_trial_finds_the_form_whose_answers_can_be_read_and_is_stored(node: Node, verifier: Verifier, tmp_path: Path) -> None:
    file = tmp_path / "models" / "Qwen--x" / "prompt_form.json"
    questions = [*verifier.held_out("bf", "dev", 3), *verifier.held_out("basic_arithmetic", "dev", 3)]
    choice = form_choice.try_form(node, RULES, questions, file, nothing)
    assert choice == PromptFormChoice(form="example", why="trial", readable=6, total=6)
    assert form_choice.settled_form("auto", False, node, file) == choice


def test_a_trial_in_which_nothing_can_be_read_is_made_again(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "prompt_form.json"
    assert form_choice.try_form(node, RULES, [], file, nothing).readable == 0
    assert form_choice.settled_form("auto", False, node, file) is None


def test_a_trial_that_is_stopped_stores_nothing(node: Node, verifier: Verifier, tmp_path: Path) -> None:
    def stop() -> None:
        raise Stopped("now")

    with pytest.raises(Stopped):
        form_choice.try_form(node, RULES, verifier.held_out("bf", "dev", 2), tmp_path / "prompt_form.json", stop)
    assert list(tmp_path.iterdir()) == []
