"""The messages between the verifier, the audit, or a chat template, and its child: length-prefixed msgpack over the child's
stdin and stdout."""

from typing import IO, Annotated, TypeVar

import msgspec

from waggle.core.errors import UNREADABLE
from waggle.tasks.charter import Specialty
from waggle.tasks.rollout_group import Verdict
from waggle.tasks.sandbox.hardening import Sandbox

MAX_FRAME = 64 * 1024 * 1024
REASON = 300  # characters of what a program of others says

Key = tuple[str, int]  # (dataset, seed)
Item = tuple[str, int, str, bool]  # dataset, seed, completion, ended by itself


class Prepare(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The first message, and only that: import all that the specialties need, then arm."""

    specialties: tuple[Specialty, ...]


class GenerateQuestions(msgspec.Struct, frozen=True, tag=True, array_like=True):
    keys: list[Key]


class GenerateAnswers(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """For laboratories and for showing the truth afterwards; no answer ever travels between nodes."""

    keys: list[Key]


class Judge(msgspec.Struct, frozen=True, tag=True, array_like=True):
    items: list[Item]


class Texts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """`seconds` are the processor's, here and below."""

    texts: list[str]
    seconds: float = 0.0


class Verdicts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    verdicts: list[Verdict]
    seconds: float = 0.0


class Prepared(msgspec.Struct, frozen=True, tag=True, array_like=True):
    sandbox: Sandbox


class Tripped(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The child's last words: a scorer tried this audit event on a stranger's text."""

    event: Annotated[str, msgspec.Meta(max_length=64)]


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The child is alive but could not do this: an unknown dataset or a setting that reasoning-gym refuses."""

    reason: Annotated[str, msgspec.Meta(max_length=REASON)]


class ListDatasets(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Of the audit: what does this reasoning-gym offer?"""


class DatasetList(msgspec.Struct, frozen=True, tag=True, array_like=True):
    version: str
    datasets: list[str]


class ExamineDataset(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Of the audit: make ready for this dataset alone. `upstream` leaves its scorer as reasoning-gym has it, and `another_day`
    has the calendar stand elsewhere."""

    dataset: str
    upstream: bool = False
    another_day: bool = False


class GenerateEntries(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Of the audit: make these questions from nothing, in this order."""

    seeds: list[int]


class GeneratedQuestions(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """(question, answer) for each seed, and the processor's seconds for one."""

    pairs: list[tuple[str, str]]
    seconds: float


class ScoreAnswers(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Of the audit: let the scorer see these texts, and watch it."""

    items: list[tuple[int, str]]  # seed of the question, answer


class AnswerScore(msgspec.Struct, frozen=True, array_like=True):
    """What the scorer said (NaN: no number), raised, and tried: names of audit events. `seconds` are the processor's."""

    reward: float
    raised: str
    events: list[str]
    seconds: float


class AnswerScores(msgspec.Struct, frozen=True, tag=True, array_like=True):
    scores: list[AnswerScore]


class RenderTemplate(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Of a chat template: what does it make of what a person and a model say in turn? `specials` are the texts of tokens that
    it may name."""

    template: str
    specials: dict[str, str]
    texts: tuple[str, ...]


class RenderedTemplate(msgspec.Struct, frozen=True, tag=True, array_like=True):
    text: str


Request = GenerateQuestions | GenerateAnswers | Judge
AuditRequest = ListDatasets | ExamineDataset | GenerateEntries | ScoreAnswers
AuditReply = DatasetList | Prepared | GeneratedQuestions | AnswerScores | Failed
TemplateReply = RenderedTemplate | Failed
Reply = Texts | Verdicts | Prepared | Tripped | Failed

_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_audit_replies: msgspec.msgpack.Decoder[AuditReply] = msgspec.msgpack.Decoder(AuditReply)
_template_replies: msgspec.msgpack.Decoder[TemplateReply] = msgspec.msgpack.Decoder(TemplateReply)

Decoded = TypeVar("Decoded")


def send(pipe: IO[bytes], message: msgspec.Struct) -> None:
    """Write one frame; raises OSError when the other side is gone."""
    pipe.write(framed(message))
    pipe.flush()


def framed(message: msgspec.Struct) -> bytes:
    frame = msgspec.msgpack.encode(message)
    return len(frame).to_bytes(4, "big") + frame


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read one frame; None when the other side is gone or talks nonsense."""
    head = pipe.read(4)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_FRAME:
        return None
    frame = pipe.read(size)
    return frame if len(frame) == size else None


def reply(frame: bytes) -> Reply:
    """What the verifier child says; raises EOFError where that is nonsense: it is as good as gone."""
    return _decoded(frame, _replies)


def require_all(request: Prepare | Request, answer: Texts | Verdicts) -> None:
    """Raise EOFError unless that is an answer to each part of the request, and to nothing else."""
    match request, answer:
        case (GenerateQuestions(keys) | GenerateAnswers(keys), Texts(answers)) | (Judge(keys), Verdicts(answers)):
            if len(answers) == len(keys):
                return
    raise EOFError("it talks nonsense: it answers what nobody asked")


def audit_reply(frame: bytes) -> AuditReply:
    """The same of the audit's child."""
    return _decoded(frame, _audit_replies)


def template_reply(frame: bytes) -> TemplateReply:
    """The same of a template's child."""
    return _decoded(frame, _template_replies)


def _decoded(frame: bytes, decoder: msgspec.msgpack.Decoder[Decoded]) -> Decoded:
    try:
        return decoder.decode(frame)
    except UNREADABLE as error:
        raise EOFError(f"it talks nonsense: {error}") from error
