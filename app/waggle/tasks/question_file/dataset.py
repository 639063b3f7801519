"""A file of questions as a dataset of the verifier's child."""

from typing import Any

from waggle.tasks.graders import graders
from waggle.tasks.question_file.description import QuestionFile
from waggle.tasks.question_file.packed import unpack


class FileDataset:
    """The rows of a packed file: a seed picks one. Raises QuestionFileError for a file that breaks a rule."""

    def __init__(self, packed: bytes, file: QuestionFile) -> None:
        self.rows = unpack(packed, file)
        self._grader = graders()[file.grader]
        self._tolerance = file.tolerance

    def entry(self, seed: int) -> dict[str, Any]:
        """A question with its true answer, in the form of reasoning-gym."""
        row = self.rows[seed % len(self.rows)]
        return {"question": row.question, "answer": row.answer, "metadata": {}}

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        """The method by which datasets of reasoning-gym score."""
        return self._grader.score(answer, entry["answer"], self._tolerance)
