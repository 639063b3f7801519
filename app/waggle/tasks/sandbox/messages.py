"""Messages between the verifier, the audit or a chat template and its child: length-prefixed msgpack over stdin and stdout."""

import os
import sys
from typing import IO, Annotated, TypeVar

import msgspec

from waggle.core.errors import UNREADABLE
from waggle.core.message import Message, packed_message, unpacked_message
from waggle.tasks.question_file.description import QuestionFile
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import Verdict
from waggle.tasks.sandbox.hardening import Sandbox
from waggle.tasks.specialties.interface import Setting

MAX_FRAME = 64 * 1024 * 1024
REASON = 300  # characters of an error text, which may come from other people's code

Item = tuple[QuestionKey, str, bool]  # a question, a completion, and whether that ended by itself


class DatasetLevels(msgspec.Struct, frozen=True, array_like=True):
    """A dataset and the settings of each level in which it makes questions."""

    dataset: str
    levels: tuple[dict[str, Setting], ...]


class DatasetFile(msgspec.Struct, frozen=True, array_like=True):
    """A dataset that is a file of people's own questions; the parent compared its hashes."""

    dataset: str
    file: QuestionFile
    packed: bytes


class Prepare(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The first message: import everything that these datasets need, drop privileges, then unpack the files. Sent once."""

    datasets: tuple[DatasetLevels, ...]
    files: tuple[DatasetFile, ...] = ()


class GenerateQuestions(msgspec.Struct, frozen=True, tag=True, array_like=True):
    keys: list[QuestionKey]


class GenerateAnswers(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """For the laboratory, and to show the true answer afterwards. Nodes never send answers to each other."""

    keys: list[QuestionKey]


class Judge(msgspec.Struct, frozen=True, tag=True, array_like=True):
    items: list[Item]


class Texts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Questions or answers. `seconds` is CPU time, here and below."""

    texts: list[str]
    seconds: float = 0.0


class Verdicts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    verdicts: list[Verdict]
    seconds: float = 0.0


class Prepared(msgspec.Struct, frozen=True, tag=True, array_like=True):
    sandbox: Sandbox


class Tripped(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The child's last message: a scorer raised this audit event over a stranger's text."""

    event: Annotated[str, msgspec.Meta(max_length=64)]


def _require_short(reason: Message) -> None:
    if len(reason) > REASON:
        raise ValueError(f"a reason of {len(reason):,} characters")


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The request failed and the child continues: an unknown dataset, or a setting that the dataset refuses."""

    reason: Message  # at most REASON characters

    def __post_init__(self) -> None:
        _require_short(self.reason)


class FileRefused(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The reply to `Prepare` if a file of questions breaks a rule, and so on every computer."""

    reason: Message  # at most REASON characters

    def __post_init__(self) -> None:
        _require_short(self.reason)


class ListDatasets(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Audit: list the datasets of reasoning-gym and of Waggle."""


class DatasetList(msgspec.Struct, frozen=True, tag=True, array_like=True):
    version: str
    datasets: list[str]


class ExamineDataset(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Audit: prepare this dataset. `upstream` leaves out Waggle's patches of reasoning-gym; `another_day` fakes today's date."""

    dataset: str
    upstream: bool = False
    another_day: bool = False


class GenerateEntries(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Audit: generate the entries of these seeds without a cache, in this order."""

    seeds: list[int]


class GeneratedQuestions(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """(question, answer) for each seed, and the CPU seconds for one of them."""

    pairs: list[tuple[str, str]]
    seconds: float


class ScoreAnswers(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Audit: score these answers and record what the scorer does."""

    items: list[tuple[int, str]]  # seed of the question, answer


class AnswerScore(msgspec.Struct, frozen=True, array_like=True):
    """The scorer's reward (NaN: not a number), the exception and the audit events that it raised, and its CPU seconds."""

    reward: float
    raised: str
    events: list[str]
    seconds: float


class AnswerScores(msgspec.Struct, frozen=True, tag=True, array_like=True):
    scores: list[AnswerScore]


class RenderTemplate(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Chat template: render `texts`, which a person and the model said in turn.

    `specials` maps the names of special tokens that a template may use to their texts.
    """

    template: str
    specials: dict[str, str]
    texts: tuple[str, ...]


class RenderedTemplate(msgspec.Struct, frozen=True, tag=True, array_like=True):
    text: str


class ConvertTokenizer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Tokenizer: convert the one in this folder."""

    folder: str


class ConvertedTokenizer(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The content of tokenizer.json."""

    content: bytes


Request = GenerateQuestions | GenerateAnswers | Judge
AuditRequest = ListDatasets | ExamineDataset | GenerateEntries | ScoreAnswers
AuditReply = DatasetList | Prepared | GeneratedQuestions | AnswerScores | Failed
TemplateReply = RenderedTemplate | Failed
TokenizerReply = ConvertedTokenizer | Failed
Reply = Texts | Verdicts | Prepared | Tripped | Failed | FileRefused

_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, dec_hook=unpacked_message)
_audit_replies: msgspec.msgpack.Decoder[AuditReply] = msgspec.msgpack.Decoder(AuditReply, dec_hook=unpacked_message)
_template_replies: msgspec.msgpack.Decoder[TemplateReply] = msgspec.msgpack.Decoder(TemplateReply, dec_hook=unpacked_message)
_tokenizer_replies: msgspec.msgpack.Decoder[TokenizerReply] = msgspec.msgpack.Decoder(TokenizerReply, dec_hook=unpacked_message)

Decoded = TypeVar("Decoded")


def open_replies() -> IO[bytes]:
    """In a child: the stream for replies. What libraries print goes to stderr from now on."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies


def send(pipe: IO[bytes], message: msgspec.Struct) -> None:
    """Write one frame. Raises OSError if the other side is gone."""
    pipe.write(frame_of(message))
    pipe.flush()


def frame_of(message: msgspec.Struct) -> bytes:
    frame = msgspec.msgpack.encode(message, enc_hook=packed_message)
    return len(frame).to_bytes(4, "big") + frame


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read one frame; None if the other side is gone or sends nonsense."""
    head = pipe.read(4)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_FRAME:
        return None
    frame = pipe.read(size)
    return frame if len(frame) == size else None


def reply(frame: bytes) -> Reply:
    """Decode a reply of the verifier's child. Raises EOFError if it is malformed: such a child is as good as dead."""
    return decode(frame, _replies)


def require_all(request: Prepare | Request, answer: Texts | Verdicts) -> None:
    """Raise EOFError unless a reply has the type and the number of parts that the request asks for."""
    match request, answer:
        case (GenerateQuestions(keys) | GenerateAnswers(keys), Texts(answers)) | (Judge(keys), Verdicts(answers)):
            if len(answers) == len(keys):
                return
    raise EOFError("it talks nonsense: it answers what nobody asked")


def audit_reply(frame: bytes) -> AuditReply:
    """Decode a reply of the audit's child. Raises EOFError."""
    return decode(frame, _audit_replies)


def template_reply(frame: bytes) -> TemplateReply:
    """Decode a reply of a template's child. Raises EOFError."""
    return decode(frame, _template_replies)


def tokenizer_reply(frame: bytes) -> TokenizerReply:
    """Decode a reply of a tokenizer's child. Raises EOFError."""
    return decode(frame, _tokenizer_replies)


def decode(frame: bytes, decoder: msgspec.msgpack.Decoder[Decoded]) -> Decoded:
    """Decode a reply of any child. Raises EOFError if it is malformed."""
    try:
        return decoder.decode(frame)
    except UNREADABLE as error:
        raise EOFError(Message("it talks nonsense: %1", error)) from error
