"""How the model of a node learns, as the status page and its figures for programs show it. A seed has no such figures."""

import msgspec


class SpecialtyScore(msgspec.Struct, frozen=True, kw_only=True):
    """Right answers to the reserved questions of one specialty."""

    dataset: str
    title: str
    right: int
    total: int


class AhaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The first right answer in a specialty, by its title. Before, the model had learned from a right answer of `origin`."""

    specialty: str
    at: float  # unix seconds
    origin: str = ""  # in base58; empty: no peer's


class HeldOutStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The newest held-out score. `early`: on a few of the questions; `specialties` is empty if they were not counted."""

    round: int
    right: int
    total: int
    early: bool = False
    specialties: tuple[SpecialtyScore, ...] = ()


class TrainingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the last round are None before there was one. `says` is a sentence of ours about now."""

    name: str
    fingerprint: str  # of its key
    model: str
    device: str
    phase: str
    says: str
    company: str  # solo, connecting, alone, together
    connected: int  # peers
    members: int  # of those connected, they train with this node
    round: int  # in progress
    reward: float | None = None
    solved: float | None = None
    external_share: float | None = None  # of the pull on the weights
    learning_rate: float | None = None
    entropy: float | None = None  # nats per token
    tokens_per_second: float | None = None
    memory: int | None = None  # bytes
    held_out: HeldOutStatus | None = None
    rewards: tuple[tuple[int, float], ...] = ()  # (round, mean reward), thinned, oldest first
    ahas: tuple[AhaStatus, ...] = ()
    scores: tuple[tuple[int, float], ...] = ()  # (round, held-out share) on the questions of `held_out`, oldest first
