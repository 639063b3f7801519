"""Exams: reserved questions, the same on every node, and others in every epoch."""

from collections import Counter

import msgspec

from waggle.tasks.questions import split_of
from waggle.tasks.sandbox.exam import QUESTIONS, Exams, exam_of
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm


def test_an_exam_asks_reserved_questions_of_every_specialty(verifier: Verifier) -> None:
    charter = first_swarm()
    exam = exam_of(verifier, charter, 7)
    assert len(exam.questions) == QUESTIONS
    assert len({question.text for question in exam.questions}) == QUESTIONS
    assert {split_of(question.dataset, question.text) for question in exam.questions} == {"test"}
    assert set(Counter(question.dataset for question in exam.questions)) == {
        specialty.dataset for specialty in charter.specialties
    }


def test_everybody_makes_the_same_exam_and_the_next_epoch_another(verifier: Verifier) -> None:
    charter = first_swarm()
    exam, same, next_ = (exam_of(verifier, charter, epoch) for epoch in (7, 7, 8))
    assert (exam, exam.digest) == (same, same.digest)
    assert exam.digest != next_.digest
    elsewhere = exam_of(verifier, msgspec.structs.replace(charter, name="Another"), 7)
    assert elsewhere.digest != exam.digest


def test_over_epochs_each_specialty_is_asked_as_often(verifier: Verifier) -> None:
    charter = msgspec.structs.replace(first_swarm(), specialties=first_swarm().specialties[:3])
    counts = Counter(question.dataset for epoch in range(3) for question in exam_of(verifier, charter, epoch).questions)
    assert set(counts.values()) == {QUESTIONS}


def test_an_exam_is_made_once(verifier: Verifier) -> None:
    exams = Exams(verifier, first_swarm())
    assert exams.of(3) is exams.of(3)
