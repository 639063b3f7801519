"""Real programs under test: an engine or a seed in a process of its own, its events, and ways to wait for them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

import waggle
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import AnyEvent, State, apply

WAGGLE = (sys.executable, "-m", "waggle")
USUAL = ("computer.priority=normal", "learning.held_out_questions=1")  # an exam of 270 questions takes seconds
GENTLE = "computer.cpu_percent=25"  # for an engine that a test waits beside, whatever its speed
SLOW = 3.0  # times the seconds that a computer needs which does nothing else
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}


def children_named(parent: int, word: str) -> list[psutil.Process]:
    """The children of a process whose command line names `word`; others come and go meanwhile."""
    found = []
    for child in psutil.Process(parent).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child] if any(word in part for part in child.cmdline()) else []
    return found


def child_named(parent: int, word: str) -> psutil.Process:
    """The only one of them."""
    (only,) = children_named(parent, word)
    return only


class Program:
    """`waggle NAME ...`: collects the lines of its stdout; `wait` returns the first that fits, or says what came instead."""

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
        self.lines: list[tuple[float, bytes]] = []  # with the moment each was read
        self.errors = b""
        self._came = threading.Condition()
        self._readers = [threading.Thread(target=target, daemon=True) for target in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if not line.endswith(b"\n"):  # it was killed in the midst of it
                break
            with self._came:
                self.lines.append((time.monotonic(), line))
                self._came.notify_all()
        with self._came:
            self._came.notify_all()

    def _read_errors(self) -> None:
        self.errors = self.process.stderr.read()

    def wait_line(self, fits: Callable[[bytes], bool], seconds: float, start: int = 0) -> bytes:
        """The first line from `start` on that fits; `seconds` are those of an idle computer."""
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
        """Close its stdin and wait; kill it if it does not leave. The exit code."""
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
        """SIGKILL: no chance to save anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for reader in self._readers:
            reader.join(5)


class Engine(Program):
    """An engine driven the way the window drives it, under the usual settings where none of its own say otherwise."""

    def __init__(
        self,
        home: Path,
        *settings: str,
        command: Sequence[str] = WAGGLE,
        environment: dict[str, str] | None = None,
    ) -> None:
        chosen = [part for one in (*USUAL, *settings) for part in ("--set", one)]
        super().__init__("engine", "--stdio", "--home", str(home), *chosen, command=command, environment=environment)
        self._commands = 0

    @property
    def told(self) -> list[AnyEvent]:
        with self._came:
            return [json_lines.event(line) for _, line in self.lines]

    def timed(self) -> list[tuple[float, AnyEvent]]:
        """Events with the moments they were read."""
        with self._came:
            return [(at, json_lines.event(line)) for at, line in self.lines]

    def wait(self, kind: type, seconds: float = 60.0, fits: Callable[..., bool] = lambda event: True, start: int = 0) -> AnyEvent:
        """The first event of a kind that fits."""
        name = f'"type":"{kind.__name__}"'.encode()
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
        """What all that it told folds into."""
        state = State()
        for event in self.told:
            state = apply(state, event)
        return state

    def rounds(self) -> list[events.RoundSummary]:
        return [event.summary for event in self.told if isinstance(event, events.RoundCompleted)]

    def wait_round(self, number: int, seconds: float) -> None:
        self.wait(events.RoundCompleted, seconds, lambda event: event.summary.round >= number)


class Seed(Program):
    """A bootstrap node, on loopback if nothing else is said."""

    def __init__(self, home: Path, host: str = "127.0.0.1", command: Sequence[str] = WAGGLE) -> None:
        self._host = host
        super().__init__("seed", "--home", str(home), "--set", f"swarm.host={host}", command=command)

    def end(self) -> int:
        """A seed does not listen on stdin."""
        self.process.terminate()
        return super().end()

    def address(self, seconds: float = 60.0) -> str:
        line = self.wait_line(lambda line: f"/ip4/{self._host}/tcp/".encode() in line, seconds)
        return next(word for word in line.decode().split() if word.startswith("/ip4/"))


@contextlib.contextmanager
def running(program: Program) -> Iterator[Program]:
    """Ends the program whatever happens."""
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.end()


@contextlib.contextmanager
def virtual_screen(size: str = "1400x900") -> Iterator[dict[str, str]]:
    """An environment with a screen of its own; Xvfb picks a free number and says which.

    Without -noreset it begins anew whenever its last client leaves, and whoever comes meanwhile finds no screen.
    """
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-noreset"]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as said:
        number = said.readline().strip()
    try:
        yield {**ENVIRONMENT, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
    finally:
        server.terminate()
        server.wait()
