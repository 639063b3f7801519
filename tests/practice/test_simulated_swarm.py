"""Test delay, loss, absence and speed in the simulated swarm."""

import pytest

from waggle.core.errors import LabError
from waggle.practice.simulated_swarm import SimulatedSwarm, Weather
from waggle.practice.trial import noise_seed, origin_of
from waggle.tasks.questions import Question, QuestionId, epoch_at
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.shipped_swarms import first_swarm


def hive(count: int = 3, **weather) -> SimulatedSwarm:
    return SimulatedSwarm(first_swarm(), count, Weather(**weather), seed=1, tick_seconds=6.0, crumb_span=0.2)


def group(hive: SimulatedSwarm, member: int, index: int, rewards=(1.0, 0.0)) -> JudgedGroup:
    rollout_group = Group(
        origin=origin_of(1, member),
        id=QuestionId("bf", epoch_at(hive.clock()), index),
        completions=tuple(Completion(text="x", ended=True) for _ in rewards),
    )
    question = Question(dataset="bf", seed=index, text="?")
    return JudgedGroup(group=rollout_group, question=question, verdicts=tuple(Verdict(reward=r, reason="") for r in rewards))


def waiting(hive: SimulatedSwarm) -> list[int]:
    return [len(connection.waiting()) for connection in hive.connections]


def test_a_group_reaches_everybody_else_after_the_delay_and_never_comes_back():
    swarm = hive(delay=2)
    swarm.send(0, [group(swarm, 0, 1)])
    arrivals = []
    for _ in range(3):
        swarm.advance()
        arrivals.append(waiting(swarm))
    assert arrivals == [[0, 0, 0], [0, 1, 1], [0, 1, 1]]


def test_what_teaches_nothing_does_not_wait_anywhere():
    swarm = hive()
    swarm.send(0, [group(swarm, 0, 1, (0.0, 0.0)), group(swarm, 0, 2, (0.05, 0.0))])
    swarm.advance()
    assert waiting(swarm) == [0, 0, 0]


def test_a_small_pool_keeps_what_is_newest():
    swarm = hive(pool=4)
    for index in range(6):
        for member in range(3):
            swarm.send(member, [group(swarm, member, index)])
        swarm.advance()
    ages = [5 - waiting.group.id.number for connection in swarm.connections for waiting in connection.waiting()]
    assert waiting(swarm) == [2, 2, 2], "one of each other node: a quarter of the pool"
    assert set(ages) == {0}


def test_loss_takes_its_share_for_each_reader_separately():
    swarm = hive(loss=0.3)
    for tick in range(40):
        swarm.send(0, [group(swarm, 0, 10 * tick + i) for i in range(5)])
        swarm.advance()
        for connection in swarm.connections[1:]:
            connection.delivered = getattr(connection, "delivered", 0) + len(connection.waiting())
            connection.take(connection.waiting())
    shares = [connection.delivered / 200 for connection in swarm.connections[1:]]
    assert all(0.55 < share < 0.85 for share in shares)
    assert shares[0] != shares[1]


def test_who_is_offline_neither_plays_nor_hears_until_back():
    swarm = hive(offline=0.5)
    absent = 0
    for tick in range(60):
        players = swarm.players()
        absent += 3 - len(players)
        if 0 in players:
            swarm.send(0, [group(swarm, 0, tick)])
        before = waiting(swarm)
        swarm.advance()
        for member in range(3):
            if member not in swarm.players():
                assert waiting(swarm)[member] == before[member]
    assert 60 < absent < 120
    assert waiting(swarm)[1] > 10


def test_a_slow_node_plays_fewer_rounds():
    swarm = hive(speeds=(1.0, 0.5, 0.25))
    played = [0, 0, 0]
    for _ in range(40):
        for member in swarm.players():
            played[member] += 1
        swarm.advance()
    assert played == [40, 20, 10]


def test_the_same_seed_brings_the_same_weather():
    def calendar() -> list[list[int]]:
        swarm = hive(offline=0.4)
        players = []
        for _ in range(20):
            players.append(swarm.players())
            swarm.advance()
        return players

    assert calendar() == calendar()


@pytest.mark.parametrize("wrong", [{"delay": 0}, {"loss": 1.0}, {"offline": -0.1}, {"speeds": (2.0,)}, {"speeds": (0.0,)}])
def test_impossible_weather_is_refused(wrong):
    with pytest.raises(LabError, match="A swarm needs"):
        Weather(**wrong)


def test_nodes_and_seeds_have_origins_and_noise_of_their_own():
    assert len({origin_of(seed, node) for seed in range(4) for node in range(8)}) == 32
    assert len({noise_seed(seed, node) for seed in range(4) for node in range(-1, 8)}) == 36
    assert {len(origin_of(1, node)) for node in range(8)} == {38}
