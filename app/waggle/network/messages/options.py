"""What a person or a test may choose about the network part of a node."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class SwarmOptions:
    """Addresses are multiaddresses, seeds' ones ending in /p2p/<peer id>. All times are seconds."""

    host: str = "0.0.0.0"
    port: int = 0  # 0: any free one
    seeds: tuple[str, ...] = ()
    relay: bool = False  # let others be called through us: what a seed does, which must be reachable itself
    lan: bool = False  # find, and be found by, nodes on the local network
    upnp: bool = False  # ask the router to let calls through
    through: Literal["auto", "relay", "direct"] = "auto"  # be called through the seeds: where needed, always, never
    key: bytes = field(default=b"", repr=False)  # of a private swarm
    web_host: str = "127.0.0.1"
    web_port: int | None = None  # of the status page; None: none, 0: any free one
    gateway: bool = False  # serve light clients there; not where it is light itself
    gateways: tuple[str, ...] = ()  # ws:// or wss://, to take part through where peers cannot be reached
    light: bool = False  # do so in any case
    leaderboard: bool = False  # publish one's answers to each epoch's exam, and mark those of peers
    known_peers: Path | None = None  # where addresses met lately are kept, as extra seeds
    reputation_file: Path | None = None
    scores_file: Path | None = None  # scores of answer sheets
    peers_per_pull: int = 8  # K
    pool_capacity: int = 256  # groups
    tempo: float = 1.0  # between two looks into the directory while the pool is short
    patience: float = 4.0  # for one pull
    rejoin: float = 15.0  # between two attempts to join while nobody answers
