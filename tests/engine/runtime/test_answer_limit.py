"""Test how long answers may be: as set, as usual, as the trial found; and that a limit that proves too low grows and stays so."""

from pathlib import Path

import msgspec
import pytest

from waggle.engine.runtime import form_choice
from waggle.engine.runtime.answer_limit import ROUNDS, AnswerLimit, answer_length
from waggle.engine.runtime.form_choice import StoredChoice
from waggle.protocol.events import AnswerLength, PromptFormChoice, RoundSummary

TRIAL = PromptFormChoice(form="chat", why="trial", readable=22, total=24)
STORED = StoredChoice(form="chat", readable=22, total=24, answer_tokens=40)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of an earlier trial."""
    path = tmp_path / "prompt_form.json"
    form_choice.store(path, STORED)
    return path


def round_of(*, readable: int = 60, cut: int = 0) -> RoundSummary:
    return RoundSummary(round=0, at=0.0, reward=0.1, solved=0.1, seconds=1.0, completions=64, readable=readable, cut=cut)


def test_a_trial_decides_unless_a_person_did(file: Path) -> None:
    assert answer_length(0, 160, TRIAL, file) == AnswerLength(tokens=40, why="trial")
    assert answer_length(96, 96, TRIAL, file) == AnswerLength(tokens=96, why="setting")
    assert answer_length(0, 32, TRIAL, file) == AnswerLength(tokens=32, why="trial"), "what the model can read is less now"


@pytest.mark.parametrize(
    ("form", "stored"),
    [
        (PromptFormChoice(form="plain", why="starter"), STORED),
        (TRIAL, msgspec.structs.replace(STORED, answer_tokens=0)),
        (PromptFormChoice(form="chat_example", why="setting"), STORED),
        (TRIAL, None),
    ],
)
def test_without_a_trial_of_this_form_it_is_as_usual(tmp_path: Path, form: PromptFormChoice, stored: StoredChoice | None) -> None:
    path = tmp_path / "prompt_form.json"
    if stored is not None:
        form_choice.store(path, stored)
    assert answer_length(0, 160, form, path) == AnswerLength(tokens=160, why="usual")


def test_a_file_of_an_earlier_version_has_no_length(tmp_path: Path) -> None:
    path = tmp_path / "prompt_form.json"
    path.write_bytes(b'{"form":"chat","readable":17,"total":24}')
    assert answer_length(0, 160, TRIAL, path) == AnswerLength(tokens=160, why="usual")


def test_many_answers_that_are_cut_off_raise_it_and_a_restart_keeps_that(file: Path) -> None:
    limit = AnswerLimit(answer_length(0, 160, TRIAL, file), 160, file)
    raised = []
    for _ in range(3 * ROUNDS):
        raised.append(limit.review(round_of(readable=4, cut=60)))
    assert raised[: ROUNDS - 1] == [None] * (ROUNDS - 1), "not after a few rounds"
    assert [length for length in raised if length] == [AnswerLength(tokens=tokens, why="raised") for tokens in (80, 160)]
    assert answer_length(0, 160, TRIAL, file) == AnswerLength(tokens=160, why="raised")
    assert form_choice.read(file) == msgspec.structs.replace(STORED, answer_tokens=160, raised=True)


def test_answers_that_are_read_though_they_go_on_leave_it_as_it_is(file: Path) -> None:
    limit = AnswerLimit(answer_length(0, 160, TRIAL, file), 160, file)
    assert not any(limit.review(round_of(readable=58, cut=64)) for _ in range(3 * ROUNDS))


@pytest.mark.parametrize("why", ["setting", "usual"])
def test_what_no_trial_found_is_never_changed(file: Path, why: str) -> None:
    limit = AnswerLimit(AnswerLength(tokens=40, why=why), 160, file)
    assert not any(limit.review(round_of(readable=0, cut=64)) for _ in range(3 * ROUNDS))
