"""The real window on a virtual screen with a live engine: visible at once, responsive, pausable, and gone without a trace."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from end_to_end.programs import SLOW, child_named, virtual_screen
from waggle.cli.shared import engine as engine_answers
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.protocol.state import State

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a virtual screen is X11's"),
    pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed: python3 packaging/dev.py doctor"),
]


@pytest.fixture(scope="module")
def screen() -> Iterator[dict[str, str]]:
    with virtual_screen() as environment:
        yield environment


def on_screen(screen: dict[str, str]) -> bool:
    """Whether X shows a window named Waggle: mapped and viewable, not only created."""
    window_info = subprocess.run(["xwininfo", "-name", "Waggle"], env=screen, capture_output=True, text=True, check=False)
    return "Map State: IsViewable" in window_info.stdout


def until(condition, seconds: float, what: str):
    """Wait for the first true value of a condition."""
    deadline = time.monotonic() + seconds * SLOW
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds * SLOW} s")


def state_of(home: Path) -> State | None:
    try:
        return engine_answers.status(paths.Home(home))
    except EngineError:
        return None


def gone(process: psutil.Process) -> bool:
    """Whether the process has ended, also if its parent has not waited for it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_window_is_on_screen_before_the_engine_is_ready_and_both_leave_together(tmp_path, screen, figures):
    home = tmp_path / "home"
    command = [sys.executable, "-m", "waggle", "--home", str(home), "--set", "swarm.solo=true"]
    command += ["--set", "computer.priority=normal", "--set", "learning.held_out_questions=1"]
    began = time.monotonic()
    window = subprocess.Popen(command, env=screen)
    try:
        until(lambda: on_screen(screen), 60, "a window")
        figures["window_ms"] = (time.monotonic() - began) * 1000
        early = state_of(home)
        assert early is None or early.phase == "preparing", "the engine was ready before the window: this measures nothing"
        until(lambda: (state := state_of(home)) and state.rounds, 60, "a round")
        engine = child_named(window.pid, "engine")
        window.send_signal(signal.SIGKILL)
        window.wait()
        until(lambda: gone(engine), 60, "the engine's end")
    finally:
        if window.poll() is None:
            window.kill()
            window.wait()
    assert sorted(path.name for path in (home / "checkpoints").iterdir())[-1].startswith("r")
