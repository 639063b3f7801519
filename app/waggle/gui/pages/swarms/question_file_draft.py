"""A file of questions in the form that creates a swarm: what was chosen for it, and what the engine found in it."""

from dataclasses import dataclass

import msgspec

from waggle.protocol.commands import NewQuestionFile, PreviewQuestions, new_id
from waggle.protocol.events_questions import GraderOffer, QuestionsPreviewed

LONGEST_TITLE = 40  # characters, as in a charter


@dataclass
class QuestionFileDraft:
    """Only the answer to the newest command about the file counts: `reading` and `trying` are the ids of the awaited ones.

    `title` is None until a person types one. An empty `grader` is guessed. `refusal`: why the engine read nothing.
    """

    path: str
    title: str | None = None
    grader: str = ""
    tolerance: float = 0.0
    preview: QuestionsPreviewed | None = None
    offers: tuple[GraderOffer, ...] = ()
    refusal: str = ""
    reading: str = ""
    trying: str = ""
    wants_reading: bool = True
    wants_trial: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the newest preview is of the file as it would be created now."""
        return self.preview is not None and not (self.wants_reading or self.reading)

    @property
    def problem(self) -> str:
        """Why no swarm can be created from the file, in the engine's words; empty if it is not known to be unusable."""
        if self.refusal or not self.is_settled or self.preview is None:
            return self.refusal
        return self.preview.refusal

    def read_again(self) -> None:
        """Read the file again. Awaited answers do not count any more."""
        self.refusal, self.reading, self.trying = "", "", ""
        self.wants_reading, self.wants_trial = True, False

    def grade_by(self, grader: str, tolerance: float) -> None:
        """Grade in another way, and read the file again."""
        if (grader, tolerance) != (self.grader, self.tolerance):
            self.grader, self.tolerance = grader, tolerance
            self.read_again()

    def reading_command(self) -> PreviewQuestions:
        """The command that reads the file; its answer is awaited."""
        self.reading, self.wants_reading = new_id(), False
        return self._command(self.reading, try_model=False)

    def trial_command(self) -> PreviewQuestions:
        """The command that lets the model try some questions; its answer is awaited."""
        self.trying, self.wants_trial = new_id(), False
        return self._command(self.trying, try_model=True)

    def take(self, preview: QuestionsPreviewed) -> bool:
        """Take the answer to an awaited command; returns whether it was one."""
        if not preview.command_id or preview.command_id not in (self.reading, self.trying):
            return False
        was_tried = preview.command_id == self.trying
        self.preview, self.reading, self.trying = preview, "", ""
        self.wants_trial = not was_tried and not preview.refusal
        if not preview.refusal:
            self.grader, self.tolerance, self.offers = preview.grader, preview.tolerance, preview.possible_graders
        return True

    def handle_refusal(self, words: str, command: str) -> bool:
        """The engine refused a command; returns whether it was an awaited one."""
        if not command or command not in (self.reading, self.trying):
            return False
        if command == self.trying and self.preview is not None:  # the file itself can be used
            self.preview = msgspec.structs.replace(self.preview, trial_refusal=words)
        else:
            self.refusal = words
        self.reading, self.trying = "", ""
        return True

    def postpone(self, command: str = "") -> bool:
        """An awaited answer, or (empty) every one, will not come: ask again later. Returns whether one was awaited."""
        lost_reading = bool(self.reading) and command in ("", self.reading)
        lost_trial = bool(self.trying) and command in ("", self.trying)
        if lost_reading:
            self.reading, self.wants_reading = "", True
        if lost_trial:
            self.trying, self.wants_trial = "", True
        return lost_reading or lost_trial

    def new_file(self) -> NewQuestionFile:
        """The file for CreateSwarm."""
        return NewQuestionFile(path=self.path, title=self.shown_title.strip(), grader=self.grader, tolerance=self.tolerance)

    @property
    def shown_title(self) -> str:
        """The title that a person typed, or else the one that the engine suggests."""
        return self.title if self.title is not None else self.preview.title if self.preview else ""

    def _command(self, command_id: str, *, try_model: bool) -> PreviewQuestions:
        return PreviewQuestions(id=command_id, path=self.path, grader=self.grader, tolerance=self.tolerance, try_model=try_model)
