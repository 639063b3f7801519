"""A victim of torture: a real engine, or a real window with its engine, in processes of their own, and what they said so far."""

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

PATIENCE = 300.0  # seconds for what takes a few on an idle computer
CHILDREN = {"p2pd": "p2pd", "verifier": "waggle.tasks.sandbox.verifier_process"}  # words of their command lines


class Victim:
    """One node in a folder of its own. `windowed`: a window starts its engine, else we speak with it as a window would."""

    def __init__(self, home: Path, settings: tuple[str, ...], *, windowed: bool) -> None:
        self.home, self.windowed = paths.Home(home), windowed
        self._settings = settings
        self._answers: dict[str, float] = {}
        self._changed = threading.Condition()
        self.process: subprocess.Popen[bytes] | None = None
        self.state = State()
        self._before: Path | None = None  # the record of the life before

    def start(self) -> None:
        words = [part for one in self._settings for part in ("--set", one)]
        door = [] if self.windowed else ["engine", "--stdio"]
        command = [sys.executable, "-m", "waggle", *door, "--home", str(self.home.root), *words]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        self.state, self._before = State(), newest_record(self.home)
        log = (self.home.root.parent / f"{self.home.root.name}.log").open("ab")
        with log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment)
        if not self.windowed:
            threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    @property
    def engine(self) -> psutil.Process | None:
        """The engine's process, where it lives."""
        if self.process is None or self.process.poll() is not None:
            return None
        try:
            me = psutil.Process(self.process.pid)
            if not self.windowed:
                return me
            return next((child for child in me.children() if "engine" in child.cmdline()), None)
        except psutil.NoSuchProcess:  # it has just ended
            return None

    def child(self, name: str) -> psutil.Process | None:
        """p2pd or the verifier, where they live."""
        engine = self.engine
        try:
            found = engine.children() if engine else []
            return next((one for one in found if any(CHILDREN[name] in part for part in one.cmdline())), None)
        except psutil.NoSuchProcess:
            return None

    def kill(self) -> list[psutil.Process]:
        """SIGKILL of the outermost process; the children it leaves behind."""
        assert self.process is not None
        left: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
            left = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return left

    def stop(self) -> None:
        """An orderly end."""
        if self.process is None or self.process.poll() is not None:
            return
        if self.windowed:
            self.process.kill()
        elif self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(PATIENCE)

    def wait_ready(self) -> int | None:
        """The round it goes on with; None where it ended before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if (told := self.seen()).ready is not None:
                return told.ready.round
            if self.process is None or self.process.poll() is not None:
                return None
            time.sleep(0.25)
        raise LabError(f"The engine in {self.home.root} is not ready after {PATIENCE:.0f} s.", "Look at its log.")

    def seen(self) -> State:
        """What its present engine has told: through its pipe, or by its record."""
        if not self.windowed:
            return self.state
        return recorded(self.home) if newest_record(self.home) != self._before else State()

    def wait_stage(self, stage: str) -> None:
        """Until a round is in this stage."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.state.stage == stage, PATIENCE):
                raise LabError(f"No round came to the stage {stage}.")

    def ask_pause(self) -> float:
        """Milliseconds until a pause held; it goes on then."""
        began = time.monotonic()
        took = self._command(commands.Pause(id=commands.new_id())) - began
        self._command(commands.Resume(id=commands.new_id()))
        return took * 1000

    def _command(self, command: commands.Pause | commands.Resume) -> float:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json_lines.line(command))
        self.process.stdin.flush()
        with self._changed:
            if not self._changed.wait_for(lambda: command.id in self._answers, PATIENCE):
                raise LabError("The engine does not answer.")
        return self._answers[command.id]

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                event: AnyEvent = json_lines.event(line)
            except EngineError:  # the last line of an engine that was killed
                continue
            with self._changed:
                if process is self.process:
                    self.state = apply(self.state, event)
                if isinstance(event, events.CommandDone | events.CommandRefused):
                    self._answers[event.id] = time.monotonic()
                self._changed.notify_all()


def newest_record(home: paths.Home) -> Path | None:
    return max(home.events.glob("*.jsonl"), default=None)


def recorded(home: paths.Home) -> State:
    """The State that the newest record of a home folds into."""
    state, path = State(), newest_record(home)
    for event in json_lines.recording(path) if path else ():
        state = apply(state, event) if event is not None else state
    return state


def database_is_whole(home: paths.Home) -> bool:
    """Whether the history can be read to its last page; looked at in a copy, as a power cut would have left it."""
    with tempfile.TemporaryDirectory() as folder:
        for path in home.root.glob("history.sqlite*"):
            shutil.copy(path, folder)
        try:
            database = sqlite3.connect(Path(folder) / "history.sqlite")
            (said,) = database.execute("pragma integrity_check").fetchone()
            database.close()
        except sqlite3.DatabaseError:
            return False
    return bool(said == "ok")
