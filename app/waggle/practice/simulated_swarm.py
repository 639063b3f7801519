"""A simulated swarm: groups travel between nodes of one process with delay and loss, into the engine's own pools."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from waggle.core.errors import LabError
from waggle.network.exchange.pool import CAPACITY, GroupPool, PoolState
from waggle.rl.random_streams import generator
from waggle.tasks.charter import Charter
from waggle.tasks.questions import EPOCH_SECONDS
from waggle.tasks.rollout_group import Group, JudgedGroup


@dataclass(frozen=True)
class Weather:
    """The conditions of the simulated network. Rates are per round; a node plays `speeds` rounds in one tick, at most 1."""

    delay: int = 1  # ticks until a group can be trained on
    loss: float = 0.0  # share of groups lost on the way to each reader
    offline: float = 0.0  # share of ticks in which a node neither plays nor receives
    speeds: tuple[float, ...] = (1.0,)  # node i plays at speeds[i % len]
    pool: int = CAPACITY  # groups that wait at a node; if it trains on few of them, most are old

    def __post_init__(self) -> None:
        shares = (self.loss, self.offline)
        if (
            min(self.delay, self.pool) < 1
            or not all(0 <= share < 1 for share in shares)
            or not all(0 < speed <= 1 for speed in self.speeds)
        ):
            raise LabError(
                "A swarm needs a delay and a pool of at least 1, loss and offline below 1 and speeds above 0, at most 1."
            )


@dataclass(frozen=True)
class Parcel:
    """Judged groups of one node on their way to one reader."""

    due: int
    groups: tuple[JudgedGroup, ...]


class SwarmState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A swarm between two ticks: of each node its pool, and the parcels on their way to it."""

    tick: int
    pools: tuple[PoolState, ...]
    parcels: tuple[tuple[Parcel, ...], ...]


class SimulatedSwarm:
    """N nodes' connections in one simulated swarm, and its clock. A tick is the time that a fast node needs for one round."""

    def __init__(
        self, charter: Charter, count: int, weather: Weather, *, seed: int, tick_seconds: float, crumb_span: float
    ) -> None:
        self.weather, self._seed, self._tick_seconds = weather, seed, tick_seconds
        self.tick = 0
        self.connections = [
            SimulatedConnection(GroupPool(charter, weather.pool, self.clock, crumb_span=crumb_span)) for _ in range(count)
        ]
        self._shared: list[tuple[int, tuple[JudgedGroup, ...]]] = []
        self._online = self._draw_online()

    def clock(self) -> float:
        """Simulated unix time."""
        return EPOCH_SECONDS * 2_000_000 + self.tick * self._tick_seconds

    def players(self) -> list[int]:
        """The numbers of the nodes that play a round in this tick."""
        return [i for i, online in enumerate(self._online) if online and self._turn(i)]

    def send(self, member: int, groups: Sequence[JudgedGroup]) -> None:
        """Accept the groups that a node shared in this tick. Pools are filled in the order of the calls."""
        self._shared.append((member, tuple(groups)))

    def advance(self) -> None:
        """End the tick: send the shared groups, advance the clock, deliver what is due."""
        shared, self._shared = self._shared, []
        for sender, groups in shared:
            for reader, connection in enumerate(self.connections):
                if reader != sender:
                    connection.post(Parcel(self.tick + self.weather.delay, self._survivors(sender, reader, groups)))
        self.tick += 1
        self._online = self._draw_online()
        for connection, online in zip(self.connections, self._online, strict=True):
            if online:
                connection.deliver(self.tick)

    def state(self) -> SwarmState:
        """What `restore` takes. Call it between two ticks."""
        pools, parcels = zip(*(connection.state() for connection in self.connections), strict=True)
        return SwarmState(self.tick, pools, parcels)

    def restore(self, state: SwarmState) -> None:
        """Go on from there, with as many nodes and the same weather."""
        self.tick = state.tick
        self._online = self._draw_online()
        for connection, pool, parcels in zip(self.connections, state.pools, state.parcels, strict=True):
            connection.restore(pool, parcels)

    def _turn(self, member: int) -> bool:
        speed = self.weather.speeds[member % len(self.weather.speeds)]
        return int((self.tick + 1) * speed) > int(self.tick * speed)

    def _draw_online(self) -> list[bool]:
        noise = generator(self._seed, "weather", self.tick)
        return [bool(chance >= self.weather.offline) for chance in noise.random(len(self.connections))]

    def _survivors(self, sender: int, reader: int, groups: tuple[JudgedGroup, ...]) -> tuple[JudgedGroup, ...]:
        if not self.weather.loss:
            return groups
        chances = generator(self._seed, "weather", self.tick, sender, reader).random(len(groups))
        return tuple(group for group, chance in zip(groups, chances, strict=True) if chance >= self.weather.loss)


class SimulatedConnection:
    """One node's connection: a `sapo.interfaces.Swarm`."""

    def __init__(self, pool: GroupPool) -> None:
        self._pool = pool
        self._parcels: list[Parcel] = []

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Counts only, characters as bytes. Groups travel by `send`, already judged: every reader would judge the same."""
        return len(groups), sum(len(completion.text) for group in groups for completion in group.completions)

    def waiting(self) -> Sequence[JudgedGroup]:
        return self._pool.waiting()

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        self._pool.take(groups)

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        self._pool.take(groups)

    def state(self) -> tuple[PoolState, tuple[Parcel, ...]]:
        """The pool, and the parcels on their way here."""
        return self._pool.state(), tuple(self._parcels)

    def restore(self, pool: PoolState, parcels: Sequence[Parcel]) -> None:
        """Take the place of what is here."""
        self._pool.restore(pool)
        self._parcels = list(parcels)

    def post(self, parcel: Parcel) -> None:
        """Put a parcel on its way here."""
        self._parcels.append(parcel)

    def deliver(self, tick: int) -> None:
        """Put the groups that are due into the pool."""
        due = [parcel for parcel in self._parcels if parcel.due <= tick]
        self._parcels = [parcel for parcel in self._parcels if parcel.due > tick]
        for parcel in due:
            self._pool.add(parcel.groups)
