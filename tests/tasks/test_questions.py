"""Question ids, seeds and splits."""

import pytest

from waggle.tasks.questions import QuestionId, epoch_at, split_of

ME, CHARTER = b"m" * 38, b"c" * 32
QUESTION = QuestionId("bf", 100, 5)


def test_an_epoch_is_ten_minutes():
    assert epoch_at(0) == epoch_at(599.9) == 0
    assert epoch_at(600) == 1


@pytest.mark.parametrize(
    ("charter", "origin", "question"),
    [
        (CHARTER, b"y" * 38, QUESTION),
        (b"d" * 32, ME, QUESTION),
        (CHARTER, ME, QuestionId("bf", 101, 5)),
        (CHARTER, ME, QuestionId("bf", 100, 6)),
        (CHARTER, ME, QuestionId("bf", 100, 5, level=1)),
        (CHARTER, ME, QuestionId("arc_1d", 100, 5)),
    ],
)
def test_every_part_of_an_id_changes_the_seed(charter: bytes, origin: bytes, question: QuestionId) -> None:
    assert QUESTION.key(CHARTER, ME).seed != question.key(charter, origin).seed
    assert 0 <= question.key(charter, origin).seed < 2**63


def test_parts_of_a_seed_cannot_be_shifted_into_each_other():
    assert QuestionId("bf", 1, 11).key(CHARTER, ME).seed != QuestionId("bf", 11, 1).key(CHARTER, ME).seed


def test_about_a_tenth_of_all_questions_is_reserved_by_content():
    splits = [split_of("bf", f"question {i}") for i in range(4000)]
    assert 0.08 < 1 - splits.count("train") / 4000 < 0.125
    assert 0.03 < splits.count("dev") / 4000 < 0.07
    assert split_of("bf", "question 1") == split_of("bf", "question 1")
