"""What the engine tells: one JSON line each, in the past tense.

Each carries `seq` (from 1 in each run) and `at` (unix seconds). What comes from peers (`name`, `text` ...) is plain text only.
"""

from typing import Annotated, Literal

import msgspec

from waggle.core.settings import Settings
from waggle.protocol.schedule import Decision, Moment

Phase = Literal["preparing", "contributing", "finishing", "waiting", "paused", "stopped", "problem"]
Way = Literal["", "direct", "relay", "gateway"]  # others call it: unknown yet, straight, through seeds, never
Reach = Literal["connecting", "alone", "connected", "solo"]  # solo: this swarm is this computer only, by choice
Connection = Literal["direct", "relay", "lan", "gone"]
Choice = Literal["", "muted", "blocked"]  # of a person, about a peer
RIGHT = 0.99  # rewards from here on are shown as right

# Bounds for what the State counts with: a damaged recording must not cost the window its memory.
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
GroupSize = Annotated[int, msgspec.Meta(ge=0, le=16)]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    seq: int = 0
    at: Moment = 0.0


# --- parts of events ---------------------------------------------------------------------------------------------


class SpecialtyInfo(msgspec.Struct, frozen=True, kw_only=True):
    dataset: str
    title: str


class ShownCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """One completion as a person sees it, cut where it is long. `start`, `length`: the judged span, in characters; 0: none."""

    text: str
    ended: bool = True
    judged: bool = False
    reward: float = 0.0
    reason: str = ""
    start: int = 0
    length: int = 0
    human: bool = False  # a person wrote it, as whoever shared it says


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its completions. `key` is the same in every event about this group."""

    key: str
    specialty: str  # its title
    question: str
    completions: tuple[ShownCompletion, ...] = ()


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What learning did with each completion of a group: 1 made likelier, -1 made less likely, 0 left alone."""

    key: str
    effects: tuple[int, ...]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Of one optimiser step. Means are over the tokens that were trained on."""

    loss: float = 0.0
    clip_fraction: float = 0.0
    gradient_norm: float = 0.0
    entropy: float = 0.0  # nats per token of the policy as it sampled this round
    completion_tokens: float = 0.0  # mean length of own completions
    external_share: float = 0.0  # of what pulled at the weights
    learning_rate: float = 0.0


class RoundSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One finished round in figures. `reward` and `solved` are means over own completions, `external` counts groups."""

    round: int
    at: Moment
    reward: float
    solved: Share  # of own completions with reward >= RIGHT
    seconds: float
    completions: Count = 0
    tokens: int = 0
    local: int = 0
    external: int = 0
    waiting: int = 0  # external groups left in the pool
    by_specialty: dict[str, float] = {}  # title -> mean reward
    metrics: Metrics = Metrics()


class HeldOutScore(msgspec.Struct, frozen=True, kw_only=True):
    """Right answers on reserved questions, sampled once each at temperature 1."""

    round: int
    at: Moment
    right: int
    total: int
    exam: str = ""  # the same for the same questions; empty: measured before exams were told apart


class Aha(msgspec.Struct, frozen=True, kw_only=True):
    """The first right answer in a specialty, and the peer whose right answer there was learned from last before it."""

    round: int
    at: Moment
    specialty: str
    origin: str = ""  # empty: found alone
    name: str = ""


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One peer as this node knows it. Counts are of groups; `mean_reward` is as we judge its completions."""

    id: str
    name: str
    connection: Connection = "direct"
    model: str = ""
    round: int = 0
    received: int = 0
    useful: int = 0  # of received: with a nonzero advantage
    used: int = 0  # of received: trained on here
    taken: int = 0  # our groups that this peer pulled
    rejected: int = 0  # records or groups refused
    reason: str = ""  # of the last refusal, in our words
    refusal: str = ""  # why it cannot train with this node at all
    doubted_until: float = 0.0  # not asked for groups before
    trusted: bool = False  # it was of use, and is asked first
    barren: bool = False  # most of its groups that rounds looked at taught nothing, whatever their rewards promised
    choice: Choice = ""
    mean_reward: float = 0.0
    delay_ms: float | None = None
    seen_at: Moment = 0.0


# --- life of the engine ------------------------------------------------------------------------------------------


class Preparing(Event, frozen=True, kw_only=True, tag=True):
    """Start-up went on to this part: `done` of `parts` are behind us. `long`: it may take hours, and a pause holds it."""

    part: str
    done: int
    parts: int
    long: bool = False


class Downloading(Event, frozen=True, kw_only=True, tag=True):
    """More of a model has come: bytes that are here, of all. At most once a second and once for each hundredth."""

    model: str
    done: Count
    total: Count
    seconds_left: float | None = None  # None: not known yet


class Ready(Event, frozen=True, kw_only=True, tag=True):
    """Everything is loaded. Carries what menus need."""

    protocol: int
    version: str
    node: str  # peer id as text
    name: str  # friendly name made from the key
    swarm: str
    charter: str  # hex
    specialties: tuple[SpecialtyInfo, ...]
    model: str
    base: str = ""  # what tells two models of one name apart
    model_note: str  # what a person should know about this model, one sentence
    backend: str
    device: str
    device_reason: str
    threads: int
    cores: int
    round: int  # the next round to play
    completions: int  # made so far, all time
    group_size: int
    parameters: int


class PhaseChanged(Event, frozen=True, kw_only=True, tag=True):
    """Contribution went on, was paused, is being finished ... `until`: unix seconds at which a pause ends by itself."""

    phase: Phase
    round: int
    until: float | None = None


class RulesChecked(Event, frozen=True, kw_only=True, tag=True):
    """What the rules, this computer and the person say now; told whenever that differs from before."""

    decision: Decision


class SettingsChanged(Event, frozen=True, kw_only=True, tag=True):
    """All settings, at the start and after each change. `after_restart` names those that wait for the engine's next start."""

    settings: Settings
    after_restart: tuple[str, ...] = ()


class EngineStopped(Event, frozen=True, kw_only=True, tag=True):
    """The last event of an orderly end."""

    round: int


class EngineFailed(Event, frozen=True, kw_only=True, tag=True):
    """The last event of a run that could not go on."""

    title: str
    advice: str
    detail: str = ""


class EngineGone(Event, frozen=True, kw_only=True, tag=True):
    """Fed in by the window itself: the engine's process ended with this code and was started again so many times.

    With a `host` it is the connection to that which broke so many times.
    """

    code: int
    restarts: int
    host: str = ""


class Warned(Event, frozen=True, kw_only=True, tag=True):
    """Something a person should know; contribution goes on."""

    title: str
    advice: str = ""


class PartRestarted(Event, frozen=True, kw_only=True, tag=True):
    part: Literal["verifier", "network"]
    reason: str


# --- the round ---------------------------------------------------------------------------------------------------


class QuestionsDrawn(Event, frozen=True, kw_only=True, tag=True):
    round: int
    epoch: int
    groups: tuple[ShownGroup, ...]  # without completions
    group_size: GroupSize


class CompletionsGrew(Event, frozen=True, kw_only=True, tag=True):
    """At most ten times a second: (question, completion, whole text so far, ended) of every row that grew."""

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
    """The training set was put together: counts of groups, and how many external ones are left waiting."""

    round: int
    local: int
    external: int
    waiting: int
    refused: dict[str, int] = {}  # external groups by the reason why nothing of them is learned, see sapo/selection.py
    refused_by_peer: dict[str, dict[str, Count]] = {}  # the same, by peer id first


class PolicyUpdated(Event, frozen=True, kw_only=True, tag=True):
    """One optimiser step was taken (or skipped: no group taught anything, `step` did not grow)."""

    round: int
    step: int
    metrics: Metrics
    lessons: tuple[Lesson, ...]


class RoundCompleted(Event, frozen=True, kw_only=True, tag=True):
    summary: RoundSummary


class AhaHappened(Event, frozen=True, kw_only=True, tag=True):
    aha: Aha


class HeldOutMeasured(Event, frozen=True, kw_only=True, tag=True):
    score: HeldOutScore


class CheckpointSaved(Event, frozen=True, kw_only=True, tag=True):
    round: int
    bytes: int


class CheckpointSetAside(Event, frozen=True, kw_only=True, tag=True):
    """A saved state could not be read; the one before it was taken."""

    folder: str
    reason: str


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
    """A peer's groups were pulled, verified and judged here. Those to be read, and how many `more` there were."""

    origin: str
    name: str
    round: int
    model: str
    groups: tuple[ShownGroup, ...]
    more: Count = 0


class RecordRejected(Event, frozen=True, kw_only=True, tag=True):
    """Something from a peer broke a rule and was dropped: a whole message, or `count` groups of one."""

    origin: str
    reason: str
    count: Count = 1


class TrafficMeasured(Event, frozen=True, kw_only=True, tag=True):
    """Payload bytes per second over the last few seconds."""

    up: float
    down: float


# --- answers to commands -----------------------------------------------------------------------------------------


class CommandDone(Event, frozen=True, kw_only=True, tag=True):
    id: str


class CommandRefused(Event, frozen=True, kw_only=True, tag=True):
    id: str
    title: str
    advice: str = ""


class HistoryTold(Event, frozen=True, kw_only=True, tag=True):
    """Long charts: all rounds so far and all held-out scores, each thinned evenly to at most 1,000, and every aha."""

    rounds: tuple[RoundSummary, ...]
    held_out: tuple[HeldOutScore, ...]
    ahas: tuple[Aha, ...] = ()


EngineEvent = (  # all but Snapshot, which carries a State and so stands beside it
    Preparing | Downloading | Ready | PhaseChanged | RulesChecked | SettingsChanged | EngineStopped | EngineFailed
    | EngineGone | Warned | PartRestarted | QuestionsDrawn | CompletionsGrew | GroupsJudged | GroupsShared | GroupsGathered
    | PolicyUpdated | RoundCompleted | HeldOutMeasured | AhaHappened | CheckpointSaved | CheckpointSetAside | ReachChanged
    | PeerChanged | PeerGroupsArrived | RecordRejected | TrafficMeasured | CommandDone | CommandRefused | HistoryTold
)  # fmt: skip
