"""The engine's events, one JSON line each, in the past tense.

Each carries `seq` (from 1 in each run) and `at` (unix seconds). Strings from peers (`name`, `text` ...) are plain text: show them
as such.
"""

from typing import Annotated, Literal

import msgspec

from waggle.core.message import NOTHING, Message
from waggle.core.settings import Settings
from waggle.protocol.schedule import Moment, ScheduleDecision

Phase = Literal["preparing", "contributing", "finishing", "waiting", "paused", "stopped", "problem"]
Way = Literal["", "direct", "relay", "gateway"]  # how others call this node; empty: not known yet; gateway: they cannot call it
KILLED = (9, 137)  # exit codes of a killed process, as Qt and as shells report them
Reach = Literal["connecting", "alone", "connected", "solo"]  # solo: without a network, by choice
Connection = Literal["direct", "relay", "lan", "gone"]
Choice = Literal["", "muted", "blocked"]  # a person's, about a peer
LeftOut = Literal["", "no_lesson", "not_finite"]  # why a round took no step: nothing to learn; loss or gradient were not finite
RIGHT = 0.99  # the least reward that is shown as right
UNTAGGED = Message("right, but no answer tag")  # the reason of a completion that earned nothing only because of its form

# Bounds of what sizes the State: a damaged recording must not exhaust the window's memory.
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Difficulty = Literal["easy", "standard", "hard"]  # a level of the catalogue
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
GroupSize = Annotated[int, msgspec.Meta(ge=0, le=16)]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    seq: int = 0
    at: Moment = 0.0


# --- parts of events ---------------------------------------------------------------------------------------------


class SpecialtyInfo(msgspec.Struct, frozen=True, kw_only=True):
    dataset: str
    title: str
    levels: tuple[str, ...] = ()  # of people's own questions "standard"; empty: from a version that did not tell


class SwarmSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm that comes with Waggle and suits the model better than the present one."""

    charter: str  # hex
    name: str


class ShownCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """One completion as a person sees it; a long one is cut. `start` and `length`: the judged span in characters; 0: none."""

    text: str
    ended: bool = True
    judged: bool = False
    reward: float = 0.0
    reason: Message = NOTHING
    start: int = 0
    length: int = 0
    human: bool = False  # a person wrote it, according to its origin


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its completions. `key` is the same in every event about this group.

    `truth` is a right answer, where no completion has one; empty if none is known.
    """

    key: str
    specialty: str  # title
    question: str
    completions: tuple[ShownCompletion, ...] = ()
    truth: str = ""  # missing in recordings of earlier versions


class QuestionShare(msgspec.Struct, frozen=True, kw_only=True):
    """A specialty's part of the questions that this node draws, by level. All levels of all specialties sum to 1."""

    specialty: str  # title
    levels: dict[Difficulty, Share]  # easiest first


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a step on each completion of a group: 1 more likely, -1 less likely, 0 none."""

    key: str
    effects: tuple[int, ...]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a round's optimizer steps, their means. Means are over the tokens that were trained on."""

    loss: float = 0.0
    clip_fraction: float = 0.0
    gradient_norm: float = 0.0
    entropy: float = 0.0  # nats per token, of the policy that sampled this round
    completion_tokens: float = 0.0  # mean length of local completions
    external_share: float = 0.0  # of the pull on the weights
    learning_rate: float = 0.0


class RoundSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one finished round. `reward`, `solved`: means over local completions. `local`, `external`: numbers of groups."""

    round: int
    at: Moment
    reward: float
    solved: Share  # of local completions with reward >= RIGHT
    seconds: float
    completions: Count = 0
    tokens: int = 0
    local: int = 0
    external: int = 0
    waiting: int = 0  # external groups left in the pool
    external_reward: float | None = None  # mean of the external groups on offer; None: there were none, or of an earlier version
    by_specialty: dict[str, float] = {}  # title -> mean reward
    metrics: Metrics = Metrics()
    taught: Count | None = None  # groups of the training set from which something was learned; None: of an earlier version
    left_out: bool = False  # its step was left out, because loss or gradient were not finite
    readable: Count = 0  # local completions with one answer in the answer tags
    cut: Count = 0  # local completions that were cut at the limit of tokens
    recipe: str = ""  # identifies the settings by which it was played
    memory: Count = 0  # bytes that the engine and its children used at its end; 0: from a version that did not measure it
    swarm: str = ""  # its name; empty: from a version that did not tell
    rule: str = ""  # the update rule
    run: str = ""  # the name of the run that it belongs to; empty: from a version that did not tell


class HeldOutScore(msgspec.Struct, frozen=True, kw_only=True):
    """Right answers to reserved questions, one completion each, sampled at temperature 1."""

    round: int
    at: Moment
    right: int
    total: int
    exam: str = ""  # identifies the questions; empty: from a version that did not
    early: bool = False  # on a few of the questions that later scores are on, for a first figure soon after the start
    seconds: float = 0.0  # of work; 0: from a version that did not measure it
    by_specialty: dict[str, tuple[Count, Count]] = {}  # title -> right and total; empty: from a version that did not count


class Aha(msgspec.Struct, frozen=True, kw_only=True):
    """The node's first right answer in a specialty, and the peer whose right answer there it had learned from last."""

    round: int
    at: Moment
    specialty: str
    origin: str = ""  # empty: no peer's
    name: str = ""


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One peer, from this node's experience. Counts are of groups; `mean_reward` is by this node's verifier."""

    id: str
    name: str
    connection: Connection = "direct"
    model: str = ""
    round: int = 0
    received: int = 0
    useful: int = 0  # of those received: with a nonzero advantage
    used: int = 0  # of those received: trained on here
    groups_pulled: int = msgspec.field(default=0, name="taken")  # our groups that this peer pulled
    rejected: int = 0  # records or groups refused
    reason: Message = NOTHING  # of the last refusal, in this node's words
    refusal: Message = NOTHING  # why it cannot train with this node at all; empty: it can
    doubted_until: float = 0.0  # unix seconds until which it is not asked for groups
    trusted: bool = False  # its groups were useful, so it is asked first
    barren: bool = False  # most of its groups taught nothing when a round looked at them, whatever their rewards
    choice: Choice = ""
    mean_reward: float = 0.0
    delay_ms: float | None = None
    seen_at: Moment = 0.0


# --- life of the engine ------------------------------------------------------------------------------------------


class Preparing(Event, frozen=True, kw_only=True, tag=True):
    """Startup began this part; `done` of `parts` are complete. `long`: it may take hours, and can be paused."""

    part: Message
    done: int
    parts: int
    long: bool = False


class Downloading(Event, frozen=True, kw_only=True, tag=True):
    """Progress of a model's download, in bytes. At most once a second, and at each hundredth."""

    model: str
    done: Count
    total: Count
    seconds_left: float | None = None  # None: not known yet


class PromptFormChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How the model is asked, and why. `readable` of `total` answers stood in the answer tags when it was tried.

    `no_chat` says why its chat template cannot be used, in a few words; empty if it can, or if it has none.
    """

    form: str = "plain"
    why: Literal["setting", "starter", "trial"] = "starter"
    readable: Count = 0
    total: Count = 0
    no_chat: Message = NOTHING


class AnswerLength(msgspec.Struct, frozen=True, kw_only=True):
    """The most tokens of an answer, and why: the setting, the usual ones for such a model, or what its readable answers needed.

    "raised": what these needed became too little while it learned.
    """

    tokens: Count = 0  # 0: from a version that did not tell
    why: Literal["setting", "usual", "trial", "raised"] = "usual"


class Ready(Event, frozen=True, kw_only=True, tag=True):
    """Everything is loaded. Carries what a window needs to know about this node."""

    protocol: int
    version: str
    node: str  # peer id as text
    name: str  # friendly name made from the key
    member_name: str = ""  # that the person chose, for the members of this private swarm only; empty: they see `name`
    swarm: str
    charter: str  # hex
    specialties: tuple[SpecialtyInfo, ...]
    model: str
    base: str = ""  # identifies the model among others of its name
    model_note: Message  # one sentence about this model for the person
    prompt_form: PromptFormChoice = PromptFormChoice()
    answer_length: AnswerLength = AnswerLength()
    backend: str
    device: str
    device_reason: Message
    threads: int
    cores: int
    round: int  # the next round to play
    completions: int  # of this node, all time
    group_size: int
    questions: Count = 0  # of a round; 0: from a version that did not tell
    test_every: Count = 0  # rounds between two tests for the held-out score; 0: they come by time
    parameters: int
    recipe: str = ""  # see RoundSummary
    run: str = ""  # see RoundSummary
    better_swarm: SwarmSuggestion | None = None


class AnswersLengthened(Event, frozen=True, kw_only=True, tag=True):
    """Many answers were cut off before they could be read, so they may be longer from the next round on."""

    length: AnswerLength


class PhaseChanged(Event, frozen=True, kw_only=True, tag=True):
    """The engine entered a phase. `until`: unix seconds at which a pause ends by itself."""

    phase: Phase
    round: int
    until: float | None = None


class RulesChecked(Event, frozen=True, kw_only=True, tag=True):
    """The decision of the schedule changed."""

    decision: ScheduleDecision


class SettingsChanged(Event, frozen=True, kw_only=True, tag=True):
    """All settings, at the start and after each change. `after_restart` names the changed ones that wait for the next start."""

    settings: Settings
    after_restart: tuple[str, ...] = ()


class EngineStopped(Event, frozen=True, kw_only=True, tag=True):
    """The last event of a run that ended in order."""

    round: int


class EngineFailed(Event, frozen=True, kw_only=True, tag=True):
    """The last event of a run that failed. `short_of_memory`: the system ended it, most likely because memory ran short."""

    title: Message
    advice: Message
    detail: str = ""
    short_of_memory: bool = False


class EngineGone(Event, frozen=True, kw_only=True, tag=True):
    """The engine's process ended with this code; so many restarts came before. The window itself creates this event.

    With a `host`, it is the connection to that host that broke. `wait`: seconds until the next start.
    """

    code: int
    restarts: int
    host: str = ""
    wait: float = 0.0


class Warned(Event, frozen=True, kw_only=True, tag=True):
    """Something that the person should know; contribution continues.

    `page` is the window's page that says more, or "disk": the setting of its limit.
    """

    title: Message
    advice: Message = NOTHING
    page: Literal["", "swarms", "you", "disk"] = ""


class PartRestarted(Event, frozen=True, kw_only=True, tag=True):
    part: Literal["verifier", "network"]
    reason: str


# --- the round ---------------------------------------------------------------------------------------------------


class QuestionsDrawn(Event, frozen=True, kw_only=True, tag=True):
    round: int
    epoch: int
    groups: tuple[ShownGroup, ...]  # without completions
    group_size: GroupSize
    shares: tuple[QuestionShare, ...] = ()  # by which they were drawn, one for each specialty that is asked about


class CompletionsProgress(Event, frozen=True, kw_only=True, tag="CompletionsGrew"):
    """(question, completion, whole text so far, ended) of every completion that grew. At most ten times a second."""

    round: int
    rows: tuple[tuple[int, int, str, bool], ...]


class GroupsJudged(Event, frozen=True, kw_only=True, tag=True):
    round: int
    groups: tuple[ShownGroup, ...]


class GroupsShared(Event, frozen=True, kw_only=True, tag=True):
    round: int
    groups: int
    bytes: int


class GroupsGathered(Event, frozen=True, kw_only=True, tag=True):
    """The training set is complete: numbers of groups, and of external groups that still wait in the pool."""

    round: int
    local: int
    external: int
    waiting: int
    refused: dict[str, int] = {}  # external groups by the reason for their refusal, see sapo/selection.py
    refused_by_peer: dict[str, dict[str, Count]] = {}  # the same, by peer id first


class PolicyUpdated(Event, frozen=True, kw_only=True, tag=True):
    """An optimizer step was taken, or left out for a reason; then `step` stays the same, and no lesson has an effect.

    `taught` has one of the groups that each of a few peers taught with, to read.
    """

    round: int
    step: int
    metrics: Metrics
    lessons: tuple[Lesson, ...]
    left_out: LeftOut = ""
    taught: tuple[ShownGroup, ...] = ()


class RoundsRecalled(Event, frozen=True, kw_only=True, tag=True):
    """The last rounds before this start of the engine, oldest first, and the newest held-out score before it."""

    rounds: tuple[RoundSummary, ...]
    score: HeldOutScore | None = None


class RoundCompleted(Event, frozen=True, kw_only=True, tag=True):
    summary: RoundSummary


class AhaHappened(Event, frozen=True, kw_only=True, tag=True):
    aha: Aha


class HeldOutProgress(Event, frozen=True, kw_only=True, tag=True):
    """How many questions of a test for the held-out score the model has answered. At most ten times a second."""

    done: Count
    total: Count


class HeldOutMeasured(Event, frozen=True, kw_only=True, tag=True):
    score: HeldOutScore


class CheckpointSaved(Event, frozen=True, kw_only=True, tag=True):
    round: int
    bytes: int


class CheckpointSetAside(Event, frozen=True, kw_only=True, tag=True):
    """A saved state could not be read; the one before it was used."""

    folder: str
    reason: Message


# --- the swarm ---------------------------------------------------------------------------------------------------


class ReachChanged(Event, frozen=True, kw_only=True, tag=True):
    reach: Reach
    peers: int
    tried: int = 0  # seed addresses tried
    address: str = ""  # where others can reach this node
    way: Way = ""


class PeerChanged(Event, frozen=True, kw_only=True, tag=True):
    peer: PeerInfo


class PeerGroupsArrived(Event, frozen=True, kw_only=True, tag=True):
    """A peer's groups were pulled, verified and judged. `groups` has some of them to read, `more` counts the others."""

    origin: str
    name: str
    round: int
    model: str
    groups: tuple[ShownGroup, ...]
    more: Count = 0


class RecordRejected(Event, frozen=True, kw_only=True, tag=True):
    """A record of a peer broke a rule and was dropped: a whole message, or `count` groups of one."""

    origin: str
    reason: Message
    count: Count = 1


class TrafficMeasured(Event, frozen=True, kw_only=True, tag=True):
    """Payload bytes per second over the last few seconds."""

    up: float
    down: float


# --- the computer ---------------------------------------------------------------------------------------------


class LoadMeasured(Event, frozen=True, kw_only=True, tag=True):
    """What the engine takes of this computer: its share of all cores over the last seconds, and the processor's temperature."""

    cpu: Share
    celsius: float | None = None  # None: this computer does not tell


class KeptAwake(Event, frozen=True, kw_only=True, tag=True):
    """Whether the system is kept awake from now on, because this computer contributes and its person chose so.

    `trouble` says why it is not although it should be.
    """

    holds: bool
    trouble: str = ""


class EnergyCounted(Event, frozen=True, kw_only=True, tag=True):
    """The estimated energy of contributing on this day of the engine's calendar, with the round in progress."""

    date: str  # 2026-11-28
    kwh: Annotated[float, msgspec.Meta(ge=0.0)]


# --- answers to commands -----------------------------------------------------------------------------------------


class CommandDone(Event, frozen=True, kw_only=True, tag=True):
    id: str


class CommandRefused(Event, frozen=True, kw_only=True, tag=True):
    id: str
    title: Message
    advice: Message = NOTHING


class TrainingHistory(Event, frozen=True, kw_only=True, tag="HistoryTold"):
    """For charts: all rounds and all held-out scores, each thinned evenly to at most 1,000, and all first successes."""

    rounds: tuple[RoundSummary, ...]
    held_out: tuple[HeldOutScore, ...]
    ahas: tuple[Aha, ...] = ()


class RoundsRead(Event, frozen=True, kw_only=True, tag=True):
    """Stored rounds `after` one, up to the `last`, with the held-out scores of their span; whether there are more behind them."""

    after: int
    last: int
    rounds: tuple[RoundSummary, ...]
    held_out: tuple[HeldOutScore, ...]
    more: bool


class TrainingRun(msgspec.Struct, frozen=True, kw_only=True):
    """The training of another model of this home: how many rounds it has, when the last one ended, and its scores.

    The scores are thinned evenly. `model`: owner/name on the hub, or the name of a folder; empty: not known. `is_starter`: it is
    the model that ships with Waggle.
    """

    model: str
    is_starter: bool = False
    rounds: Count
    at: Moment
    held_out: tuple[HeldOutScore, ...]


class RunsRead(Event, frozen=True, kw_only=True, tag=True):
    """Other trainings of this home that have scores, the newest first."""

    runs: tuple[TrainingRun, ...]


EngineEvent = (  # without Snapshot, which needs the State and so is defined in state.py
    Preparing | Downloading | Ready | PhaseChanged | RulesChecked | SettingsChanged | EngineStopped | EngineFailed
    | EngineGone | Warned | PartRestarted | QuestionsDrawn | CompletionsProgress | GroupsJudged | GroupsShared | GroupsGathered
    | PolicyUpdated | RoundsRecalled | RoundCompleted | HeldOutProgress | HeldOutMeasured | AhaHappened | CheckpointSaved
    | CheckpointSetAside | AnswersLengthened | ReachChanged | PeerChanged | PeerGroupsArrived | RecordRejected | TrafficMeasured
    | CommandDone | CommandRefused | TrainingHistory | RoundsRead | RunsRead | LoadMeasured | KeptAwake | EnergyCounted
)  # fmt: skip
