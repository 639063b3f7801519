"""A real engine holds a lock of logind while it trains, and lets it go with a pause and at its end."""

import os
import select

from end_to_end.programs import Engine, running
from engine.system.test_keep_awake import LINUX, FakeServices, bus
from waggle.protocol import commands, events

__all__ = ["bus"]  # a fixture
SETTINGS = ("swarm.solo=true", "learning.questions=1", "learning.local=1", "computer.keep_awake=always")


def is_let_go(reading: int) -> bool:
    """Whether nobody has the other end of the pipe any more, which is the lock."""
    readable, _, _ = select.select([reading], [], [], 10.0)
    return bool(readable) and os.read(reading, 1) == b""


@LINUX
def test_the_lock_is_there_while_it_trains_and_gone_with_a_pause_and_at_the_end(tmp_path, bus):
    logind = FakeServices(bus, ("org.freedesktop.login1",))
    with running(Engine(tmp_path / "home", *SETTINGS, environment={"DBUS_SYSTEM_BUS_ADDRESS": bus})) as engine:
        engine.wait(events.KeptAwake, 120, lambda event: event.holds)
        engine.command(commands.Pause)
        engine.wait(events.KeptAwake, 60, lambda event: not event.holds)
        assert is_let_go(logind.reading)
        start = len(engine.lines)
        engine.command(commands.Resume)
        engine.wait(events.KeptAwake, 60, lambda event: event.holds, start)
        assert engine.end() == 0
    assert is_let_go(logind.reading)
    assert [arguments[0] for _, arguments in logind.calls] == ["idle", "idle"]
