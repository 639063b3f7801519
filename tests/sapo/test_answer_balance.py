"""A party may not teach answers more one-sided than the questions of a level."""

from collections import Counter

import pytest

from waggle.sapo.answer_balance import PARTY_WINDOW, AnswerBalance, taught_answer
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def group_with(answer: str, number: int = 0, reward: float = 1.0) -> JudgedGroup:
    texts = (f"<answer>{answer}</answer>", "nothing")
    verdicts = (Verdict(reward=reward, reason="", start=8, length=len(answer)), Verdict(reward=0.0, reason=""))
    return JudgedGroup(
        group=Group(
            origin=b"o",
            id=QuestionId("calendar", 1, number),
            completions=tuple(Completion(text=text, ended=True) for text in texts),
        ),
        question=Question(dataset="calendar", seed=number, text="?"),
        verdicts=verdicts,
    )


def learned(balance: AnswerBalance, parties: tuple[str, ...], answers: tuple[str, ...], rounds: int) -> Counter[str]:
    """Offer these answers again and again from each party; count those that are learned."""
    counts: Counter[str] = Counter()
    for i in range(rounds):
        group, party = group_with(answers[i % len(answers)], i), parties[i % len(parties)]
        if balance.allows(group, party):
            balance.record(group, party)
            counts[taught_answer(group) or ""] += 1
    return counts


@pytest.fixture
def balance() -> AnswerBalance:
    return AnswerBalance(lambda level: DAYS * 36)


def test_a_party_that_teaches_as_the_questions_are_is_hardly_refused(balance):
    counts = learned(balance, ("p",), DAYS, 700)
    assert sum(counts.values()) > 0.97 * 700


def test_one_answer_alone_is_soon_refused(balance):
    assert learned(balance, ("p",), ("Friday",), 1000)["friday"] <= 4


@pytest.mark.parametrize("senders", [1, 4])
def test_an_answer_hidden_among_others_stays_near_its_share(balance, senders):
    honest = tuple(f"h{i}" for i in range(4))
    counts: Counter[str] = Counter()
    for i in range(4000):
        for party, answer in ((honest[i % 4], DAYS[i % 7]), (f"s{i % senders}", "Friday")):
            group = group_with(answer, i)
            if balance.allows(group, party):
                balance.record(group, party)
                counts[answer] += 1
    assert counts["Friday"] / counts.total() < 2 * (1 / 7)
    assert counts.total() - counts["Friday"] > 0.8 * 4000 * 6 / 7, "honest answers are still learned"


def test_levels_have_their_own_answers():
    balance = AnswerBalance(lambda level: ("Yes", "No") * 128 if level == ("calendar", 0) else DAYS * 36)
    assert learned(balance, ("p",), ("Yes", "No"), 100).total() > 95


def test_an_answer_that_the_sample_lacks_is_rare_but_allowed(balance):
    assert 1 <= learned(balance, ("p",), ("17",), PARTY_WINDOW)["17"] <= 2


def test_a_level_of_many_answers_is_not_slowed_down():
    numbers = tuple(str(i * 37 % 60) for i in range(600))
    assert learned(AnswerBalance(lambda level: numbers[:256]), ("p", "r"), numbers, 600).total() > 0.95 * 600


def test_a_group_without_a_right_answer_teaches_none(balance):
    assert taught_answer(group_with("Friday", reward=0.5)) is None
    assert balance.allows(group_with("Friday", reward=0.5), "p")
