"""The figures of a node's own model for its status page, from its State and history, and the page of a node without a network."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from network.loopback import free_port, fresh_identity
from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.core.settings import Settings, SwarmSettings, WebSettings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.swarms import swarm_connection
from waggle.engine.services.training_figures import MAX_POINTS, TrainingFigures
from waggle.engine.storage.history import History
from waggle.protocol import events
from waggle.protocol.schedule import ScheduleDecision
from waggle.protocol.state import State, apply
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

LOGIC, GRIDS = events.SpecialtyInfo(dataset="logic", title="Logic"), events.SpecialtyInfo(dataset="grids", title="Grids")
READY = events.Ready(
    protocol=1, version="0", node="n" * 44 + "abcd1234", name="brisk otter", swarm="Ours", charter="c",
    specialties=(LOGIC, GRIDS), model="Starter 2.1M", model_note="", backend="torch", device="cpu", device_reason="", threads=1,
    cores=2, round=2, completions=0, group_size=4, parameters=1,
)  # fmt: skip


def summary(number: int, reward: float, swarm: str = "Ours") -> events.RoundSummary:
    return events.RoundSummary(
        round=number, at=1.0, reward=reward, solved=0.5, seconds=2.0, tokens=100, swarm=swarm, memory=10**9,
        metrics=events.Metrics(entropy=1.5, learning_rate=2e-5, external_share=0.25),
    )  # fmt: skip


def score(number: int, right: int, exam: str = "e", **by_specialty: tuple[int, int]) -> events.HeldOutScore:
    return events.HeldOutScore(round=number, at=1.0, right=right, total=20, exam=exam, by_specialty=by_specialty)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite")


def figures_of(history: History, *happened: events.EngineEvent) -> TrainingFigures:
    state = State()
    for event in happened:
        state = apply(state, event)
    return TrainingFigures(lambda: state, history)


def test_the_figures_are_of_this_swarm_and_of_rounds_before_this_start_too(history: History) -> None:
    history.save_round(summary(0, 0.9, "Theirs"))
    history.save_round(summary(1, 0.1))
    history.save_score(score(0, 20, "theirs", Words=(20, 20)))
    history.save_score(score(1, 5, Logic=(1, 10), Grids=(4, 10)))
    training = figures_of(
        history, READY, events.ReachChanged(reach="connected", peers=1),
        events.PeerChanged(peer=events.PeerInfo(id="seed", name="seed")),
        events.RoundCompleted(summary=summary(2, 0.2)), events.HeldOutMeasured(score=score(3, 7, Logic=(2, 10), Grids=(5, 10))),
        events.PhaseChanged(phase="contributing", round=3),
    )()  # fmt: skip
    assert training
    assert training.rewards == ((1, 0.1), (2, 0.2))
    assert training.scores == ((1, 0.25), (3, 0.35))
    assert training.held_out
    assert [(each.dataset, each.right) for each in training.held_out.specialties] == [("logic", 2), ("grids", 5)]
    assert (training.reward, training.entropy, training.learning_rate, training.tokens_per_second) == (0.2, 1.5, 2e-5, 50.0)
    assert (training.company, training.connected, training.members, training.fingerprint) == ("alone", 1, 0, "abcd1234")
    assert training.says == "Round 4: picking questions, alone: nobody else is here."


def test_without_a_node_there_are_no_figures_and_before_a_round_those_that_are_known(history: History) -> None:
    assert figures_of(history)() is None
    training = figures_of(history, READY)()
    assert training
    assert (training.round, training.reward, training.memory, training.held_out, training.rewards) == (2, None, None, None, ())


def test_a_page_that_may_be_open_to_everybody_does_not_tell_why_somebody_waits(history: History) -> None:
    decision = ScheduleDecision(standing="waiting", reason="Somebody plays a game.", ends="When the game ends.")
    training = figures_of(
        history, READY, events.RulesChecked(decision=decision), events.PhaseChanged(phase="waiting", round=2)
    )()  # fmt: skip
    assert training
    assert training.says == "Waiting in round 3 for a better moment."
    assert "game" not in repr(training)


def test_long_curves_are_thinned_to_means_and_end_with_the_newest_round(history: History) -> None:
    for number in range(2 * MAX_POINTS):
        history.save_round(summary(number, number % 2))
    training = figures_of(history, READY)()
    assert training
    assert len(training.rewards) == MAX_POINTS
    assert {reward for _, reward in training.rewards} == {0.5}
    assert training.rewards[-1][0] == 2 * MAX_POINTS - 1


def test_a_damaged_history_costs_the_page_nothing_but_old_rounds(history: History) -> None:
    figures = figures_of(history, READY, events.RoundCompleted(summary=summary(2, 0.2)))
    history.close()
    training = figures()
    assert training
    assert training.rewards == ((2, 0.2),)


async def test_who_trains_alone_by_choice_has_the_page_and_no_network(
    tmp_path: Path, history: History, verifier: Verifier
) -> None:
    home, port = paths.Home(tmp_path / "home").prepare(), free_port()
    chosen = Settings(swarm=SwarmSettings(solo=True), web=WebSettings(port=port))
    publisher, own = EventPublisher(tmp_path), fresh_identity(tmp_path, "own")
    figures = TrainingFigures(lambda: publisher.state, history)
    async with AsyncExitStack() as stack, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        stack.callback(publisher.close)
        await swarm_connection.join(home, chosen, first_swarm(), own, verifier, publisher, stack, training=figures)
        publisher.publish(READY)
        publisher.publish(events.RoundCompleted(summary=summary(2, 0.2)))
        page, status = (await client.get("/")).text, json.loads((await client.get("/status.json")).text)
        assert "This node trains alone by choice." in page
        assert "brisk otter" in page
        assert (status["training"]["company"], status["training"]["round"]) == ("solo", 3)
        assert (await client.get("/gateway")).status_code == 404
        with pytest.raises(SwarmError, match="web port"):
            await swarm_connection.join(home, chosen, first_swarm(), own, verifier, publisher, stack)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


def test_a_first_right_answer_of_an_earlier_run_counts_once_and_the_earliest(history: History) -> None:
    history.successes.save("logic", events.Aha(round=1, at=5.0, specialty="Logic"))
    later = events.AhaHappened(aha=events.Aha(round=9, at=9.0, specialty="Logic", origin="x"))
    theirs = events.AhaHappened(aha=events.Aha(round=9, at=9.0, specialty="Theirs"))
    status = figures_of(history, READY, later, theirs)()
    assert status is not None
    assert [(aha.specialty, aha.at, aha.origin) for aha in status.ahas] == [("Logic", 5.0, "")]
