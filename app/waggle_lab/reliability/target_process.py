"""A target of torture: a real engine, or a real window with its engine, as child processes, and the events they reported."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from waggle.core import paths
from waggle.core.errors import EngineError, LabError
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import AnyEvent, State, apply

TIMEOUT_S = 300.0  # generous: everything waited for takes a few seconds on an idle computer
CHILDREN = {"p2pd": "p2pd", "verifier": "waggle.tasks.sandbox.verifier_process"}  # part of their command lines


class TargetProcess:
    """A node in a home folder of its own. If `windowed`, a window starts its engine; otherwise we talk to the engine directly."""

    def __init__(self, home: Path, settings: tuple[str, ...], *, windowed: bool) -> None:
        self.home, self.windowed = paths.Home(home), windowed
        self._settings = settings
        self._answers: dict[str, float] = {}
        self._changed = threading.Condition()
        self.process: subprocess.Popen[bytes] | None = None
        self.state = State()
        self._before: Path | None = None  # the recording of the process before this one

    def start(self) -> None:
        setting_options = [part for setting in self._settings for part in ("--set", setting)]
        subcommand = [] if self.windowed else ["engine", "--stdio"]
        command = [sys.executable, "-m", "waggle", *subcommand, "--home", str(self.home.root), *setting_options]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        self.state, self._before = State(), newest_recording(self.home)
        log = (self.home.root.parent / f"{self.home.root.name}.log").open("ab")
        with log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment)
        if not self.windowed:
            threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    @property
    def engine(self) -> psutil.Process | None:
        """The engine's process, if it is alive."""
        if self.process is None or self.process.poll() is not None:
            return None
        try:
            process = psutil.Process(self.process.pid)
            if not self.windowed:
                return process
            return next((child for child in process.children() if "engine" in child.cmdline()), None)
        except psutil.NoSuchProcess:  # it has just ended
            return None

    def child(self, name: str) -> psutil.Process | None:
        """The engine's child `p2pd` or `verifier`, if it is alive."""
        engine = self.engine
        try:
            children = engine.children() if engine else []
            return next((child for child in children if any(CHILDREN[name] in part for part in child.cmdline())), None)
        except psutil.NoSuchProcess:
            return None

    def kill(self) -> list[psutil.Process]:
        """Send SIGKILL to the outermost process; returns its orphaned children."""
        assert self.process is not None
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself
            children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return children

    def stop(self) -> None:
        """End the process, the engine in good order, and wait for it."""
        if self.process is None or self.process.poll() is not None:
            return
        if self.windowed:
            self.process.kill()
        elif self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(TIMEOUT_S)

    def wait_until_ready(self) -> int | None:
        """The round that the node continues with; None if it ended first. Raises LabError after TIMEOUT_S."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            if (state := self.reported_state()).ready is not None:
                return state.ready.round
            if self.process is None or self.process.poll() is not None:
                return None
            time.sleep(0.25)
        raise LabError(f"The engine in {self.home.root} is not ready after {TIMEOUT_S:.0f} s.", "Look at its log.")

    def reported_state(self) -> State:
        """The State that the current engine has reported, through its pipe or in its recording."""
        if not self.windowed:
            return self.state
        return recorded_state(self.home) if newest_recording(self.home) != self._before else State()

    def wait_for_stage(self, stage: str) -> None:
        """Wait until a round is in this stage. Raises LabError after TIMEOUT_S."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.state.stage == stage, TIMEOUT_S):
                raise LabError(f"No round reached the stage {stage}.")

    def measure_pause(self) -> float:
        """Pause the engine and resume it; returns the milliseconds until the pause took effect."""
        began = time.monotonic()
        paused_at = self._command(commands.Pause(id=commands.new_id()))
        self._command(commands.Resume(id=commands.new_id()))
        return (paused_at - began) * 1000

    def _command(self, command: commands.Pause | commands.Resume) -> float:
        """Send a command; returns when it was answered, as a time.monotonic()."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json_lines.line(command))
        self.process.stdin.flush()
        with self._changed:
            if not self._changed.wait_for(lambda: command.id in self._answers, TIMEOUT_S):
                raise LabError("The engine does not answer.")
        return self._answers[command.id]

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                event: AnyEvent = json_lines.event(line)
            except EngineError:  # a killed engine may leave half a line
                continue
            with self._changed:
                if process is self.process:
                    self.state = apply(self.state, event)
                if isinstance(event, events.CommandDone | events.CommandRefused):
                    self._answers[event.id] = time.monotonic()
                self._changed.notify_all()


def newest_recording(home: paths.Home) -> Path | None:
    return max(home.events.glob("*.jsonl"), default=None)


def recorded_state(home: paths.Home) -> State:
    """The State that the newest recording of a home folds into."""
    state, path = State(), newest_recording(home)
    for event in json_lines.recording(path) if path else ():
        state = apply(state, event) if event is not None else state
    return state


def database_is_whole(home: paths.Home) -> bool:
    """Whether the history database is intact. Reads a copy, so that the engine finds the files as the kill left them."""
    with tempfile.TemporaryDirectory() as folder:
        for path in home.root.glob("history.sqlite*"):
            shutil.copy(path, folder)
        try:
            database = sqlite3.connect(Path(folder) / "history.sqlite")
            (result,) = database.execute("pragma integrity_check").fetchone()
            database.close()
        except sqlite3.DatabaseError:
            return False
    return bool(result == "ok")
