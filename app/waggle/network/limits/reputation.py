"""Reputation: what this node thinks of each peer, from its own experience. It stays local: no other node's opinion counts."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from waggle.core.message import NOTHING, Message
from waggle.network.identity.keys import name_of
from waggle.network.limits.address_ranges import RELAYED, Route
from waggle.network.limits.rate_limits import Payers
from waggle.rl.advantage import teaches
from waggle.tasks.rollout_group import NEWCOMERS, JudgedGroup

MAX_PEERS = 500
# Trusted peers that are gone keep at most half of the places: many never return, and newcomers need places as well.
MAX_ABSENT = MAX_PEERS // 2
KNOWN_FROM = 3  # judged records; with fewer a peer is a newcomer
# A peer is trusted from so many useful groups on; they must also be TRUSTED_SHARE times its refusals, and one in TRUSTED_PART
# of everything it sent, so a peer that floods useless groups loses its trust again.
TRUSTED_FROM = 8
TRUSTED_SHARE = 20
TRUSTED_PART = 50
DOUBT_S = 60.0  # how long a peer is not asked after its first offence; each further offence doubles it
MAX_STRIKES = 10  # doublings: 60 s * 2**10 is most of a day
FORGIVEN_S = 86_400.0  # so long after the doubt has ended, the next offence counts as the first

Choice = Literal["", "muted", "blocked"]
Count = Annotated[int, msgspec.Meta(ge=0)]


class PeerReputation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One peer. Counts are of groups, except `records`; `rejected` counts refused records and refused groups.

    The fields are those of the reputation file.
    """

    id: bytes
    name: str  # of its key
    chosen_name: str = ""  # by its person, for the members of this private swarm
    connection: Route = "gone"
    source: str = RELAYED  # address range; empty: the peer counts for itself (address_ranges.py). Unknown counts as relayed
    model: str = ""
    round: Count = 0
    records: Count = 0  # records with something new that were judged
    received: Count = 0  # groups in these records
    useful: Count = 0  # of received: rewards differ enough to teach
    used: Count = 0  # of received: trained on here
    idle: Count = 0  # of received: a round looked at them and could learn nothing
    taken: Count = 0  # our groups that this peer pulled
    rejected: Count = 0
    reason: Message = NOTHING  # of the last rejection, in our words
    refusal: Message = NOTHING  # why we cannot train together at all
    strikes: Count = 0
    doubted_until: float = 0.0  # unix seconds
    choice: Choice = ""  # of the person at this node
    mean_reward: float = 0.0  # of its completions, as our verifier judges them
    delay_ms: float | None = None
    seen_at: float = 0.0  # unix seconds

    @property
    def known(self) -> bool:
        """Whether the peer has been here for a while. Names cost nothing, and one flood of groups makes no peer known."""
        return self.records >= KNOWN_FROM

    @property
    def party(self) -> str:
        """The party whose limits the peer shares: its address range, or all newcomers; empty if it counts for itself."""
        return self.source or ("" if self.known else NEWCOMERS)

    @property
    def payers(self) -> Payers:
        """Who pays for bytes pulled from the peer and for the verifier's time, and the crowd that pays with it (JointRateLimit).

        An address range has one owner: its strangers are one payer; its trusted peers pay for themselves, and share a limit with
        these strangers. Relayed peers and peers at home know nothing of each other, so each pays for itself, and only a crowd
        rests as a whole: all strangers, or all trusted peers, who have more (FRIENDS), because a few slow ones must not make all
        others rest. A new name costs less than a connection, so what comes under a name never met costs no relayed peer.
        """
        if self.source not in ("", RELAYED):
            return self.id if self.trusted else self.source, self.source
        gone = self.connection == "gone" and self.source == RELAYED
        crowd = self.connection if gone else self.source or NEWCOMERS
        return self.id, f"trusted {crowd}" if self.trusted else crowd

    @property
    def barren(self) -> bool:
        """Whether most groups that rounds looked at taught nothing, whatever their rewards: too unfamiliar, too long."""
        return self.idle >= TRUSTED_FROM and self.idle > self.used

    @property
    def trusted(self) -> bool:
        """Whether the peer was of use, by its rewards and to our rounds, and honest."""
        useful = self.useful >= max(TRUSTED_FROM, TRUSTED_SHARE * self.rejected, self.received / TRUSTED_PART)
        return self.known and useful and not self.barren

    @property
    def blocked(self) -> bool:
        """Whether the person blocked the peer, so that its calls are not answered."""
        return self.choice == "blocked"

    def is_doubted(self, now: float) -> bool:
        """Whether its last offence is so recent at unix time `now` that it is not asked."""
        return self.doubted_until > now


class ReputationTable:
    """The reputations of at most MAX_PEERS peers. Iterating yields a copy. Thread-safe.

    The table forgets peers that are gone first, those longest unseen before others; then trusted ones; peers about which a
    person decided last. Trusted peers that are gone make room first where they hold more than MAX_ABSENT places.
    """

    def __init__(self, clock: Callable[[], float] = time.time, known: Iterable[PeerReputation] = ()) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        latest = clock() + DOUBT_S * 2**MAX_STRIKES  # if the clock was far ahead once, no peer is doubted for years
        self._peers = {
            peer.id: msgspec.structs.replace(
                peer, chosen_name="", connection="gone", refusal="", doubted_until=min(peer.doubted_until, latest)
            )
            for peer in known
        }

    def __iter__(self) -> Iterator[PeerReputation]:
        with self._lock:
            return iter(list(self._peers.values()))

    def of(self, peer_id: bytes) -> PeerReputation:
        """The reputation of a peer; a blank one for a peer never met."""
        with self._lock:
            return self._of(peer_id)

    def avoided(self) -> set[bytes]:
        """Peers not to ask for groups: muted, blocked, of another charter, or doubted."""
        now = self._clock()
        return {peer.id for peer in self if peer.choice or peer.refusal or peer.is_doubted(now)}

    def record_groups(self, origin: bytes, round_number: int, model: str, groups: Sequence[JudgedGroup]) -> None:
        """Count groups that arrived and were judged."""
        with self._lock:
            peer = self._of(origin)
            total = peer.received + len(groups)
            means = sum(sum(group.rewards) / len(group.rewards) for group in groups)
            self._update(
                peer,
                round=round_number,
                model=model,
                records=peer.records + 1,
                received=total,
                useful=peer.useful + sum(teaches(group.rewards) for group in groups),
                mean_reward=(peer.mean_reward * peer.received + means) / total if total else 0.0,
                seen_at=self._clock(),
            )

    def record_training(self, origin: bytes, *, used: int = 0, idle: int = 0) -> None:
        """Count groups of this peer that a round trained on (`used`), or could learn nothing from (`idle`)."""
        with self._lock:
            peer = self._of(origin)
            self._update(peer, used=peer.used + used, idle=peer.idle + idle)

    def record_pull(self, peer_id: bytes, groups: int) -> None:
        """Count groups of ours that this peer pulled."""
        with self._lock:
            peer = self._of(peer_id)
            self._update(peer, taken=peer.taken + groups, seen_at=self._clock())

    def record_rejection(self, origin: bytes, reason: str, count: int = 1) -> float:
        """Count an offence: this node refused something from the peer, and does not ask it for a while, longer each time.

        Returns for how many seconds.
        """
        with self._lock:
            peer, now = self._of(origin), self._clock()
            strikes = 0 if now > peer.doubted_until + FORGIVEN_S else peer.strikes
            pause_s: float = DOUBT_S * 2**strikes
            self._update(
                peer,
                rejected=peer.rejected + count,
                reason=reason,
                strikes=min(strikes + 1, MAX_STRIKES),
                doubted_until=now + pause_s,
            )
            return pause_s

    def record_handshake(self, peer_id: bytes, refusal: str) -> None:
        """Note a handshake; `refusal` is why the peer cannot train with this node, or empty."""
        with self._lock:
            self._update(self._of(peer_id), refusal=refusal, seen_at=self._clock())

    def record_name(self, peer_id: bytes, name: str) -> None:
        """Note the name that a peer chose in this swarm; nothing for a peer that is not in the table."""
        with self._lock:
            if peer_id in self._peers:
                self._update(self._peers[peer_id], chosen_name=name)

    def clear_refusals(self, peers: Iterable[bytes]) -> None:
        """Forget the refusals of peers that now announce under our charter."""
        with self._lock:
            for peer_id in peers:
                if peer_id in self._peers:
                    self._update(self._peers[peer_id], refusal="")

    def record_ping(self, peer_id: bytes, delay_ms: float) -> None:
        """Note an answered ping."""
        with self._lock:
            self._update(self._of(peer_id), delay_ms=delay_ms, seen_at=self._clock())

    def update_connections(self, peers: dict[bytes, tuple[Route, str]]) -> None:
        """Set who is connected now, each with its route and address range; all others are gone.

        Newcomers take the places of peers that are gone, never of each other: those without a place stay unknown.
        """
        with self._lock:
            for peer in list(self._peers.values()):
                route, source = peers.get(peer.id, ("gone", peer.source))
                self._update(peer, connection=route, source=source)
            new = [peer_id for peer_id in peers if peer_id not in self._peers]
            for peer in self._spare()[: max(0, len(self._peers) + len(new) - MAX_PEERS)]:
                del self._peers[peer.id]
            for peer_id in new[: max(0, MAX_PEERS - len(self._peers))]:
                route, source = peers[peer_id]
                self._update(self._of(peer_id), connection=route, source=source)

    def set_choice(self, peer_id: bytes, choice: Choice) -> None:
        """Mute a peer (nothing is learned from it), block it (it gets nothing either), or neither."""
        with self._lock:
            self._update(self._of(peer_id), choice=choice)

    def _of(self, peer_id: bytes) -> PeerReputation:
        return self._peers.get(peer_id) or PeerReputation(id=peer_id, name=name_of(peer_id))

    def _update(self, peer: PeerReputation, **changes: object) -> None:
        after = msgspec.structs.replace(peer, **changes)
        if after == self._peers.get(peer.id):
            return
        self._peers[peer.id] = after
        if len(self._peers) > MAX_PEERS:
            others = [each for each in self._peers.values() if each.id != peer.id]
            spare = [each for each in self._spare() if each.id != peer.id] or sorted(
                others, key=lambda each: (bool(each.choice), each.trusted, each.connection != "gone", each.seen_at)
            )
            del self._peers[spare[0].id]

    def _spare(self) -> list[PeerReputation]:
        """The peers that are gone and may be forgotten, in the order in which they make room."""
        gone = [peer for peer in self._peers.values() if peer.connection == "gone" and not peer.choice]
        gone.sort(key=lambda peer: peer.seen_at)
        trusted = [peer for peer in gone if peer.trusted]
        return trusted[: max(0, len(trusted) - MAX_ABSENT)] + [peer for peer in gone if not peer.trusted]


def trusted_peers(peers: Iterable[PeerReputation]) -> set[bytes]:
    """The peers that have been of use so far."""
    return {peer.id for peer in peers if peer.trusted}
