"""Commands with a real engine: joining by a link, a setting that needs a new start, and a setting that has to be undone."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from end_to_end.programs import ENVIRONMENT, WAGGLE, Program, running
from waggle.cli.shared.engine import status
from waggle.cli.watch.followed import STOPPED, FollowedEngine
from waggle.core import paths, settings
from waggle.core.errors import EngineError

SETTINGS = ("swarm.host=127.0.0.1", "learning.questions=1", "learning.local=1", "learning.held_out_questions=1",
            "computer.priority=normal", "when.below_celsius=0", "when.only_on_power=false")  # fmt: skip


def waggle(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WAGGLE, *words, "--home", str(home)],
        env=ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=500,
    )  # fmt: skip


def service(home: Path) -> Program:
    """An engine that runs without a window."""
    return Program("engine", "--home", str(home), *(word for value in SETTINGS for word in ("--set", value)))


def wait_until_contributing(home: Path) -> None:
    def contributes() -> bool:
        try:
            return status(paths.Home(home)).phase == "contributing"
        except EngineError:  # it starts
            return False

    wait_until(contributes, "the engine does not contribute")


def wait_until(happens: Callable[[], object], otherwise: str) -> None:
    deadline = time.monotonic() + 300
    while not happens():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)


def test_a_computer_without_a_screen_joins_by_a_link_and_leaves(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with running(service(first)), running(service(second)):
        wait_until_contributing(first)
        wait_until_contributing(second)
        created = waggle(first, "create", "--name", "Ours", "--specialty", "bf:easy", "--private")
        assert waggle(first, "join", created.stdout.strip(), "--yes").returncode == 0
        invited = waggle(first, "invite")
        (tmp_path / "ours.waggle").write_text(f"Come along: {invited.stdout}")
        refused = waggle(second, "join", str(tmp_path / "ours.waggle"))
        assert (refused.returncode, "Add --yes" in refused.stderr) == (1, True)
        assert status(paths.Home(second)).ready.swarm == "First light", "nothing joins by itself"
        joined = waggle(second, "join", str(tmp_path / "ours.waggle"), "--yes")
        assert (joined.returncode, joined.stdout) == (0, "The engine has joined Ours.\n"), joined.stderr
        assert "Ours (private)" in joined.stderr
        departure = waggle(second, "leave")
        assert departure.stdout.startswith("You have left Ours: it trains on this computer only.")
        assert status(paths.Home(second)).settings.swarm.solo
        for home in (second, first):
            assert waggle(home, "stop").returncode == 0


def test_a_setting_that_needs_a_new_start_gets_one_and_goes_back_if_the_engine_cannot_start_with_it(tmp_path):
    home = tmp_path / "home"
    with running(service(home)), socket.socket() as occupied:
        wait_until_contributing(home)
        watched = FollowedEngine(paths.Home(home))
        threading.Thread(target=asyncio.run, args=(watched.follow(),), daemon=True).start()
        changed = waggle(home, "set", "learning.rule=dapo", "computer.cpu_percent=90")
        assert (changed.returncode, changed.stdout) == (0, "learning.rule = dapo\ncomputer.cpu_percent = 90\n")
        assert "A new start is needed for learning.rule: the engine starts again." in changed.stderr
        state = status(paths.Home(home))
        assert (state.settings.learning.rule, state.after_restart) == ("dapo", ())
        assert "In force now." in waggle(home, "set", "computer.cpu_percent=80").stderr
        waits = waggle(home, "set", "learning.rule=grpo", "--no-restart")
        assert "At the engine's next start: learning.rule." in waits.stderr
        assert waggle(home, "set", "learning.rule=dapo").returncode == 0, "it is the value in force, so nothing waits"
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        undone = waggle(home, "set", f"swarm.port={occupied.getsockname()[1]}")
        assert undone.returncode == 1
        assert "All is as it was before." in undone.stderr
        assert settings.read(paths.Home(home).settings).swarm.port == 0
        wait_until_contributing(home)
        refused = waggle(home, "set", "model.folder=/nowhere")
        assert (refused.returncode, "There is no model in /nowhere" in refused.stderr) == (1, True)
        wait_until(lambda: watched.state.rounds and watched.state.settings.computer.cpu_percent == 80, "nothing was followed")
        assert waggle(home, "stop").returncode == 0
        wait_until(lambda: watched.trouble == STOPPED, "its end was not noticed")


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
@pytest.mark.parametrize(("option", "shows"), [([], b"held-out"), (["--json"], b'{"type":"RoundCompleted"')])
def test_an_engine_on_a_terminal_shows_a_line_a_round_and_json_where_that_is_asked_for(tmp_path, option, shows):
    ends = b'{"type":"EngineStopped"' if option else b"Stopped. Everything is kept."
    person, terminal = os.openpty()
    settings_options = [word for value in ("swarm.solo=true", *SETTINGS) for word in ("--set", value)]
    command = [*WAGGLE, "engine", *option, "--home", str(tmp_path / "home"), *settings_options]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=ENVIRONMENT) as engine:
        raw, deadline = b"", time.monotonic() + 300
        while engine.poll() is None and time.monotonic() < deadline:
            raw += os.read(person, 1 << 16) if select.select([person], [], [], 0.2)[0] else b""
            if shows in raw and shows != ends:
                engine.send_signal(signal.SIGINT)
                shows = ends
        while select.select([person], [], [], 0.2)[0]:
            raw += os.read(person, 1 << 16)
        assert engine.wait(30) == 0
    os.close(person)
    os.close(terminal)
    assert shows in raw
    assert b"Traceback" not in raw
    assert (b'{"type"' in raw) == bool(option)
