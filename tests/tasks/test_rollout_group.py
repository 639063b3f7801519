"""A judged group: its identity, and what a node pays its own completions for the form of an answer."""

import msgspec
import pytest

from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict, has_form
from waggle.tasks.sandbox.verifier_process import last_answer

RIGHT = "<answer>7</answer>"
TAGGED = "<answer>8</answer>"


def verdict_of(text: str, reward: float) -> Verdict:
    start, stop = last_answer(text) or (0, 0)
    return Verdict(reward=reward, reason="", start=start, length=stop - start)


def judged(*answers: tuple[str, float], form_pay: float = 0.25) -> JudgedGroup:
    completions = tuple(Completion(text=text, ended=True) for text, _ in answers)
    return JudgedGroup(
        group=Group(origin=b"o" * 38, id=QuestionId("bf", 5, 1), completions=completions),
        question=Question(dataset="bf", seed=1, text="?"),
        verdicts=tuple(verdict_of(text, reward) for text, reward in answers),
        form_pay=form_pay,
    )


def test_in_a_group_without_a_right_answer_a_wrong_one_in_its_tags_is_paid_and_nothing_else() -> None:
    group = judged((TAGGED, 0.0), ("8", 0.0), (f"so {TAGGED} it is", 0.0), ("<answer>8", 0.0))
    assert group.rewards == (0.0, 0.0, 0.0, 0.0), "verdicts stay what they are"
    assert group.lesson_rewards == (0.25, 0.0, 0.25, 0.0)


def test_beside_a_right_answer_nothing_is_paid_for_the_form() -> None:
    group = judged((TAGGED, 0.0), (RIGHT, 1.0), ("8", 0.05))
    assert group.lesson_rewards == group.rewards == (0.0, 1.0, 0.05)


def test_a_wrong_answer_that_its_scorer_pays_more_keeps_that_and_a_crumb_is_replaced() -> None:
    assert judged((TAGGED, 0.5), (TAGGED, 0.05), ("8", 0.0)).lesson_rewards == (0.5, 0.25, 0.0)


def test_a_group_without_form_pay_as_one_of_a_peer_learns_from_its_verdicts() -> None:
    group = judged((TAGGED, 0.0), ("8", 0.0), form_pay=0.0)
    assert group.lesson_rewards == group.rewards
    assert JudgedGroup(group=group.group, question=group.question, verdicts=group.verdicts).form_pay == 0.0


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (TAGGED, True),
        (f"First I think.\n{TAGGED}", True),
        ("<answer></answer>", False),
        ("<answer> \n</answer>", False),
        (f"{TAGGED}{TAGGED}", False),
        (f"<answer>{TAGGED}", False),
        (f"{TAGGED}</answer>", False),
        ("</answer>8<answer>", False),
        ("<answer>8", False),
        ("8", False),
        ("", False),
    ],
)
def test_the_form_is_one_pair_of_tags_around_something(text: str, has: bool) -> None:
    assert has_form(Completion(text=text, ended=True), verdict_of(text, 0.0)) is has


def test_a_group_is_its_origin_epoch_and_number_whatever_it_asks() -> None:
    group = judged((RIGHT, 1.0))
    other = msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, id=QuestionId("gcd", 5, 1, level=2)))
    assert group.key == other.key == (b"o" * 38, 5, 1)
    for changed in (QuestionId("bf", 6, 1), QuestionId("bf", 5, 2)):
        assert msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, id=changed)).key != group.key
