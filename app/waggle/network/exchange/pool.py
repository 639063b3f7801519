"""The pool: judged groups of peers that teach something and wait to be trained on. Bounded in total, per party and in age."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from waggle.core.peer_id import short_id
from waggle.network.limits.rate_limits import of_largest_holder
from waggle.network.messages.rollout_record import oldest_epoch
from waggle.rl.advantage import CRUMB_SPAN, teaches
from waggle.tasks.charter import Charter
from waggle.tasks.rollout_group import GroupKey, JudgedGroup

log = logging.getLogger(__name__)

CAPACITY = 256  # groups
REMEMBERED = 20_000  # groups that were here before, so that each is trained on at most once


class PoolState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The groups that wait, and the keys of all that were here lately, both oldest first."""

    waiting: tuple[JudgedGroup, ...]
    met: tuple[GroupKey, ...]


class GroupPool:
    """At most `capacity` groups, at most a quarter of them from any one party (a peer, or all peers of one address range).

    Thread-safe: the network adds, the round takes.
    """

    def __init__(
        self,
        charter: Charter,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.time,
        *,
        crumb_span: float = CRUMB_SPAN,
    ) -> None:
        self._charter = charter
        self._capacity = capacity
        self._per_source = max(1, capacity // 4)
        self._clock = clock
        self._crumb_span = crumb_span
        self._lock = threading.Lock()
        self._waiting: OrderedDict[GroupKey, JudgedGroup] = OrderedDict()
        self._met: OrderedDict[GroupKey, None] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._waiting)

    def add(self, groups: Iterable[JudgedGroup]) -> list[JudgedGroup]:
        """Add the groups that teach something; returns all that were never here before.

        If there is no room, the party with the most groups loses its oldest.
        """
        with self._lock:
            self._forget_old()
            fresh = [group for group in groups if self._meet(group.key)]
            for group in (candidate for candidate in fresh if teaches(candidate.rewards, self._crumb_span)):
                self._waiting[group.key] = group
                self._make_room(group.source or group.group.origin)
            return fresh

    def waiting(self) -> tuple[JudgedGroup, ...]:
        """All waiting groups, oldest first."""
        with self._lock:
            self._forget_old()
            return tuple(self._waiting.values())

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """Remove groups; those that are no longer here are ignored."""
        with self._lock:
            for group in groups:
                self._waiting.pop(group.key, None)

    def drop(self, origin: bytes) -> None:
        """Remove all groups of a peer."""
        with self._lock:
            keys = [key for key in self._waiting if key[0] == origin]
            for key in keys:
                del self._waiting[key]
        if keys:
            log.debug("%d waiting groups of peer %s leave the pool", len(keys), short_id(origin))

    def state(self) -> PoolState:
        """What `restore` takes."""
        with self._lock:
            return PoolState(tuple(self._waiting.values()), tuple(self._met))

    def restore(self, state: PoolState) -> None:
        """Take the place of what is here."""
        with self._lock:
            self._waiting = OrderedDict((group.key, group) for group in state.waiting)
            self._met = OrderedDict.fromkeys(state.met)

    def _meet(self, key: GroupKey) -> bool:
        if key in self._met:
            return False
        self._met[key] = None
        if len(self._met) > REMEMBERED:
            self._met.popitem(last=False)
        return True

    def _make_room(self, source: str | bytes) -> None:
        if len(self._from(source)) > self._per_source:
            self._drop_oldest_of_most(self._from(source))
        if len(self._waiting) > self._capacity:
            self._drop_oldest_of_most(of_largest_holder((key, group.source or key[0], 1) for key, group in self._waiting.items()))

    def _from(self, source: str | bytes) -> list[GroupKey]:
        return [key for key, group in self._waiting.items() if (group.source or key[0]) == source]

    def _drop_oldest_of_most(self, keys: Sequence[GroupKey]) -> None:
        """Drop the oldest group of the peer that has most of these."""
        key = of_largest_holder((key, key[0], 1) for key in keys)[0]
        del self._waiting[key]
        log.debug("the pool has no room: the oldest group of peer %s is dropped", short_id(key[0]))

    def _forget_old(self) -> None:
        oldest = oldest_epoch(self._charter, self._clock())
        keys = [key for key in self._waiting if key[1] < oldest]
        for key in keys:
            del self._waiting[key]
        if keys:
            log.debug("%d groups leave the pool: they are too old", len(keys))
