"""Statistics of the swarm for the status page, as this node judged what it received."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec

from waggle.core.peer_id import short_id
from waggle.network.identity.keys import name_of
from waggle.network.limits.rate_limits import Party, of_largest_holder
from waggle.network.messages.comparison import Comparison
from waggle.network.messages.events import GroupsArrived, LeaderboardChanged, NetworkEvent, PeerChanged, RecordRejected
from waggle.network.web.model_names import vouched
from waggle.network.web.training_status import TrainingStatus
from waggle.tasks.charter import Charter

MINUTES = 60  # in the chart
PRESENT_S = 600.0  # how long a node counts as a member after its last sign of life
MAX_MEMBERS = 500


class MemberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose groups came here. `model` is what it claims to train; empty if nobody trusted vouches for this name."""

    name: str
    fingerprint: str = ""  # of its key; empty: from a version that did not show it
    model: str
    round: int
    groups: int
    reward: float
    seen_at: float  # unix seconds


class SpecialtyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One specialty in the last hour. `reward` is None without groups."""

    dataset: str
    title: str
    groups: int
    reward: float | None


class ModelStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    members: int
    reward: float


class SwarmStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the status page. `minutes` counts the groups of the last 60 minutes; the last minute has just begun.

    `training` is about the node itself; None: it trains nothing, as a seed.
    """

    swarm: str
    charter: str
    private: bool
    since: float
    at: float
    addresses: tuple[str, ...]
    members: tuple[MemberStatus, ...]
    models: tuple[ModelStatus, ...]
    specialties: tuple[SpecialtyStatus, ...]
    minutes: tuple[int, ...]
    groups: int
    dropped: int
    comparison: Comparison = Comparison()
    training: TrainingStatus | None = None

    @property
    def groups_per_minute(self) -> float:
        """The mean of the last five whole minutes, or of fewer after a start."""
        whole = min(5, max(1, int((self.at - self.since) // 60)))
        return sum(self.minutes[-1 - whole : -1]) / whole if self.at - self.since >= 60 else float(self.minutes[-1])


class SwarmStatistics:
    """Counts the node's news. Belongs to the event loop's thread. Its size is bounded, however many peers come."""

    def __init__(self, charter: Charter, clock: Callable[[], float] = time.time) -> None:
        self._charter = charter
        self._clock = clock
        self._since = clock()
        self._members: OrderedDict[bytes, MemberStatus] = OrderedDict()  # the one with the oldest groups first
        self._parties: dict[bytes, Party] = {}  # the party of each member
        self._trusted: set[bytes] = set()  # of the members
        self._minutes: dict[int, dict[str, tuple[int, float]]] = {}  # minute -> dataset -> groups, sum of their mean rewards
        self._groups = self._dropped = 0
        self._comparison = Comparison()

    def add(self, news: NetworkEvent) -> None:
        """Count one event."""
        match news:
            case GroupsArrived():
                self._count(news)
            case RecordRejected():
                self._dropped += 1
            case LeaderboardChanged(comparison=comparison):
                self._comparison = comparison
            case PeerChanged(peer=peer) if peer.id in self._members:
                self._members[peer.id] = msgspec.structs.replace(self._members[peer.id], seen_at=peer.seen_at)
                (self._trusted.add if peer.trusted else self._trusted.discard)(peer.id)
            case _:
                pass  # not about the swarm

    def status(self, addresses: tuple[str, ...], training: TrainingStatus | None = None) -> SwarmStatus:
        """The current figures, with those of the node itself if it trains."""
        now = self._clock()
        by_trusted = {self._members[peer_id].model for peer_id in self._trusted}
        members = tuple(
            sorted(
                (_vouched(member, by_trusted) for member in self._members.values() if now - member.seen_at < PRESENT_S),
                key=lambda member: -member.groups,
            )
        )
        this = int(now // 60)
        hour = [self._minutes.get(minute, {}) for minute in range(this - MINUTES + 1, this + 1)]
        return SwarmStatus(
            swarm=self._charter.name,
            charter=self._charter.digest.hex(),
            private=self._charter.is_private,
            since=self._since,
            at=now,
            addresses=addresses,
            members=members,
            models=_models(members),
            specialties=tuple(
                _specialty(
                    specialty.dataset, specialty.title, [each[specialty.dataset] for each in hour if specialty.dataset in each]
                )
                for specialty in self._charter.specialties
            ),
            minutes=tuple(sum(groups for groups, _ in minute.values()) for minute in hour),
            groups=self._groups,
            dropped=self._dropped,
            comparison=_compared(self._comparison, by_trusted),
            training=training,
        )

    def _count(self, news: GroupsArrived) -> None:
        now, means = self._clock(), [sum(group.rewards) / len(group.rewards) for group in news.groups]
        before = self._members.pop(news.origin, None)
        known = before.groups if before else 0
        total = known + len(means)
        reward = ((before.reward if before else 0.0) * known + sum(means)) / total if total else 0.0
        self._members[news.origin] = MemberStatus(
            name=name_of(news.origin), fingerprint=short_id(news.origin), model=news.model, round=news.round, groups=total,
            reward=reward, seen_at=now,
        )  # fmt: skip
        self._parties[news.origin] = next((group.source for group in news.groups), "") or news.origin
        if len(self._members) > MAX_MEMBERS:
            gone = of_largest_holder((origin, self._parties[origin], 1) for origin in self._members)[0]
            del self._members[gone], self._parties[gone]
            self._trusted.discard(gone)
        minute = self._minutes.setdefault(int(now // 60), {})
        for group, mean in zip(news.groups, means, strict=True):
            groups, rewards = minute.get(group.question.dataset, (0, 0.0))
            minute[group.question.dataset] = groups + 1, rewards + mean
        for old in [each for each in self._minutes if each <= int(now // 60) - MINUTES]:
            del self._minutes[old]
        self._groups += len(means)


def _vouched(member: MemberStatus, by_trusted: Collection[str]) -> MemberStatus:
    return msgspec.structs.replace(member, model=vouched(member.model, by_trusted))


def _compared(comparison: Comparison, by_trusted: Collection[str]) -> Comparison:
    """The comparison without the curves of models whose names nobody trusted vouches for."""
    return msgspec.structs.replace(
        comparison,
        curves=tuple(curve for curve in comparison.curves if vouched(curve.model, by_trusted)),
        entrants=tuple(msgspec.structs.replace(each, model=vouched(each.model, by_trusted)) for each in comparison.entrants),
    )


def _models(members: tuple[MemberStatus, ...]) -> tuple[ModelStatus, ...]:
    by_name: dict[str, list[float]] = {}
    for member in members:
        by_name.setdefault(member.model, []).append(member.reward)
    models = [
        ModelStatus(name=name, members=len(rewards), reward=sum(rewards) / len(rewards)) for name, rewards in by_name.items()
    ]
    return tuple(sorted(models, key=lambda model: (-model.members, model.name)))


def _specialty(dataset: str, title: str, counts: list[tuple[int, float]]) -> SpecialtyStatus:
    groups = sum(count for count, _ in counts)
    return SpecialtyStatus(
        dataset=dataset, title=title, groups=groups, reward=sum(rewards for _, rewards in counts) / groups if groups else None
    )
