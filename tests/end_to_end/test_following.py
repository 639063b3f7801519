"""A window follows a real engine that it did not start: its commands work there, and the engine outlives it."""

import signal

import pytest

from end_to_end.programs import ENVIRONMENT, GENTLE, Engine, Program, running
from waggle.cli import main
from waggle.cli.shared.engine import status
from waggle.core.paths import Home
from waggle.engine.control import server
from waggle.protocol import commands, events
from waggle.protocol.state import Snapshot

SETTINGS = ("swarm.solo=true", "learning.held_out_questions=1", "computer.priority=normal", GENTLE)
CHOSEN = [part for setting in SETTINGS for part in ("--set", setting)]


def waited_for(event):
    return event.part == "Waiting for the engine that runs without a window"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Home(tmp_path_factory.mktemp("service") / "home")


@pytest.fixture(scope="module")
def service(home):
    """One service for all tests; the last test that uses it kills it."""
    with running(Program("engine", "--home", str(home.root), *CHOSEN)) as program:
        program.wait_line(lambda line: b'"type":"RoundCompleted"' in line, 120)
        yield program
        program.process.terminate()


def test_windows_come_and_go_and_the_engine_goes_on(service, home):
    with running(Engine(home.root)) as window:
        first = window.wait(Snapshot)
        assert first.state.service
        assert first.state.rounds
        assert isinstance(window.command(commands.Pause), events.CommandDone)
        window.wait(events.PhaseChanged, fits=lambda event: event.phase == "paused")
        assert status(home).phase == "paused"
        assert isinstance(window.command(commands.CheckBackup, path="/nowhere", passphrase="x"), events.CommandRefused)
        window.command(commands.Resume)
        window.wait(events.RoundCompleted, 60)
        assert isinstance(window.command(commands.Stop), events.CommandDone)
        assert window.end() == 0
    with running(Engine(home.root)) as window:  # the window is closed without a command
        window.wait(Snapshot)
        assert window.end() == 0
    assert service.process.poll() is None
    assert status(home).phase == "contributing"


def test_an_engine_that_is_held_is_waited_for_and_a_window_may_go_meanwhile(service, home):
    service.process.send_signal(signal.SIGSTOP)
    try:
        with running(Engine(home.root)) as window:
            assert window.wait(events.Preparing, fits=lambda event: "another engine" in event.part)
            assert window.end() == 0
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_a_trial_of_this_computer_is_not_played_by_an_engine_that_was_here_before(service, home, capfd, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    assert main.main(["selftest", "--home", str(home.root)]) == 1
    output = capfd.readouterr()
    assert "Another engine is running for this folder." in output.err
    assert "round" not in output.out
    assert service.process.poll() is None


def test_a_window_follows_the_next_engine_after_one_that_was_killed_and_hears_of_an_end_in_order(service, home):
    with running(Engine(home.root)) as window:
        window.wait(Snapshot)
        service.kill()
        window.wait(events.Preparing, fits=waited_for)
        start = len(window.lines)
        with running(Program("engine", "--home", str(home.root), *CHOSEN)) as next_engine:
            window.wait(Snapshot, start=start)
            assert isinstance(window.command(commands.Pause), events.CommandDone)
            assert status(home).decision.standing == "paused"
            with running(Engine(home.root)) as late:
                assert late.wait(events.Warned, fits=lambda event: "command line" in event.title)
                assert late.end() == 0
            start = len(window.lines)
            server.send_command(home, commands.Stop(id="1"))
            window.wait(events.EngineStopped, start=start)
            window.wait(events.Preparing, fits=waited_for, start=start)
            assert window.end() == 0, "a client that leaves waits for nothing"
            assert next_engine.end() == 0
            assert b"Traceback" not in next_engine.errors


def test_an_engine_of_a_window_lets_nobody_follow(tmp_path):
    with running(Engine(tmp_path / "home", "swarm.solo=true")) as window:
        window.wait(events.Ready)
        (refused,) = server.send_command(Home(tmp_path / "home"), commands.Follow(id="1"))
        assert isinstance(refused, events.CommandRefused)
        assert "window" in refused.title
        window.command(commands.Stop)
