"""What the engine tells of a question that a person tries: the question, and what the model answered at several moments."""

import msgspec

from waggle.protocol.events import Count, Event, ShownCompletion


class QuestionPosed(Event, frozen=True, kw_only=True, tag=True):
    """A reserved question: no model here ever trained on it. The same `number` poses the same one again."""

    specialty: str  # its dataset
    title: str
    number: Count
    question: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model as it was after so many rounds; 0: before any training."""

    rounds: Count
    completion: ShownCompletion


class QuestionAnswered(Event, frozen=True, kw_only=True, tag=True):
    """Oldest first. `mine` is the person's own answer, judged as the model's are."""

    specialty: str
    number: Count
    answers: tuple[Answered, ...]
    mine: ShownCompletion | None = None


TryingEvent = QuestionPosed | QuestionAnswered
