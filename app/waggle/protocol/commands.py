"""What the engine can be asked to do: one JSON line each, in the imperative. Every command is answered by its `id`."""

import secrets
from typing import Annotated

import msgspec

from waggle.core.settings import Value
from waggle.protocol.events import Choice
from waggle.protocol.events_chat import LONGEST, SENT, TURNS, Turn
from waggle.protocol.schedule import Moment


def new_id() -> str:
    """By which an answer is known to be that of a command."""
    return secrets.token_hex(6)


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    id: str


class Pause(Command, frozen=True, kw_only=True, tag=True):
    """Stop between two steps, at once, or `after_round`; until a resume, a moment (unix seconds), or nobody is here."""

    until: Moment | None = None
    after_round: bool = False
    until_away: bool = False


class Resume(Command, frozen=True, kw_only=True, tag=True):
    """Go on from where the round was left. What the rules hold back goes on anyway: for an hour, or until a moment."""

    anyway_until: Moment | None = None


class Stop(Command, frozen=True, kw_only=True, tag=True):
    """Finish the step, keep everything, end the engine."""


class Status(Command, frozen=True, kw_only=True, tag=True):
    """Answered by a Snapshot before the CommandDone."""


class Follow(Command, frozen=True, kw_only=True, tag=True):
    """Be told everything from now on, beginning with a Snapshot; of an engine that no window started, on its control socket."""


class QueryHistory(Command, frozen=True, kw_only=True, tag=True):
    """Answered by HistoryTold before the CommandDone."""


class QuerySent(Command, frozen=True, kw_only=True, tag=True):
    """Answered by SentTold before the CommandDone."""


class ChoosePeer(Command, frozen=True, kw_only=True, tag=True):
    """Mute a peer (nothing of it is learned here), block it (it gets nothing from here either), or take that back (empty)."""

    peer: Annotated[str, msgspec.Meta(max_length=64)]
    choice: Choice


class ChangeSettings(Command, frozen=True, kw_only=True, tag=True):
    """Set `section.name` to values, all or none: checked as a whole, kept in the file, and in force at once where that can be.

    None means back to the default. Refused with a sentence, and nothing changed, where a value is wrong.
    """

    values: dict[str, Value]


class ListSwarms(Command, frozen=True, kw_only=True, tag=True):
    """Answered by SwarmsTold before the CommandDone."""


class CreateSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Write a charter of (dataset, difficulty) pairs and remember it. Answered by SwarmCreated."""

    name: Annotated[str, msgspec.Meta(max_length=200)]
    specialties: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(max_length=64)]
    model_hint: Annotated[str, msgspec.Meta(max_length=200)] = ""
    private: bool = False


class ReadInvite(Command, frozen=True, kw_only=True, tag=True):
    """Look at what a link invites to, joining nothing. Answered by InviteRead."""

    link: Annotated[str, msgspec.Meta(max_length=8192)]


class ChooseSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Take part in a swarm that is remembered or was just looked at; the engine starts again there, with the same weights."""

    charter: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class ForgetSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Remember a swarm no more. Answered by SwarmsTold."""

    charter: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class WriteInvite(Command, frozen=True, kw_only=True, tag=True):
    """A link to the swarm that is taken part in. Answered by InviteWritten."""


class QueryDays(Command, frozen=True, kw_only=True, tag=True):
    """Answered by DaysTold before the CommandDone."""


Passphrase = Annotated[str, msgspec.Meta(max_length=1024)]
FilePath = Annotated[str, msgspec.Meta(max_length=4096)]


class BackUpIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Write the identity, encrypted, to a new file. Answered by BackupWritten."""

    path: FilePath
    passphrase: Passphrase


class CheckBackup(Command, frozen=True, kw_only=True, tag=True):
    """See whose identity a backup holds, changing nothing. Answered by BackupRead."""

    path: FilePath
    passphrase: Passphrase


class RestoreIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Be who a backup says; the identity of now is kept beside it. Answered by BackupRead."""

    path: FilePath
    passphrase: Passphrase


class RenewIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Be somebody new here, after the identity was moved to another computer; the old key is kept beside it."""


class ListModels(Command, frozen=True, kw_only=True, tag=True):
    """Answered by ModelsTold before the CommandDone."""


class ChooseModel(Command, frozen=True, kw_only=True, tag=True):
    """Train another model: of the hub by its name, downloaded first where it is not here, or of a folder; neither: the starter.

    The engine starts again with what was trained of it before.
    """

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    folder: FilePath = ""


class RemoveModel(Command, frozen=True, kw_only=True, tag=True):
    """Remove a model of the hub from this computer; what was trained of it is kept. Answered by ModelsTold."""

    name: Annotated[str, msgspec.Meta(max_length=200)]


class ExportModel(Command, frozen=True, kw_only=True, tag=True):
    """Write what was trained as a plain transformers folder. Answered by ModelExported."""

    path: FilePath


class PoseQuestion(Command, frozen=True, kw_only=True, tag=True):
    """Pose a reserved question of a specialty, the same for the same number. Answered by QuestionPosed.

    `to_share`: one that others take instead, so that a person's answer to it may be shared.
    """

    specialty: Annotated[str, msgspec.Meta(max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    to_share: bool = False


class AskModel(Command, frozen=True, kw_only=True, tag=True):
    """Put that question to the model as it was at every moment that is kept. Answered by QuestionAnswered.

    `mine` is a person's own answer, judged beside the others. It is shared, marked human, where the question was posed for that
    (with its `epoch`) and the settings say so; otherwise it goes nowhere.
    """

    specialty: Annotated[str, msgspec.Meta(max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    mine: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    epoch: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)] = 0


class OfferTalk(Command, frozen=True, kw_only=True, tag=True):
    """Say whom one may talk with. Answered by TalkOffered."""


class Say(Command, frozen=True, kw_only=True, tag=True):
    """Say something to the model as it is now, and as it was after `before` rounds. Answered by TurnGrew, again and again.

    The engine remembers no conversation: `earlier` are the turns before this one, oldest first, as many as go along.
    """

    words: Annotated[str, msgspec.Meta(max_length=LONGEST)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=TURNS)]
    before: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    earlier: Annotated[tuple[Turn, ...], msgspec.Meta(max_length=SENT)] = ()


class Hush(Command, frozen=True, kw_only=True, tag=True):
    """End the answer that is being written; what was said so far stays."""


class ClearTalk(Command, frozen=True, kw_only=True, tag=True):
    """Forget the conversation. Answered by TalkCleared."""


TalkCommand = OfferTalk | Say | Hush | ClearTalk
TryingCommand = PoseQuestion | AskModel
ModelCommand = ListModels | ChooseModel | RemoveModel | ExportModel
PersonCommand = QueryDays | BackUpIdentity | CheckBackup | RestoreIdentity | RenewIdentity
SwarmCommand = ListSwarms | CreateSwarm | ReadInvite | ChooseSwarm | ForgetSwarm | WriteInvite
AnyCommand = (
    TalkCommand
    | TryingCommand
    | ModelCommand
    | PersonCommand
    | SwarmCommand
    | ChangeSettings
    | ChoosePeer
    | Pause
    | Resume
    | Stop
    | Status
    | Follow
    | QueryHistory
    | QuerySent
)
