"""Standing: what this node knows of each peer from its own experience. Local; nobody's word counts but our verifier's."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from waggle.rl.advantage import teaches
from waggle.swarm.identity import name_of
from waggle.tasks.group import JudgedGroup

MAX_PEERS = 500

Route = Literal["direct", "relay", "gone"]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One peer. Counts are of groups, but `rejected` counts records and groups refused."""

    id: bytes
    name: str
    connection: Route = "gone"
    model: str = ""
    round: int = 0
    received: int = 0
    useful: int = 0  # of received: rewards that differ enough to teach
    used: int = 0  # of received: trained on here
    taken: int = 0  # our groups that this peer pulled
    rejected: int = 0
    mean_reward: float = 0.0  # of its completions, as we judge them
    delay_ms: float | None = None
    seen_at: float = 0.0  # unix seconds


class Trust:
    """The standing of at most 500 peers, the longest unseen forgotten first. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._peers: dict[bytes, Standing] = {}
        self._changed: dict[bytes, None] = {}  # a set that keeps its order

    def received(self, origin: bytes, round_number: int, model: str, groups: Sequence[JudgedGroup]) -> None:
        """Count groups that arrived and were judged."""
        with self._lock:
            peer = self._of(origin)
            total = peer.received + len(groups)
            means = sum(sum(group.rewards) / len(group.rewards) for group in groups)
            self._keep(
                peer,
                round=round_number,
                model=model,
                received=total,
                useful=peer.useful + sum(teaches(group.rewards) for group in groups),
                mean_reward=(peer.mean_reward * peer.received + means) / total if total else 0.0,
                seen_at=self._clock(),
            )

    def used(self, origin: bytes, groups: int) -> None:
        """Count groups of this peer that were trained on here."""
        with self._lock:
            peer = self._of(origin)
            self._keep(peer, used=peer.used + groups)

    def taken(self, peer_id: bytes, groups: int) -> None:
        """Count groups of ours that this peer pulled."""
        with self._lock:
            peer = self._of(peer_id)
            self._keep(peer, taken=peer.taken + groups, seen_at=self._clock())

    def rejected(self, origin: bytes, count: int = 1) -> None:
        """Count what this peer sent and we refused."""
        with self._lock:
            peer = self._of(origin)
            self._keep(peer, rejected=peer.rejected + count)

    def answered(self, peer_id: bytes, delay_ms: float) -> None:
        """A ping came back."""
        with self._lock:
            self._keep(self._of(peer_id), delay_ms=delay_ms, seen_at=self._clock())

    def connected(self, peers: dict[bytes, Route]) -> None:
        """These are connected now; all others are gone."""
        with self._lock:
            for peer_id, path in peers.items():
                self._keep(self._of(peer_id), connection=path)
            for peer in list(self._peers.values()):
                if peer.id not in peers:
                    self._keep(peer, connection="gone")

    def changed(self) -> list[Standing]:
        """Everyone whose standing changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, {}
            return [self._peers[peer_id] for peer_id in changed if peer_id in self._peers]

    def _of(self, peer_id: bytes) -> Standing:
        return self._peers.get(peer_id) or Standing(id=peer_id, name=name_of(peer_id))

    def _keep(self, peer: Standing, **changes: object) -> None:
        after = msgspec.structs.replace(peer, **changes)
        if after == self._peers.get(peer.id):
            return
        self._peers[peer.id] = after
        self._changed[peer.id] = None
        if len(self._peers) > MAX_PEERS:
            longest_unseen = min(self._peers.values(), key=lambda each: (each.id == peer.id, each.seen_at))
            del self._peers[longest_unseen.id]
