"""Exams: the reserved questions of an epoch, the same for every node under a charter and never trained on.

They are drawn from the whole split `test`. Its first questions, on which each node measures its own policy, are as rare here as
all others.
"""

import hashlib
import threading
from collections import Counter, OrderedDict

import msgspec

from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId, split_of
from waggle.tasks.sandbox.verifier import Verifier

QUESTIONS = 16  # the largest size of a group; a quarter of the completions of a usual round
EXAMINER = b"exam"  # takes the place of an origin; shorter than every peer id
BATCH = 32  # questions generated at a time; about one of twenty is in the split `test`
MOST_BATCHES = 32  # for one specialty: some settings have few different questions
EXAMS_CACHED = 4  # the exams of this, the last and the next epoch, and one more


class Exam(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of an epoch: fewer than 16 if the charter's settings have too few different reserved questions."""

    epoch: int
    questions: tuple[Question, ...]

    @property
    def digest(self) -> bytes:
        """SHA-256 of the questions: nodes that generate others have another digest."""
        questions = "\0".join(f"{question.dataset}|{question.text}" for question in self.questions)
        return hashlib.sha256(questions.encode()).digest()


def exam_of(verifier: Verifier, charter: Charter, epoch: int) -> Exam:
    """The exam of an epoch. Specialties take turns, and the next epoch continues where this one stops."""
    names = [specialty.dataset for specialty in charter.specialties]
    counts = Counter(names[(epoch * QUESTIONS + place) % len(names)] for place in range(QUESTIONS))
    questions = [
        question for name, count in counts.items() for question in _reserved_questions(verifier, charter, name, epoch, count)
    ]
    return Exam(epoch=epoch, questions=tuple(questions))


class Exams:
    """A cache of recent exams. Thread-safe."""

    def __init__(self, verifier: Verifier, charter: Charter) -> None:
        self._verifier, self._charter = verifier, charter
        self._lock = threading.Lock()
        self._exams: OrderedDict[int, Exam] = OrderedDict()

    def of(self, epoch: int) -> Exam:
        """The exam of an epoch. The first call for it takes about a second."""
        with self._lock:
            if epoch not in self._exams:
                self._exams[epoch] = exam_of(self._verifier, self._charter, epoch)
            if len(self._exams) > EXAMS_CACHED:
                self._exams.popitem(last=False)
            return self._exams[epoch]


def _reserved_questions(verifier: Verifier, charter: Charter, dataset: str, epoch: int, count: int) -> list[Question]:
    questions: dict[str, Question] = {}
    levels = len(charter.specialties[charter.position(dataset)].levels)
    for batch in range(MOST_BATCHES):
        numbers = range(batch * BATCH, (batch + 1) * BATCH)
        ids = [QuestionId(dataset, epoch, number, number % levels) for number in numbers]
        for question in verifier.questions([question_id.key(charter.digest, EXAMINER) for question_id in ids]):
            if split_of(dataset, question.text) == "test":
                questions.setdefault(question.text, question)
        if len(questions) >= count:
            break
    return list(questions.values())[:count]
