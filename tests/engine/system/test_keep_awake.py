"""The system is kept awake only while it contributes and the person chose so: with a real bus, and by layers of calls."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from waggle.core.settings import ComputerSettings
from waggle.engine.system import keep_awake
from waggle.engine.system.keep_awake import CannotKeepAwakeError, KeepAwake, acquire_linux, acquire_windows, wants_awake

LINUX = pytest.mark.skipif(sys.platform != "linux" or shutil.which("dbus-daemon") is None, reason="needs Linux and dbus-daemon")
BUS = """<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow own="*"/><allow eavesdrop="false"/></policy></busconfig>"""


@pytest.mark.parametrize(
    ("chosen", "phase", "on_power", "is_loading", "keeps"),
    [
        ("no", "contributing", True, False, False),
        ("on_power", "contributing", True, False, True),
        ("on_power", "contributing", None, False, True),  # no battery
        ("on_power", "finishing", False, False, False),
        ("always", "contributing", False, False, True),
        ("always", "paused", True, False, False),
        ("always", "waiting", True, False, False),
        ("always", "preparing", True, False, False),
        ("on_power", "preparing", True, True, True),
    ],
)
def test_only_work_that_was_chosen_keeps_it_awake(chosen, phase, on_power, is_loading, keeps):
    assert wants_awake(ComputerSettings(keep_awake=chosen), phase, on_power, is_loading=is_loading) is keeps


async def test_it_is_held_once_let_go_once_and_let_go_at_the_end():
    calls: list[str] = []

    def acquire():
        calls.append("held")
        return lambda: calls.append("let go")

    awake = KeepAwake(acquire)
    for keeps in (True, True, False, False, True):
        await awake.follow(keeps)
    assert (calls, awake.holds) == (["held", "let go", "held"], True)
    awake.close()
    assert (calls[-1], awake.holds) == ("let go", False)


async def test_a_refusal_is_said_and_tried_again_later(monkeypatch):
    monkeypatch.setattr(keep_awake, "RETRY_CALLS", 3)
    calls: list[int] = []

    def refuse():
        calls.append(1)
        raise CannotKeepAwakeError("no system bus")

    awake = KeepAwake(refuse)
    for _ in range(5):
        await awake.follow(True)
    assert (len(calls), awake.holds, awake.trouble) == (2, False, "no system bus")
    await awake.follow(False)
    assert awake.trouble == ""
    awake.close()


class FakeServices:
    """Services of logind and of a desktop on a real bus of our own, which record what is held."""

    def __init__(self, address: str, names: tuple[str, ...]) -> None:
        from jeepney.io.blocking import open_dbus_connection
        from jeepney.wrappers import new_method_return

        self.calls: list[tuple[str, tuple[object, ...]]] = []
        self.connection = open_dbus_connection(address, enable_fds=True)
        from jeepney import message_bus

        for name in names:
            self.connection.send_and_get_reply(message_bus.RequestName(name))
        self._return, self.reading = new_method_return, -1
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        from jeepney import HeaderFields, MessageType

        while True:
            try:
                message = self.connection.receive()
            except (OSError, EOFError):
                return
            if message.header.message_type is not MessageType.method_call:
                continue
            interface = message.header.fields[HeaderFields.interface]
            self.calls.append((interface, tuple(message.body)))
            if interface.startswith("org.freedesktop.login1"):
                self.reading, writing = os.pipe()
                self.connection.send(self._return(message, "h", (writing,)))
                os.close(writing)
            else:
                self.connection.send(self._return(message, "u", (7,)))


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A private bus, which is this process's system bus and session bus."""
    configuration, path = tmp_path / "bus.conf", tmp_path / "bus"
    configuration.write_text(BUS.format(path=path))
    daemon = subprocess.Popen(
        ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address=1"], stdout=subprocess.PIPE
    )
    address = daemon.stdout.readline().decode().strip()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    yield address
    daemon.terminate()
    daemon.wait()
    daemon.stdout.close()


@LINUX
async def test_logind_holds_a_lock_against_idle_sleep_until_it_is_let_go(bus: str):
    logind = FakeServices(bus, ("org.freedesktop.login1",))
    awake = KeepAwake(acquire_linux)
    await awake.follow(True)
    assert awake.holds, awake.trouble
    assert logind.calls == [("org.freedesktop.login1.Manager", ("idle", "Waggle", keep_awake.WHY, "block"))]
    os.set_blocking(logind.reading, False)
    with pytest.raises(BlockingIOError):  # somebody still has the other end, which is the lock
        os.read(logind.reading, 1)
    await awake.follow(False)
    os.set_blocking(logind.reading, True)
    assert await asyncio.to_thread(os.read, logind.reading, 1) == b"", "the lock is gone"
    awake.close()


@LINUX
async def test_a_desktop_without_logind_is_asked_too(bus: str):
    desktop = FakeServices(bus, ("org.gnome.SessionManager", "org.freedesktop.PowerManagement"))
    awake = KeepAwake(acquire_linux)
    await awake.follow(True)
    assert awake.holds, awake.trouble
    assert [interface for interface, _ in desktop.calls] == [
        "org.gnome.SessionManager", "org.freedesktop.PowerManagement.Inhibit",
    ]  # fmt: skip
    awake.close()


@LINUX
async def test_a_bus_without_such_a_service_is_a_sentence(bus: str):
    awake = KeepAwake(acquire_linux)
    await awake.follow(True)
    assert not awake.holds
    assert awake.trouble.startswith("org.freedesktop.login1: org.freedesktop.DBus.Error")
    awake.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a bus of Linux")
async def test_without_a_bus_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.setenv(name, f"unix:path={tmp_path / 'none'}")
    awake = KeepAwake(acquire_linux)
    await awake.follow(True)
    assert awake.trouble.startswith("no system bus")
    awake.close()


def test_windows_is_asked_for_the_system_alone_and_asked_to_forget_it():
    states: list[int] = []
    release = acquire_windows(lambda flags: states.append(flags) or 1)
    assert states == [0x80000001]
    release()
    assert states == [0x80000001, 0x80000000]
    with pytest.raises(CannotKeepAwakeError):
        acquire_windows(lambda _flags: 0)


def test_a_mac_gets_a_child_that_waits_for_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """In place of caffeinate runs a program that waits."""
    real, started = subprocess.Popen, []

    def popen(command, **options):
        started.append((command, real([sys.executable, "-c", "import time; time.sleep(600)"], **options)))
        return started[-1][1]

    monkeypatch.setattr(keep_awake.subprocess, "Popen", popen)
    release = keep_awake.acquire_mac()
    ((command, child),) = started
    assert command == ["/usr/bin/caffeinate", "-i", "-w", str(os.getpid())]
    assert child.poll() is None
    release()
    assert child.poll() is not None
