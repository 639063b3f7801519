"""Real programs under test: an engine or a seed in its own process, its events, and ways to wait for them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

import waggle
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import AnyEvent, State, apply

WAGGLE = (sys.executable, "-m", "waggle")
USUAL = ("computer.priority=normal", "learning.held_out_questions=1")  # an exam of 270 questions takes seconds
GENTLE = "computer.cpu_percent=25"  # for an engine that other work in the test must not slow down
PATIENCE = 300.0  # seconds: long, for two engines on a busy computer
SLOW = 3.0  # how much longer than an idle computer a test may wait
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}


def until(condition: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> Any:
    """Wait for the first true answer of `condition`, asking a few times a second; raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"{otherwise}, not within {seconds:.0f} s")


def children_named(parent: int, word: str) -> list[psutil.Process]:
    """The children of a process whose command line contains `word`; other children may come and go."""
    matches = []
    for child in psutil.Process(parent).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            matches += [child] if any(word in part for part in child.cmdline()) else []
    return matches


def child_named(parent: int, word: str) -> psutil.Process:
    """The only such child."""
    (only,) = children_named(parent, word)
    return only


class Program:
    """`waggle NAME ...`, whose stdout is collected line by line; a wait that fails shows the lines that came instead."""

    def __init__(
        self,
        *arguments: str,
        command: Sequence[str] = WAGGLE,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=ENVIRONMENT | (environment or {}),
        )  # fmt: skip
        self.lines: list[tuple[float, bytes]] = []  # with the time when each was read
        self.errors = b""
        self._came = threading.Condition()
        self._readers = [threading.Thread(target=target, daemon=True) for target in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if not line.endswith(b"\n"):  # the program was killed while it wrote the line
                break
            with self._came:
                self.lines.append((time.monotonic(), line))
                self._came.notify_all()
        with self._came:
            self._came.notify_all()

    def _read_errors(self) -> None:
        self.errors = self.process.stderr.read()

    def wait_line(self, fits: Callable[[bytes], bool], seconds: float, start: int = 0) -> bytes:
        """Wait for the first line from `start` on that fits; `seconds` are for an idle computer."""
        seconds *= SLOW
        deadline = time.monotonic() + seconds
        with self._came:
            while True:
                for _, line in self.lines[start:]:
                    if fits(line):
                        return line
                start = len(self.lines)
                if self.process.poll() is not None and not self._readers[0].is_alive():
                    raise AssertionError(f"it ended with {self.process.returncode}: {self._last()}")
                if not self._came.wait(min(1.0, deadline - time.monotonic())) and time.monotonic() > deadline:
                    raise AssertionError(f"nothing fitting in {seconds} s: {self._last()}")

    def _last(self) -> str:
        return f"{[line[:200] for _, line in self.lines[-5:]]} {self.errors[-2000:].decode()}"

    def end(self) -> int:
        """Close stdin and wait; kill the program if it does not exit. Returns the exit code."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(60 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(5)
        return self.process.returncode

    def kill(self) -> None:
        """Kill the program with SIGKILL, so that it cannot save anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for reader in self._readers:
            reader.join(5)


class Engine(Program):
    """An engine as the window runs it, with the usual settings unless `settings` replaces them."""

    def __init__(
        self,
        home: Path,
        *settings: str,
        command: Sequence[str] = WAGGLE,
        environment: dict[str, str] | None = None,
    ) -> None:
        chosen = [part for setting in (*USUAL, *settings) for part in ("--set", setting)]
        super().__init__("engine", "--stdio", "--home", str(home), *chosen, command=command, environment=environment)
        self._commands = 0

    @property
    def all_events(self) -> list[AnyEvent]:
        with self._came:
            return [json_lines.event(line) for _, line in self.lines]

    def timed(self) -> list[tuple[float, AnyEvent]]:
        """All events, each with the time when it was read."""
        with self._came:
            return [(at, json_lines.event(line)) for at, line in self.lines]

    def wait(self, kind: type, seconds: float = 60.0, fits: Callable[..., bool] = lambda event: True, start: int = 0) -> AnyEvent:
        """Wait for the first event of a kind that fits."""
        name = f'"type":"{kind.__struct_config__.tag}"'.encode()
        return json_lines.event(self.wait_line(lambda line: name in line and fits(json_lines.event(line)), seconds, start))

    def command(self, kind: type[commands.AnyCommand], seconds: float = 30.0, **fields: object) -> AnyEvent:
        """Send a command and wait for its answer."""
        self._commands += 1
        name = str(self._commands)
        start = len(self.lines)
        self.process.stdin.write(json_lines.line(kind(id=name, **fields)))
        self.process.stdin.flush()
        answered = self.wait_line(
            lambda line: b'"type":"Command' in line and getattr(json_lines.event(line), "id", "") == name, seconds, start
        )
        return json_lines.event(answered)

    def state(self) -> State:
        """The State folded from all events."""
        state = State()
        for event in self.all_events:
            state = apply(state, event)
        return state

    def rounds(self) -> list[events.RoundSummary]:
        return [event.summary for event in self.all_events if isinstance(event, events.RoundCompleted)]

    def wait_round(self, number: int, seconds: float) -> None:
        self.wait(events.RoundCompleted, seconds, lambda event: event.summary.round >= number)


class Seed(Program):
    """A bootstrap node; on loopback unless the settings say otherwise."""

    def __init__(self, home: Path, host: str = "127.0.0.1", command: Sequence[str] = WAGGLE) -> None:
        self._host = host
        super().__init__("seed", "--home", str(home), "--set", f"swarm.host={host}", command=command)

    def end(self) -> int:
        """Send SIGTERM: a seed does not read stdin."""
        self.process.terminate()
        return super().end()

    def address(self, seconds: float = 60.0) -> str:
        line = self.wait_line(lambda line: f"/ip4/{self._host}/tcp/".encode() in line, seconds)
        return next(word for word in line.decode().split() if word.startswith("/ip4/"))


@contextlib.contextmanager
def running(program: Program) -> Iterator[Program]:
    """End the program after the block."""
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.end()


@contextlib.contextmanager
def virtual_screen(size: str = "1400x900") -> Iterator[dict[str, str]]:
    """The environment of a virtual screen; Xvfb picks a free number and prints it.

    Without -noreset Xvfb resets when its last client leaves, and a client that connects meanwhile finds no screen.
    """
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-noreset"]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as output:
        number = output.readline().strip()
    try:
        yield {**ENVIRONMENT, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
    finally:
        server.terminate()
        server.wait()
