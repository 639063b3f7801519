"""A party may not teach answers more one-sided than the questions of a level."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from waggle.sapo.answer_balance import PARTY_WINDOW, AnswerBalance
from waggle.sapo.question_mix import Level
from waggle.tasks.questions import Question, QuestionId, QuestionKey
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def seed_of(answer: str, number: int) -> int:
    """The seed of a question with this true answer."""
    return int.from_bytes(answer.encode(), "big") * 10_000 + number


def answers_of(keys: Sequence[QuestionKey]) -> list[str]:
    truths = (key.seed // 10_000 for key in keys)
    return [truth.to_bytes((truth.bit_length() + 7) // 8, "big").decode() for truth in truths]


def sample_of(answers: Sequence[str]) -> Callable[[Level], list[QuestionKey]]:
    return lambda level: [QuestionKey(level[0], seed_of(answer, i), level[1]) for i, answer in enumerate(answers)]


def balance_of(answers: Sequence[str]) -> AnswerBalance:
    """With a level whose questions have these answers."""
    return AnswerBalance(answers_of, sample_of(answers))


def group_with(answer: str, number: int = 0, reward: float = 1.0, text: str = "") -> JudgedGroup:
    """A group about a question with this true answer; its completion writes it in another form if there is a `text`."""
    texts = (f"<answer>{text or answer}</answer>", "nothing")
    verdicts = (Verdict(reward=reward, reason="", start=8, length=len(text or answer)), Verdict(reward=0.0, reason=""))
    return JudgedGroup(
        group=Group(
            origin=b"o",
            id=QuestionId("calendar", 1, number),
            completions=tuple(Completion(text=text, ended=True) for text in texts),
        ),
        question=Question(dataset="calendar", seed=seed_of(answer, number), text="?"),
        verdicts=verdicts,
    )


def learned(balance: AnswerBalance, parties: tuple[str, ...], answers: tuple[str, ...], rounds: int) -> Counter[str]:
    """Offer these answers again and again from each party; count those that are learned."""
    counts: Counter[str] = Counter()
    for i in range(rounds):
        group, party = group_with(answers[i % len(answers)], i), parties[i % len(parties)]
        if balance.allows(group, party):
            balance.record(group, party)
            counts[answers[i % len(answers)]] += 1
    return counts


@pytest.fixture
def balance() -> AnswerBalance:
    return balance_of(DAYS * 36)


def test_another_spelling_is_no_other_answer(balance):
    allowed = 0
    for i in range(256):
        group = group_with("Friday", i, text=("Friday", "friday.", "FRIDAY", "Frid ay", "\uff26riday")[i % 5])
        if balance.allows(group, "p"):
            balance.record(group, "p")
            allowed += 1
    assert allowed <= 4


def test_the_answers_of_many_groups_are_asked_for_at_once():
    asked_for: list[int] = []

    def answers(keys: Sequence[QuestionKey]) -> list[str]:
        asked_for.append(len(keys))
        return answers_of(keys)

    balance = AnswerBalance(answers, sample_of(DAYS))
    groups = [group_with(DAYS[i % 7], i) for i in range(50)]
    for _ in range(2):
        balance.read(groups)
        assert all(balance.allows(group, "p") for group in groups)
    assert asked_for == [50, 7], "the questions, and the sample of their level"


def test_a_party_that_teaches_as_the_questions_are_is_hardly_refused(balance):
    counts = learned(balance, ("p",), DAYS, 700)
    assert sum(counts.values()) > 0.97 * 700


def test_one_answer_alone_is_soon_refused(balance):
    assert learned(balance, ("p",), ("Friday",), 1000)["Friday"] <= 4


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
    balance = AnswerBalance(
        answers_of, lambda level: sample_of(("Yes", "No") * 128 if level == ("calendar", 0) else DAYS * 36)(level)
    )
    assert learned(balance, ("p",), ("Yes", "No"), 100).total() > 95


def test_an_answer_that_the_sample_lacks_is_rare_but_allowed(balance):
    assert 1 <= learned(balance, ("p",), ("17",), PARTY_WINDOW)["17"] <= 2


def test_a_level_of_many_answers_is_not_slowed_down():
    numbers = tuple(str(i * 37 % 60) for i in range(600))
    assert learned(balance_of(numbers[:256]), ("p", "r"), numbers, 600).total() > 0.95 * 600


def test_a_group_without_a_right_answer_teaches_none(balance):
    for _ in range(1000):
        balance.record(group_with("Friday", reward=0.5), "p")
    assert balance.allows(group_with("Friday"), "p")
    assert balance.allows(group_with("Friday", reward=0.5), "p")


def test_what_was_taught_is_remembered_by_another_one(balance):
    for i, party in enumerate(("10.0.0.0", b"o" * 38) * 20):
        balance.record(group_with(DAYS[i % 7], i), party)
    balance.record(group_with("Friday"), b"o" * 38)
    other = balance_of(DAYS * 36)
    other.record(group_with("Sunday"), "someone else")
    other.restore(balance.state())
    assert other.state() == balance.state()
    for i in range(300):  # beyond the windows
        group, party = group_with("Friday", 100 + i), ("10.0.0.0", b"o" * 38)[i % 2]
        assert other.allows(group, party) == balance.allows(group, party)
        other.record(group, party)
        balance.record(group, party)
    assert other.state() == balance.state()
