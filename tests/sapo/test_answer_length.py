"""The answer length: what a model's readable answers needed, with a margin, within bounds."""

import pytest

from sapo.test_form_trial import trying
from waggle.sapo.answer_length import ENOUGH, FLOOR, is_too_low, needed_limit, tokens_needed
from waggle.sapo.fakes import FakePolicy
from waggle.sapo.prompt_form import FORMS, Prompter, WorkedExample
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import Completion

QUESTION = Question(dataset="bf", seed=1, text="How much?")


@pytest.mark.parametrize(
    ("text", "form", "tokens"),
    [
        ("<answer>7</answer>", "plain", 18 + 1),
        ("So <answer>7</answer> and on it talks, for long.", "plain", 21 + 1),
        ("<answer>7</answer> and more", "example_opened", 10 + 1),  # the opening tag is the prompt's
    ],
)
def test_an_answer_needs_its_tokens_up_to_the_closing_tag_and_a_stop_token(verifier, text, form, tokens):
    """A token of the fake tokenizer is a character."""
    node = trying(verifier, FakePolicy(("",)))
    prompter = Prompter(FORMS[form], node.tokenizer, lambda level: WorkedExample("One?", "1"))
    assert tokens_needed(prompter, QUESTION, Completion(text=text, ended=False)) == tokens


@pytest.mark.parametrize(
    ("lengths", "limit"),
    [
        ([30] * 20, 48),  # 1.5 times 30 is 45
        ([30] * 19 + [400], 48),  # one of twenty rambles
        ([30] * 18 + [100] * 2, 152),
        ([3] * 20, FLOOR),
        ([200] * 20, 160),
        ([30] * ENOUGH, 48),
        ([30] * (ENOUGH - 1), 0),
        ([], 0),
    ],
)
def test_the_limit_has_room_for_nearly_all_readable_answers(lengths, limit):
    assert needed_limit(lengths, 160) == limit


@pytest.mark.parametrize(
    ("readable", "cut", "in_trial", "low"),
    [
        (60, 4, 0.9, False),
        (60, 64, 0.9, False),  # it goes on after its answer
        (20, 40, 0.9, False),
        (10, 50, 0.9, True),
        (24, 40, 0.4, False),  # as in the trial
        (3, 61, 0.4, True),
        (20, 64, 1.0, True),
        (0, 0, 1.0, False),  # short, and without tags
    ],
)
def test_it_is_too_low_if_many_more_are_cut_off_unread_than_when_it_was_learned(readable, cut, in_trial, low):
    assert is_too_low(64, readable, cut, in_trial) is low
