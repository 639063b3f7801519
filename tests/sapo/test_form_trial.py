"""The trial of prompt forms: each form is put to the policy as it would be in training, and readable answers are counted."""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
import pytest

from sapo.test_prompt_form import ChatTokenizer
from sapo.test_round import node
from waggle.core.errors import Stopped
from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams
from waggle.sapo.fakes import FakePolicy, FakeTokenizer
from waggle.sapo.form_trial import best_form, try_forms
from waggle.sapo.prompt_form import FORMS
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.sandbox.verifier import Verifier

RULES = RoundSettings(max_new=60)


class Imitator(FakePolicy):
    """A policy that writes an answer in tags only if it was shown one, and goes on after an open tag."""

    def __init__(self, *, needs_opening: bool = False) -> None:
        super().__init__(("just words",))
        self._needs_opening = needs_opening
        self.prompts: list[str] = []
        self.noise: list[bytes] = []

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        params.pause_point()
        texts = [FakeTokenizer().decode(prompt) for prompt in prompts]
        self.prompts += texts
        self.noise.append(uniforms.tobytes())
        return [[self._say(np.append(FakeTokenizer().encode(self._answer(text)), np.int32(0)), params.max_new)] for text in texts]

    def _answer(self, prompt: str) -> str:
        if prompt.endswith("<answer>"):
            return "7</answer>"
        has_example = re.search(r"<answer>(?! and )[^<]+</answer>", prompt)
        return "<answer>7</answer>" if has_example and not self._needs_opening else "just words"


class Obedient(Imitator):
    """A policy that always writes an answer in tags."""

    def _answer(self, prompt: str) -> str:
        return "7</answer>" if prompt.endswith("<answer>") else "<answer>7</answer>"


def trying(verifier: Verifier, policy: Imitator, *, chat: bool = False) -> Node:
    return dataclasses.replace(node(verifier), policy=policy, tokenizer=ChatTokenizer() if chat else FakeTokenizer())


@pytest.mark.parametrize("chat", [False, True])
def test_a_model_that_needs_an_example_gets_one_and_no_more_help(verifier: Verifier, chat: bool) -> None:
    questions = verifier.held_out("binary_matrix", "dev", 6)
    trials = try_forms(trying(verifier, Imitator(), chat=chat), RULES, questions)
    assert [(trial.readable, trial.total) for trial in trials] == [(0, 6), (6, 6), (6, 6)]
    assert [trial.lengths for trial in trials] == [(), (19,) * 6, (11,) * 6], "with a stop token, and without the opened tag"
    assert best_form(trials).name == ("chat_example" if chat else "example")


def test_an_answer_after_an_open_tag_is_read_with_it(verifier: Verifier) -> None:
    policy = Imitator(needs_opening=True)
    trials = try_forms(trying(verifier, policy), RULES, verifier.held_out("binary_matrix", "dev", 6))
    assert [trial.readable for trial in trials] == [0, 0, 6]
    assert best_form(trials).prefill == "<answer>"


def test_each_form_asks_the_same_questions_with_noise_of_its_own(verifier: Verifier) -> None:
    questions, policy = verifier.held_out("bf", "dev", 6), Imitator()
    me = trying(verifier, policy)
    trials = try_forms(me, RULES, questions)
    expected = [
        FakeTokenizer().decode(dataclasses.replace(me, form=trial.form).prompt(each)) for trial in trials for each in questions
    ]
    assert policy.prompts == expected
    assert len(set(policy.noise)) == len(trials) == 3
    assert me.form is FORMS["plain"], "the node is as it was"


def test_a_form_that_is_too_long_for_the_model_does_not_win_though_it_would_help(verifier: Verifier) -> None:
    questions = verifier.held_out("binary_matrix", "dev", 6)
    longest = max(len(FORMS["plain"].text(question.text)) for question in questions)
    narrow = dataclasses.replace(RULES, context=longest + RULES.max_new)
    trials = try_forms(trying(verifier, Obedient()), narrow, questions)
    assert trials[0].total == trials[0].readable == 6
    assert trials[-1].total < 6
    assert best_form(trials) is FORMS["plain"]


def test_a_stop_is_heard_during_the_trial(verifier: Verifier) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        try_forms(trying(verifier, Imitator()), RULES, verifier.held_out("bf", "dev", 2), pause_point=stop)
