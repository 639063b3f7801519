"""The audit of one level finds what is wrong with it: a fake dataset with one fault at a time, and real ones."""

import pytest

from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import Verdict
from waggle_lab.truth import level
from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.level import audit_level, swarm_seed
from waggle_lab.truth.oracles import oracles


def exact(text: str, key: str) -> float:
    return float(text.strip() == key)


class FakeVerifier:
    """A dataset whose answer to "Double N" is 2 N, with keys and scores that a test chooses."""

    key = staticmethod(lambda number: str(2 * number))
    score = staticmethod(exact)

    def __init__(self, charter, *, datasets):
        self.closed = False

    def questions(self, keys):
        return [Question(dataset=dataset, seed=seed, text=f"Double {seed % 997}") for dataset, seed, _ in keys]

    def answers(self, keys):
        return [self.key(seed % 997) for _, seed, _ in keys]

    def judge(self, items):
        rewards = []
        for question, completion in items:
            answer = completion.text.removeprefix("<answer>").removesuffix("</answer>")
            rewards.append(self.score(answer, self.key(question.seed % 997)))
        return [Verdict(reward=reward, reason="") for reward in rewards]

    def close(self):
        self.closed = True


def doubling(question: str, key: str) -> bool:
    words = question.split()
    if len(words) != 2 or words[0] != "Double":
        raise UnreadableQuestion(question)
    return key == str(2 * int(words[1]))


@pytest.fixture
def audit_fake(monkeypatch):
    """Audit 300 questions of the fake dataset, with other keys or another scorer."""

    def audit(*, oracle=doubling, **faults):
        monkeypatch.setattr(level, "Verifier", type("Faulty", (FakeVerifier,), {k: staticmethod(v) for k, v in faults.items()}))
        return audit_level("fake", "easy", {"setting": 1}, seeds=300, oracle=oracle)

    return audit


def test_a_sound_level_has_nothing_against_it(audit_fake):
    report = audit_fake()
    assert report.reasons == []
    assert (report.truth, report.questions, report.checked, report.unpaid_keys) == ("checked", 300, 300, 0)
    assert report.altered > 1000
    assert report.altered_paid == ()


def test_false_keys_are_counted_with_examples(audit_fake):
    report = audit_fake(key=lambda number: "0" if number % 10 == 3 else str(2 * number))
    assert 10 < report.false_keys < 60
    assert len(report.false_examples) == 3
    assert all(example.key == "0" for example in report.false_examples)
    assert f"{report.false_keys} of 300 keys are false" in report.reasons


def test_questions_that_an_oracle_does_not_understand_are_not_checked(audit_fake):
    def halting(question: str, key: str) -> bool:
        return doubling("Treble 1" if question.endswith("1") else question, key)

    report = audit_fake(oracle=halting)
    assert report.unreadable > 0
    assert report.checked == 300 - report.unreadable
    assert report.unreadable_examples[0].text == "Treble 1"


def test_without_an_oracle_nothing_is_checked(audit_fake):
    report = audit_fake(oracle=None, key=lambda number: "0")
    assert (report.truth, report.checked, report.false_keys) == ("unchecked", 0, 0)


def test_a_constant_that_wins_is_found(audit_fake):
    report = audit_fake(oracle=None, key=lambda number: "Yes" if number % 10 else "No")
    assert report.constant == "Yes"
    assert 0.85 < report.constant_reward < 0.95
    assert any("the constant 'Yes' earns" in reason for reason in report.reasons)


def test_words_that_win_whatever_the_key_are_found(audit_fake):
    report = audit_fake(oracle=None, key=lambda number: "Yes" if number % 2 else "No", score=lambda text, key: float(key in text))
    assert (set(report.constant.replace(" or ", " ").split()), report.constant_reward) == ({"Yes", "No"}, 1.0)


def test_pay_for_words_beside_the_key_is_found_and_pay_in_part_too(audit_fake):
    report = audit_fake(score=lambda text, key: float(key in text.split()))
    paid = {paid.alteration: paid for paid in report.altered_paid}
    assert paid["words before"].right == 1.0
    assert "a digit added behind" not in paid
    report = audit_fake(score=lambda text, key: 1.0 if text == key else 0.5 * (key in text))
    paid = {paid.alteration: paid for paid in report.altered_paid}
    assert (paid["a digit added behind"].right, paid["a digit added behind"].partial) == (0.0, 1.0)


def test_a_crumb_is_no_pay(audit_fake):
    assert audit_fake(score=lambda text, key: 1.0 if text == key else 0.2).altered_paid == ()


def test_an_altered_key_that_is_true_may_be_paid(audit_fake):
    def is_even(text: str, _: str) -> bool:
        return text.isdecimal() and int(text) % 2 == 0

    report = audit_fake(oracle=lambda question, key: is_even(key, ""), score=is_even)
    assert report.altered_paid == ()
    report = audit_fake(oracle=None, score=is_even)
    assert any(paid.right for paid in report.altered_paid)


def test_refused_forms_and_unpaid_keys_are_counted(audit_fake):
    report = audit_fake(score=lambda text, key: float(text == key and not key.endswith("4")))
    assert report.unpaid_keys == pytest.approx(60, abs=30)
    assert {refused.form for refused in report.equivalent_refused} >= {"white space around", "a period behind", "a trailing zero"}


def test_seeds_are_as_large_as_those_of_a_swarm():
    seeds = [swarm_seed("fake", index) for index in range(100)]
    assert len(set(seeds)) == 100
    assert (1 << 60) < max(seeds) < (1 << 63)


def test_false_keys_of_a_real_dataset_are_caught():
    report = audit_level("power_function", "any", {}, seeds=40, oracle=oracles()["power_function"])
    assert report.checked == 40
    assert 0 < report.false_keys < 30
    assert "^" in report.false_examples[0].question


def test_a_constant_and_too_few_questions_of_a_real_dataset_are_caught():
    report = audit_level("count_bits", "any", {"min_n": 7, "max_n": 7}, seeds=20, oracle=oracles()["count_bits"])
    assert (report.constant, report.constant_reward, report.distinct) == ("3", 1.0, 1)
    assert report.false_keys == 0
    assert report.reasons == ["the constant '3' earns 1.00", "only 1 of 20 questions differ"]
