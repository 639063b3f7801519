"""Commands as coroutines: each gets its own answer, or the reason why there is none."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

import waggle
from gui.answers import run_coroutines
from waggle.core.errors import EngineEnded, EngineError, NoEngine
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.state.store import StateStore
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, ChoosePeer, ListModels, Pause, QueryRounds, ReadInvite
from waggle.protocol.events_swarms import InviteRead
from waggle.protocol.state import AnyEvent

FAKE = Path(__file__).parents[1] / "fake_engine.py"
CONTRIBUTING = events.PhaseChanged(phase="contributing", round=1)


class Desk:
    """A client, the commands that it sent, and the errors that it wants shown."""

    def __init__(self, *, takes: bool = True, recorded: bool = False) -> None:
        self.sent, self.refused, self.store = list[AnyCommand](), list[str](), StateStore()
        self.client = EngineClient(lambda command: takes and self.sent.append(command) is None, recorded=recorded)
        self.client.refused.connect(lambda title, _advice: self.refused.append(title))
        self.store.applied.connect(self.client.take)

    def tell(self, *received: AnyEvent) -> None:
        for event in received:
            self.store.take(event)


def read(after: int) -> events.RoundsRead:
    return events.RoundsRead(after=after, last=after + 1, rounds=(), held_out=(), more=False)


def test_each_of_two_commands_of_one_kind_gets_its_own_answer() -> None:
    desk = Desk()
    first, second = (
        desk.client.ask(QueryRounds(id=name, after=after), events.RoundsRead) for name, after in (("a", 1), ("b", 2))
    )
    desk.tell(read(2), events.CommandDone(id="b"))
    assert (first.done(), second.result().after) == (False, 2)
    desk.tell(read(7), read(1), events.CommandDone(id="a"))
    assert first.result().after == 1


def test_a_refusal_is_raised_where_it_was_awaited_and_shown_where_it_was_not() -> None:
    desk = Desk()
    awaited = desk.client.command(Pause(id="a"))
    desk.client.send(Pause(id="b"))
    desk.tell(*(events.CommandRefused(id=name, title=f"Not {name}.") for name in ("a", "b")))
    with pytest.raises(EngineError, match=r"Not a\."):
        awaited.result()
    assert desk.refused == ["Not b."]


@pytest.mark.parametrize(
    "end",
    [events.EngineGone(code=9, restarts=1), events.Preparing(part="Loading", done=0, parts=3), events.EngineStopped(round=1)],
)
def test_what_an_engine_was_asked_ends_with_it(end: AnyEvent) -> None:
    desk = Desk()
    desk.tell(CONTRIBUTING)
    awaited = desk.client.command(Pause(id="a"))
    desk.tell(CONTRIBUTING)
    assert not awaited.done()
    desk.tell(end)
    with pytest.raises(EngineEnded):
        awaited.result()


def test_what_is_asked_while_an_engine_starts_waits_for_it() -> None:
    desk = Desk()
    awaited = desk.client.command(Pause(id="a"))
    desk.tell(events.Preparing(part="Loading", done=1, parts=3), CONTRIBUTING, events.CommandDone(id="a"))
    assert awaited.result().id == "a"


def test_without_an_engine_a_person_is_told_and_a_query_of_a_page_is_not() -> None:
    desk = Desk(takes=False)
    with pytest.raises(NoEngine):
        desk.client.command(Pause(id="a")).result()
    assert not desk.client.send(ListModels(id="b"))
    assert not desk.client.send(Pause(id="c"))
    assert desk.refused == ["Training is not running: nothing was done."]
    with pytest.raises(EngineError, match="recorded run"):
        Desk(takes=False, recorded=True).client.command(Pause(id="a")).result()


def test_whoever_stops_waiting_leaves_the_answer_to_nobody(qtbot: QtBot) -> None:
    desk = Desk()

    async def wait() -> None:
        await desk.client.command(Pause(id="a"))

    waiting = asyncio.get_running_loop().create_task(wait())
    run_coroutines()
    waiting.cancel()
    run_coroutines()
    assert waiting.cancelled()
    desk.tell(events.CommandRefused(id="a", title="Late."))
    assert desk.refused == []


def test_a_state_is_waited_for(qtbot: QtBot) -> None:
    desk = Desk()
    next_event = asyncio.get_running_loop().create_task(desk.client.until_heard())
    contributes = asyncio.get_running_loop().create_task(desk.client.until(lambda state: state.phase == "contributing"))
    run_coroutines()
    desk.tell(events.Preparing(part="Loading", done=1, parts=3))
    run_coroutines()
    assert (next_event.done(), contributes.done()) == (True, False)
    desk.tell(CONTRIBUTING)
    run_coroutines()
    assert contributes.done()


def test_an_engine_behind_a_pipe_answers_and_refuses(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    engine, store = EngineProcess(lambda: [sys.executable, str(FAKE), "well"], farewell=2.0), StateStore()
    client = EngineClient(engine.send)
    engine.event_received.connect(store.take)
    store.applied.connect(client.take)

    async def ask() -> tuple[str, str]:
        engine.start()
        await client.until(lambda state: state.phase == "contributing")
        read_invite = await client.ask(ReadInvite(id="a", link="waggle://join?charter=ab"), InviteRead)
        try:
            await client.command(ChoosePeer(id="b", peer="12D3KooWUnknown", choice="muted"))
        except EngineError as error:
            return read_invite.swarm.name, error.title
        return read_invite.swarm.name, ""

    answers = asyncio.get_running_loop().create_task(ask())
    qtbot.waitUntil(answers.done)
    assert answers.result() == ("Two laptops", "12D3KooWUnknown is no peer's id.")
    with qtbot.waitSignal(engine.ended):
        engine.stop()
