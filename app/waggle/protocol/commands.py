"""Commands to the engine, one JSON line each, in the imperative. The answer to a command carries its `id`."""

import secrets
from typing import Annotated, Literal

import msgspec

from waggle.core.settings import Value
from waggle.protocol.events import Choice, Difficulty
from waggle.protocol.events_chat import LONGEST, SENT, TURNS, Turn
from waggle.protocol.schedule import Length, Moment


def new_id() -> str:
    """A new id for a command."""
    return secrets.token_hex(6)


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    id: str


class Pause(Command, frozen=True, kw_only=True, tag=True):
    """Pause between two steps or `after_round`; until a Resume, for some seconds, until a time (unix seconds), or `until_away`.

    A length ends by the engine's clock, so that a window on another computer need not have the same.
    """

    seconds: Length | None = None
    until: Moment | None = None
    after_round: bool = False
    until_away: bool = False


class Resume(Command, frozen=True, kw_only=True, tag=True):
    """Continue the interrupted round. If the rules hold back, contribute anyway: for an hour, or until a time (unix seconds)."""

    anyway_until: Moment | None = None


class Stop(Command, frozen=True, kw_only=True, tag=True):
    """Finish the step, save everything, and end the engine."""


class Status(Command, frozen=True, kw_only=True, tag=True):
    """Answered by a Snapshot, then CommandDone."""


class Follow(Command, frozen=True, kw_only=True, tag=True):
    """Receive a Snapshot, then every event. Only for the control socket of an engine that runs as a service."""


class QueryHistory(Command, frozen=True, kw_only=True, tag=True):
    """Answered by TrainingHistory, then CommandDone."""


class QueryRounds(Command, frozen=True, kw_only=True, tag=True):
    """Every stored round after this one, some at a time. Answered by RoundsRead, then CommandDone."""

    after: Annotated[int, msgspec.Meta(ge=-1)] = -1


class QueryRuns(Command, frozen=True, kw_only=True, tag=True):
    """The scores of other models that were trained on this computer. Answered by RunsRead, then CommandDone."""


class QuerySent(Command, frozen=True, kw_only=True, tag=True):
    """Answered by SentMessages, then CommandDone."""


class ChoosePeer(Command, frozen=True, kw_only=True, tag=True):
    """Mute a peer (train on nothing of it), block it (send it nothing, either), or undo that (empty)."""

    peer: Annotated[str, msgspec.Meta(max_length=64)]
    choice: Choice


class ChangeSettings(Command, frozen=True, kw_only=True, tag=True):
    """Change settings by `section.name`; None resets one to its default. They are stored, and apply at once where possible.

    If one value is wrong, all are refused. With `restart`, the engine restarts if a setting needs that, and answers StartedAgain.
    If it cannot start with these values, it goes back to those of before.
    """

    values: dict[str, Value]
    restart: bool = False


class ListSwarms(Command, frozen=True, kw_only=True, tag=True):
    """Answered by KnownSwarms, then CommandDone."""


Grader = Annotated[str, msgspec.Meta(max_length=32)]  # empty: guessed from the answers
FilePath = Annotated[str, msgspec.Meta(max_length=4096)]


class PreviewQuestions(Command, frozen=True, kw_only=True, tag=True):
    """Read a person's own file of questions. Answered by QuestionsPreviewed, also if something is wrong with the file.

    With `try_model`, the own model answers some of them if it is open, which takes up to minutes.
    """

    path: FilePath
    grader: Grader = ""
    tolerance: float = 0.0
    try_model: bool = True


class NewQuestionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's own questions for a new swarm. Without a title, the file's name becomes the title."""

    path: FilePath
    title: Annotated[str, msgspec.Meta(max_length=200)] = ""
    grader: Grader = ""
    tolerance: float = 0.0


Preset = Literal["", "classroom"]


class CreateSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Create a charter from (dataset, difficulty) pairs and own files, and store it. Answered by SwarmCreated and KnownSwarms."""

    name: Annotated[str, msgspec.Meta(max_length=200)]
    specialties: Annotated[tuple[tuple[str, Difficulty], ...], msgspec.Meta(max_length=192)]
    files: Annotated[tuple[NewQuestionFile, ...], msgspec.Meta(max_length=16)] = ()
    model_hint: Annotated[str, msgspec.Meta(max_length=200)] = ""
    private: bool = False
    preset: Preset = ""  # its choices come first; name what else the swarm asks


class ReadInvite(Command, frozen=True, kw_only=True, tag=True):
    """Look at the swarm of an invite without joining it. Answered by InviteRead."""

    link: Annotated[str, msgspec.Meta(max_length=8192)]


class ChooseSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Join a stored swarm, or one whose invite was just read. The engine restarts there with the same weights."""

    charter: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    # What the members of a private swarm see beside the fingerprint of this node's key; empty: its key's name. None: as before
    member_name: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class ForgetSwarm(Command, frozen=True, kw_only=True, tag=True):
    """Delete a stored swarm. Answered by KnownSwarms."""

    charter: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class WriteInvite(Command, frozen=True, kw_only=True, tag=True):
    """Create an invite to the joined swarm. Answered by InviteWritten."""


class QueryDays(Command, frozen=True, kw_only=True, tag=True):
    """Answered by DailyTotals, then CommandDone."""


Passphrase = Annotated[str, msgspec.Meta(max_length=1024)]


class BackUpIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Write the encrypted identity to a new file. Answered by BackupWritten."""

    path: FilePath
    passphrase: Passphrase


class CheckBackup(Command, frozen=True, kw_only=True, tag=True):
    """Read whose identity a backup contains, and change nothing. Answered by BackupRead."""

    path: FilePath
    passphrase: Passphrase


class RestoreIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Restore the identity of a backup; the current one stays beside it. Answered by BackupRead."""

    path: FilePath
    passphrase: Passphrase


class RenewIdentity(Command, frozen=True, kw_only=True, tag=True):
    """Create a new identity, after the old one was moved to another computer; the old key stays beside the new one."""


class ListModels(Command, frozen=True, kw_only=True, tag=True):
    """Answered by ModelList, then CommandDone."""


class SearchModels(Command, frozen=True, kw_only=True, tag=True):
    """Search the hub for models by words. Answered by HubResults."""

    words: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ChooseModel(Command, frozen=True, kw_only=True, tag=True):
    """Train another model: one of the hub by `name`, after a download if necessary; one in a `folder`; or else the starter.

    The model is checked, and downloaded if necessary, while the present one is trained: see the event ModelChoice. Then the
    engine restarts, and continues that model's training. A choice takes the place of one whose download is under way.
    """

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    folder: FilePath = ""


TrainingChoice = Literal["anew", "keep"]


class DecideTraining(Command, frozen=True, kw_only=True, tag=True):
    """Answer ModelChanged: begin anew with the model that lies there now, beside the old training, or keep that one.

    The engine restarts.
    """

    choice: TrainingChoice


class CancelChoice(Command, frozen=True, kw_only=True, tag=True):
    """Stop the download of a chosen model, if one is under way. What has arrived is kept."""


class RemoveModel(Command, frozen=True, kw_only=True, tag=True):
    """Remove a model of the hub from this computer, but not its training. Answered by ModelList."""

    name: Annotated[str, msgspec.Meta(max_length=200)]


class ExportModel(Command, frozen=True, kw_only=True, tag=True):
    """Export the trained model as a plain transformers folder. Answered by ModelExported.

    With `gguf`, it also contains a file for programs such as llama.cpp, if they know models of this kind.
    """

    path: FilePath
    gguf: bool = True


class PoseQuestion(Command, frozen=True, kw_only=True, tag=True):
    """Pose a reserved question of a specialty, the same for the same number. Answered by QuestionPosed.

    With `to_share`, pose one that is not reserved, so that a person's answer to it may be shared.
    """

    specialty: Annotated[str, msgspec.Meta(max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    to_share: bool = False


class AskModel(Command, frozen=True, kw_only=True, tag=True):
    """Let all snapshots of the model answer that question. Answered by QuestionAnswered.

    `mine` is a person's answer, judged like the others. It is shared, marked as human, only if the question was posed for that
    (with its `epoch`) and the settings allow it.
    """

    specialty: Annotated[str, msgspec.Meta(max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    mine: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    epoch: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)] = 0


class OfferChat(Command, frozen=True, kw_only=True, tag="OfferTalk"):
    """List the snapshots to chat with. Answered by ChatOffer."""


class SendMessage(Command, frozen=True, kw_only=True, tag="Say"):
    """Send a message to the current model and to its snapshot after `before` rounds. Answered by many TurnProgress.

    The engine stores no conversation: `earlier` has the turns before this one, oldest first, at most SENT of them.
    """

    words: Annotated[str, msgspec.Meta(max_length=LONGEST)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=TURNS)]
    before: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    earlier: Annotated[tuple[Turn, ...], msgspec.Meta(max_length=SENT)] = ()


class StopReplies(Command, frozen=True, kw_only=True, tag="Hush"):
    """Stop the replies that are being written; their text so far stays."""


class ClearChat(Command, frozen=True, kw_only=True, tag="ClearTalk"):
    """Delete the conversation. Answered by ChatCleared."""


ChatCommand = OfferChat | SendMessage | StopReplies | ClearChat
TryingCommand = PoseQuestion | AskModel
ModelCommand = ListModels | SearchModels | ChooseModel | CancelChoice | DecideTraining | RemoveModel | ExportModel
PersonCommand = QueryDays | BackUpIdentity | CheckBackup | RestoreIdentity | RenewIdentity
QuestionsCommand = PreviewQuestions
SwarmCommand = ListSwarms | CreateSwarm | ReadInvite | ChooseSwarm | ForgetSwarm | WriteInvite
AnyCommand = (
    ChatCommand
    | TryingCommand
    | ModelCommand
    | PersonCommand
    | SwarmCommand
    | QuestionsCommand
    | ChangeSettings
    | ChoosePeer
    | Pause
    | Resume
    | Stop
    | Status
    | Follow
    | QueryHistory
    | QueryRounds
    | QueryRuns
    | QuerySent
)
