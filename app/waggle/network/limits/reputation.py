"""Standing: what this node knows of each peer from its own experience. Local; nobody's word counts but our verifier's."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from waggle.network.identity.keys import name_of
from waggle.network.limits.address_ranges import RELAYED, Route
from waggle.network.limits.rate_limits import Payers
from waggle.rl.advantage import teaches
from waggle.tasks.rollout_group import NEWCOMERS, JudgedGroup

MAX_PEERS = 500
MAX_ABSENT = MAX_PEERS // 2  # trusted peers that are gone: many never return, and newcomers need places as well
KNOWN_FROM = 3  # records that were judged here: up to then a peer is a newcomer
TRUSTED_FROM = 8  # groups of use, and
TRUSTED_SHARE = 20  # as many times those refused, and
TRUSTED_PART = 50  # one in so many of all that came: whoever sends what is of no use loses it again
TELL_S = 15.0  # between two tellings of nothing but a sign of life
DOUBT_S = 60.0  # without asking a peer after its first offence; twice as long after each further one
MOST_STRIKES = 10  # 60 s * 2**10: most of a day
FORGIVEN_S = 86_400.0  # after the doubt has ended: the next offence is a first one again

Choice = Literal["", "muted", "blocked"]
Count = Annotated[int, msgspec.Meta(ge=0)]


class PeerReputation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One peer. Counts are of groups, but `rejected` counts records and groups refused."""

    id: bytes
    name: str
    connection: Route = "gone"
    source: str = RELAYED  # its address range, or empty: itself (see address_ranges.py); unknown counts as relayed
    model: str = ""
    round: Count = 0
    records: Count = 0  # of it that brought something new and were judged
    received: Count = 0  # groups in them
    useful: Count = 0  # of received: rewards that differ enough to teach
    used: Count = 0  # of received: trained on here
    idle: Count = 0  # of received: looked at for that, and nothing could be learned from them
    taken: Count = 0  # our groups that this peer pulled
    rejected: Count = 0
    reason: str = ""  # of the last rejection, in our words
    refusal: str = ""  # why we cannot train together at all
    strikes: Count = 0
    doubted_until: float = 0.0  # unix seconds
    choice: Choice = ""  # a person's
    mean_reward: float = 0.0  # of its completions, as we judge them
    delay_ms: float | None = None
    seen_at: float = 0.0  # unix seconds

    @property
    def known(self) -> bool:
        """Whether it has been here for a while: a name is made in no time, and one flood of groups makes nobody known."""
        return self.records >= KNOWN_FROM

    @property
    def party(self) -> str:
        """Together with whom it is bounded: its address range, all newcomers where it has none; empty: it counts for itself."""
        return self.source or ("" if self.known else NEWCOMERS)

    @property
    def payers(self) -> Payers:
        """Who answers for what is pulled, and the verifier's time, and together with whom: see `Joint`.

        An address range has one owner: all its strangers are one payer, and those trusted, who pay for themselves, have a bound
        together with them. Those who are relayed, or at home, know nothing of each other: each pays for itself, and only a
        crowd rests as a whole, of strangers, or of those trusted: these have more (see `FRIENDS`), for a few slow ones must not
        make all others rest. A name never met is made faster than a connection: what comes under it costs nobody relayed.
        """
        if self.source not in ("", RELAYED):
            return self.id if self.trusted else self.source, self.source
        gone = self.connection == "gone" and self.source == RELAYED
        crowd = self.connection if gone else self.source or NEWCOMERS
        return self.id, f"trusted {crowd}" if self.trusted else crowd

    @property
    def barren(self) -> bool:
        """Whether most that rounds looked at taught nothing here, whatever its rewards promised: too strange, too long."""
        return self.idle >= TRUSTED_FROM and self.idle > self.used

    @property
    def trusted(self) -> bool:
        """Whether it has been of use, by its rewards and to our rounds, and honest while it was."""
        useful = self.useful >= max(TRUSTED_FROM, TRUSTED_SHARE * self.rejected, self.received / TRUSTED_PART)
        return self.known and useful and not self.barren


class ReputationTable:
    """The standing of at most 500 peers. Those gone are forgotten first, the longest unseen of them before others, those of use
    later, a person's choices last. Where more than half of the places are of those of use who are gone, these make room first.

    Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time, known: Iterable[PeerReputation] = ()) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        latest = clock() + DOUBT_S * 2**MOST_STRIKES  # a clock that was far ahead once must not doubt for years
        self._peers = {
            peer.id: msgspec.structs.replace(peer, connection="gone", refusal="", doubted_until=min(peer.doubted_until, latest))
            for peer in known
        }
        self._reported: dict[bytes, PeerReputation] = {}
        # A set that keeps its order. Of old acquaintances only those are told at once whom a person must be able to find.
        self._changed: dict[bytes, None] = dict.fromkeys(peer.id for peer in self._peers.values() if peer.choice)

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
                records=peer.records + 1,
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

    def idle(self, origin: bytes, groups: int) -> None:
        """Count groups of this peer that turned out to teach nothing here."""
        with self._lock:
            peer = self._of(origin)
            self._keep(peer, idle=peer.idle + groups)

    def record_pull(self, peer_id: bytes, groups: int) -> None:
        """Count groups of ours that this peer pulled."""
        with self._lock:
            peer = self._of(peer_id)
            self._keep(peer, taken=peer.taken + groups, seen_at=self._clock())

    def rejected(self, origin: bytes, reason: str, count: int = 1) -> None:
        """Count what this peer sent and we refused; it is not asked again for a while, longer each time."""
        with self._lock:
            peer, now = self._of(origin), self._clock()
            strikes = 0 if now > peer.doubted_until + FORGIVEN_S else peer.strikes
            self._keep(
                peer,
                rejected=peer.rejected + count,
                reason=reason,
                strikes=min(strikes + 1, MOST_STRIKES),
                doubted_until=now + DOUBT_S * 2**strikes,
            )

    def greeted(self, peer_id: bytes, refusal: str) -> None:
        """A peer said what it runs; `refusal` is why that does not go together with us, or empty."""
        with self._lock:
            self._keep(self._of(peer_id), refusal=refusal, seen_at=self._clock())

    def agree(self, peers: Iterable[bytes]) -> None:
        """These announce under our charter: what they said before no longer counts."""
        with self._lock:
            for peer_id in peers:
                if peer_id in self._peers:
                    self._keep(self._peers[peer_id], refusal="")

    def answered(self, peer_id: bytes, delay_ms: float) -> None:
        """A ping came back."""
        with self._lock:
            self._keep(self._of(peer_id), delay_ms=delay_ms, seen_at=self._clock())

    def connected(self, peers: dict[bytes, tuple[Route, str]]) -> None:
        """These are connected now, each with its route and source; all others are gone.

        Newcomers take the places of those who are gone, never of each other: more than there are places for stay unknown.
        """
        with self._lock:
            for peer in list(self._peers.values()):
                route, source = peers.get(peer.id, ("gone", peer.source))
                self._keep(peer, connection=route, source=source)
            new = [peer_id for peer_id in peers if peer_id not in self._peers]
            for peer in self._spare()[: max(0, len(self._peers) + len(new) - MAX_PEERS)]:
                self._forget(peer.id)
            for peer_id in new[: max(0, MAX_PEERS - len(self._peers))]:
                route, source = peers[peer_id]
                self._keep(self._of(peer_id), connection=route, source=source)

    def choose(self, peer_id: bytes, choice: Choice) -> None:
        """A person mutes a peer (it is not learned from), blocks it (it gets nothing either), or neither."""
        with self._lock:
            self._keep(self._of(peer_id), choice=choice)

    def of(self, peer_id: bytes) -> PeerReputation:
        """What is known of a peer; a blank standing for one never met."""
        with self._lock:
            return self._of(peer_id)

    def admits(self, peer_id: bytes) -> bool:
        """Whether this peer's calls are answered."""
        return self.of(peer_id).choice != "blocked"

    def welcome(self) -> set[bytes]:
        """Who is connected now, and neither in doubt nor muted or blocked."""
        with self._lock:
            now = self._clock()
            return {
                peer.id
                for peer in self._peers.values()
                if peer.connection != "gone" and not peer.choice and peer.doubted_until <= now
            }

    def avoided(self) -> set[bytes]:
        """Whom not to ask for groups: muted, blocked, of another charter, or in doubt."""
        with self._lock:
            now = self._clock()
            return {peer.id for peer in self._peers.values() if peer.choice or peer.refusal or peer.doubted_until > now}

    def trusted(self) -> set[bytes]:
        """Who has been of use so far."""
        with self._lock:
            return {peer.id for peer in self._peers.values() if peer.trusted}

    def barren(self) -> set[bytes]:
        """Whose groups teach nothing here, whatever their rewards promise."""
        with self._lock:
            return {peer.id for peer in self._peers.values() if peer.barren}

    def all(self) -> list[PeerReputation]:
        """Everyone, for keeping on disk."""
        with self._lock:
            return list(self._peers.values())

    def changed(self) -> list[PeerReputation]:
        """Everyone whose standing changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, {}
            peers = [self._peers[peer_id] for peer_id in changed if peer_id in self._peers]
            news = [peer for peer in peers if self._is_news(peer)]
            self._reported.update((peer.id, peer) for peer in news)
            return news

    def _is_news(self, peer: PeerReputation) -> bool:
        """Whether more than a sign of life changed since it was told, or that is a while ago."""
        before = self._reported.get(peer.id)
        if before is None or peer.seen_at - before.seen_at >= TELL_S:
            return True
        return msgspec.structs.replace(peer, seen_at=before.seen_at, delay_ms=before.delay_ms or peer.delay_ms) != before

    def _of(self, peer_id: bytes) -> PeerReputation:
        return self._peers.get(peer_id) or PeerReputation(id=peer_id, name=name_of(peer_id))

    def _keep(self, peer: PeerReputation, **changes: object) -> None:
        after = msgspec.structs.replace(peer, **changes)
        if after == self._peers.get(peer.id):
            return
        self._peers[peer.id] = after
        self._changed[peer.id] = None
        if len(self._peers) > MAX_PEERS:
            others = [each for each in self._peers.values() if each.id != peer.id]
            spare = [each for each in self._spare() if each.id != peer.id] or sorted(
                others, key=lambda each: (bool(each.choice), each.trusted, each.connection != "gone", each.seen_at)
            )
            self._forget(spare[0].id)

    def _spare(self) -> list[PeerReputation]:
        """Who of those gone makes room for others, the first to do so first."""
        gone = [peer for peer in self._peers.values() if peer.connection == "gone" and not peer.choice]
        gone.sort(key=lambda peer: peer.seen_at)
        trusted = [peer for peer in gone if peer.trusted]
        return trusted[: max(0, len(trusted) - MAX_ABSENT)] + [peer for peer in gone if not peer.trusted]

    def _forget(self, peer_id: bytes) -> None:
        del self._peers[peer_id]
        self._reported.pop(peer_id, None)
