"""What the engine tells of a question that a person tries: the question, and what the model answered at several moments."""

import msgspec

from waggle.protocol.events import Count, Event, ShownCompletion, ShownGroup


class QuestionPosed(Event, frozen=True, kw_only=True, tag=True):
    """A reserved question: no model here ever trained on it. The same `number` poses the same one again.

    With an `epoch` it is one of this node's own questions of that time instead, which others take.
    """

    specialty: str  # its dataset
    title: str
    number: Count
    question: str
    epoch: Count = 0


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model as it was after so many rounds; 0: before any training."""

    rounds: Count
    completion: ShownCompletion


class QuestionAnswered(Event, frozen=True, kw_only=True, tag=True):
    """Oldest first. `mine` is the person's own answer, judged as the model's are, and shared where it was to be.

    `truth` is what would have been right, or one of several answers that would have been; empty where none is known.
    """

    specialty: str
    number: Count
    answers: tuple[Answered, ...]
    mine: ShownCompletion | None = None
    shared: bool = False
    truth: str = ""  # as recordings of before have it


class AnswerShared(Event, frozen=True, kw_only=True, tag=True):
    """A person's answer left this computer, beside answers of the model of now, in the group of one question."""

    round: Count
    group: ShownGroup


TryingEvent = QuestionPosed | QuestionAnswered | AnswerShared
