"""The exam: the reserved questions that every epoch names under a charter, the same for everybody and never trained on.

They are of the part that reports may use (`test`), drawn anew from the whole of it: the first ones of it, which every node
measures itself by at home, come up here as seldom as any other.
"""

import hashlib
import threading
from collections import Counter, OrderedDict

import msgspec

from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionId, seed_of, split_of
from waggle.tasks.sandbox.verifier import Verifier

QUESTIONS = 16  # as many answers as one group may have: a quarter of what a usual round writes
EXAMINER = b"exam"  # in the place of an origin: no peer id is as short
LOOKED = 32  # questions made at a time; one in twenty is reserved for reports
MOST = 32  # such looks for one specialty
EXAMS_CACHED = 4  # exams: that of now, of before and after, and one more


class Exam(msgspec.Struct, frozen=True, kw_only=True):
    """Fewer than 16 questions where the charter's settings do not make so many different ones that are reserved."""

    epoch: int
    questions: tuple[Question, ...]

    @property
    def digest(self) -> bytes:
        """sha256 of what is asked: whoever makes other questions shows it by this."""
        questions = "\0".join(f"{question.dataset}|{question.text}" for question in self.questions)
        return hashlib.sha256(questions.encode()).digest()


def exam_of(verifier: Verifier, charter: Charter, epoch: int) -> Exam:
    """The exam of an epoch: its specialties take turns, from one epoch to the next as well."""
    names = [specialty.dataset for specialty in charter.specialties]
    counts = Counter(names[(epoch * QUESTIONS + place) % len(names)] for place in range(QUESTIONS))
    questions = [question for name, count in counts.items() for question in _reserved(verifier, charter, name, epoch, count)]
    return Exam(epoch=epoch, questions=tuple(questions))


class Exams:
    """The exams of now, each made once. Thread-safe."""

    def __init__(self, verifier: Verifier, charter: Charter) -> None:
        self._verifier, self._charter = verifier, charter
        self._lock = threading.Lock()
        self._exams: OrderedDict[int, Exam] = OrderedDict()

    def of(self, epoch: int) -> Exam:
        """Takes a second where it is made first."""
        with self._lock:
            if epoch not in self._exams:
                self._exams[epoch] = exam_of(self._verifier, self._charter, epoch)
            if len(self._exams) > EXAMS_CACHED:
                self._exams.popitem(last=False)
            return self._exams[epoch]


def _reserved(verifier: Verifier, charter: Charter, dataset: str, epoch: int, count: int) -> list[Question]:
    questions: dict[str, Question] = {}
    for look in range(MOST):
        ids = [QuestionId(dataset, epoch, look * LOOKED + i) for i in range(LOOKED)]
        for question in verifier.questions([(dataset, seed_of(charter.digest, EXAMINER, question_id)) for question_id in ids]):
            if split_of(dataset, question.text) == "test":
                questions.setdefault(question.text, question)
        if len(questions) >= count:
            break
    return list(questions.values())[:count]
