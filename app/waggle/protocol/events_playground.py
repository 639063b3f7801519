"""Events of the playground: a question for the person, and the answers of several snapshots of the model."""

import msgspec

from waggle.core.message import NOTHING, Message
from waggle.protocol.events import Count, Event, ShownCompletion, ShownGroup


class QuestionPosed(Event, frozen=True, kw_only=True, tag=True):
    """A reserved question, on which no model here has ever trained. The same `number` poses the same question.

    With an `epoch` it is one of this node's questions of that epoch instead, which may be shared.
    """

    specialty: str  # dataset
    title: str
    number: Count
    question: str
    epoch: Count = 0


class SnapshotAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The completion of the model after so many rounds; 0: before any training."""

    rounds: Count
    completion: ShownCompletion


class QuestionAnswered(Event, frozen=True, kw_only=True, tag=True):
    """The answers, oldest snapshot first. `mine` is the person's, judged in the same way; `shared`: it was shared.

    `truth` is a right answer; empty if none is known. `not_now` says why the last answer is of the newest saved state and not of
    the model of now; empty if it is of that.
    """

    specialty: str
    number: Count
    answers: tuple[SnapshotAnswer, ...]
    mine: ShownCompletion | None = None
    shared: bool = False
    truth: str = ""  # missing in recordings of earlier versions
    not_now: Message = NOTHING


class AnswerShared(Event, frozen=True, kw_only=True, tag=True):
    """A person's answer was shared in one group with completions of the current model."""

    round: Count
    group: ShownGroup


PlaygroundEvent = QuestionPosed | QuestionAnswered | AnswerShared
