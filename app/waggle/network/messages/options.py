"""The options of a node's network part."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class SwarmOptions:
    """Addresses are multiaddresses; those of seeds end in /p2p/<peer id>. Times are in seconds."""

    host: str = "0.0.0.0"
    port: int = 0  # 0: any free port
    seeds: tuple[str, ...] = ()
    relay: bool = False  # relay calls to other nodes, as a seed does; this node must be reachable itself
    lan: bool = False  # find nodes on the local network, and be found by them
    upnp: bool = False  # ask the router to forward the port
    through: Literal["auto", "relay", "direct"] = "auto"  # be called through the seeds: if needed, always, never
    key: bytes = field(default=b"", repr=False)  # of a private swarm
    member_name: str = ""  # that the person chose in a private swarm; empty: that of the key
    web_host: str = "127.0.0.1"
    web_port: int | None = None  # of the status page; None: no page, 0: any free port
    class_page: bool = False  # serve the page of a class there, with an invite
    gateway: bool = False  # serve light clients there; ignored if this node is light itself
    gateways: tuple[str, ...] = ()  # ws:// or wss://, used if peers cannot be reached directly
    light: bool = False  # always use gateways only
    transport: str = ""  # a name in network/transport/choice.py; empty: gateways if this node is light, else hivemind
    leaderboard: bool = False  # publish answers to each epoch's exam, and score those of peers
    known_peers: Path | None = None  # file of recently used addresses, which serve as extra seeds
    reputation_file: Path | None = None
    home_salt: bytes = b""  # of this home alone: tells its earlier runs from copies of it
    scores_file: Path | None = None  # scores of answer sheets
    questions_folder: Path | None = None  # pieces of people's own questions
    peers_per_pull: int = 8  # K
    pool_capacity: int = 256  # groups
    tempo: float = 1.0  # between two reads of the directory while the pool is short
    patience: float = 4.0  # timeout of one pull
    rejoin: float = 15.0  # between two attempts to join while no peer answers
