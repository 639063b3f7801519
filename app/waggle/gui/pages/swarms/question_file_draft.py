"""A file of questions in the form that creates a swarm: what was chosen for it, and what the engine found in it."""

import asyncio
from dataclasses import dataclass

import msgspec

from waggle.protocol.commands import NewQuestionFile, PreviewQuestions, new_id
from waggle.protocol.events_questions import GraderOffer, QuestionsPreviewed

LONGEST_TITLE = 40  # characters, as in a charter


@dataclass
class QuestionFileDraft:
    """What the engine knows of it comes in two steps: it reads the file, then the own model tries some of its questions.

    `title` is None until a person types one. An empty `grader` is guessed. `refusal`: why the engine read nothing. `answer` is
    the awaited one.
    """

    path: str
    title: str | None = None
    grader: str = ""
    tolerance: float = 0.0
    preview: QuestionsPreviewed | None = None
    offers: tuple[GraderOffer, ...] = ()
    refusal: str = ""
    is_reading: bool = True
    is_trying: bool = False
    answer: asyncio.Future[QuestionsPreviewed] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the newest preview is of the file as it would be created now."""
        return self.preview is not None and not self.is_reading

    @property
    def problem(self) -> str:
        """Why no swarm can be created from the file, in the engine's words; empty if it is not known to be unusable."""
        if self.refusal or not self.is_settled or self.preview is None:
            return self.refusal
        return self.preview.refusal

    def read_again(self) -> None:
        """Read the file again. An awaited answer does not count any more."""
        self.refusal, self.answer = "", None
        self.is_reading, self.is_trying = True, False

    def grade_by(self, grader: str, tolerance: float) -> None:
        """Grade in another way, and read the file again."""
        if (grader, tolerance) != (self.grader, self.tolerance):
            self.grader, self.tolerance = grader, tolerance
            self.read_again()

    def command(self) -> PreviewQuestions:
        """The command for the present step."""
        return PreviewQuestions(
            id=new_id(), path=self.path, grader=self.grader, tolerance=self.tolerance, try_model=not self.is_reading
        )

    def take(self, preview: QuestionsPreviewed) -> None:
        """Take the answer to the command of the present step."""
        self.preview = preview
        self.is_reading, self.is_trying = False, self.is_reading and not preview.refusal
        if not preview.refusal:
            self.grader, self.tolerance, self.offers = preview.grader, preview.tolerance, preview.possible_graders

    def refuse(self, words: str) -> None:
        """The engine refused the command of the present step. After a trial the file itself can still be used."""
        if self.is_trying and self.preview is not None:
            self.preview = msgspec.structs.replace(self.preview, trial_refusal=words)
        else:
            self.refusal = words
        self.is_reading = self.is_trying = False

    def new_file(self) -> NewQuestionFile:
        """The file for CreateSwarm."""
        return NewQuestionFile(path=self.path, title=self.shown_title.strip(), grader=self.grader, tolerance=self.tolerance)

    @property
    def shown_title(self) -> str:
        """The title that a person typed, or else the one that the engine suggests."""
        return self.title if self.title is not None else self.preview.title if self.preview else ""
