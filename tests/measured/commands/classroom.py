"""A class: twenty engines on one network, each in a network namespace behind one bridge, as laptops behind one switch are.

The teacher's engine creates the swarm by the preset; the others train alone. Then one after the other opens the file of one
invite, two seconds apart, each under a name of its own. The time counts from the first of them until the teacher's page lists the
last. A class has a processor for each computer; here all share one, with what else runs on it. Needs Linux and root.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from end_to_end.programs import WAGGLE, Program
from waggle.cli.shared.engine import status
from waggle.core import paths
from waggle.core.errors import EngineError

COMPUTERS, WITHIN_S, APART_S = 20, 60.0, 2.0
START_S = 900.0  # for all engines to train alone, on one small computer
PREFIX = f"wc{os.getpid() % 10000}"
BRIDGE, SUBNET = f"{PREFIX}b", "10.98.0"
# All share one processor: each plays small rounds in a few percent of the time, and prepares at full speed.
SETTINGS = (
    "learning.questions=1", "learning.local=1", "learning.group_size=4", "learning.held_out_questions=1",
    "computer.threads=1", "computer.cpu_percent=5", "computer.priority=normal",
    "when.below_celsius=0", "when.only_on_power=false",
)  # fmt: skip

READ_PAGE = """
import socket, sys
with socket.create_connection((sys.argv[1], 8080), 10) as page:
    page.sendall(f"GET /class HTTP/1.1\\r\\nHost: {sys.argv[1]}:8080\\r\\n\\r\\n".encode())
    while part := page.recv(65536):
        sys.stdout.buffer.write(part)
"""  # few imports: the processor is shared


def measure(folder: Path) -> dict[str, object]:
    """How many of the class are on the teacher's page in time, and what that took of this computer."""
    load_before = os.getloadavg()[0]
    with network(COMPUTERS), contextlib.ExitStack() as stack:
        homes = [folder / f"computer{number}" for number in range(COMPUTERS)]
        engines = [stack.enter_context(_running(number, home)) for number, home in enumerate(homes)]
        for home in homes:
            _wait(home)
        words = ("create", "--preset", "classroom", "--name", "Our class", "--as", "Teacher", "--yes")
        _waggle(0, homes[0], *words)
        _wait(homes[0])
        invite = folder / "invite.waggle"
        _waggle(0, homes[0], "invite", "--file", str(invite))
        moments, joining = _join_all(homes, invite)
        failures = [join.communicate()[1].decode() for join in joining if join.wait()]
        if failures:
            sys.stderr.write("\n".join(failures))
        in_time = [moment for moment in moments if moment <= WITHIN_S]
        page = _page()
        (Path(__file__).parent / "class.html").write_bytes(page.partition(b"\r\n\r\n")[2])
        return {
            "classroom_joined": len(in_time),
            "classroom_computers": COMPUTERS,
            "classroom_last_joined_s": round(max(moments), 1) if len(moments) == COMPUTERS else None,
            "classroom_memory_gb": round(sum(map(_memory, engines)) / 1e9, 1),
            "classroom_cores": os.cpu_count(),
            "classroom_load_before": round(load_before, 1),
        }


def _join_all(homes: list[Path], invite: Path) -> tuple[list[float], list[subprocess.Popen[bytes]]]:
    """Let all but the first join. Returns when each stood on the teacher's page, in seconds, and the commands."""
    there: dict[str, float] = {}
    joining: list[subprocess.Popen[bytes]] = []
    began = time.monotonic()
    while len(there) < COMPUTERS and time.monotonic() - began < 5 * WITHIN_S:
        number = len(joining) + 1
        if number < COMPUTERS and time.monotonic() - began >= APART_S * len(joining):
            command = _command(number, homes[number], "join", str(invite), "--as", f"Pupil {number}", "--yes")
            joining.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        for name in re.findall(r"<li><b>(Teacher|Pupil [0-9]+)</b>", _page().decode()):
            there.setdefault(name, time.monotonic() - began)
        time.sleep(0.5)
    return sorted(there.values()), joining


def _page() -> bytes:
    """The teacher's page, as the last computer of the network gets it."""
    asking = _inside(COMPUTERS - 1, sys.executable, "-I", "-S", "-c", READ_PAGE, _address(0))
    return subprocess.run(asking, capture_output=True, check=True).stdout


def _memory(engine: Program) -> int:
    """Bytes of an engine and its children that no other process shares."""
    processes = [psutil.Process(engine.process.pid)]
    processes += processes[0].children(recursive=True)
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # judging processes come and go
            total += process.memory_full_info().uss
    return total


def _wait(home: Path) -> None:
    """Wait until the engine contributes."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(EngineError):  # it starts
            if status(paths.Home(home)).phase == "contributing":
                return
        time.sleep(0.5)
    sys.exit(f"The engine of {home.name} does not contribute.")


@contextmanager
def _running(number: int, home: Path) -> Iterator[Program]:
    settings = [word for value in SETTINGS for word in ("--set", value)]
    engine = Program("engine", "--json", "--home", str(home), *settings, command=_inside(number, *WAGGLE))
    try:
        yield engine
    finally:
        engine.process.terminate()
        engine.end()


def _waggle(number: int, home: Path, *words: str) -> str:
    done = subprocess.run(_command(number, home, *words), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def _command(number: int, home: Path, *words: str) -> list[str]:
    return _inside(number, *WAGGLE, *words, "--home", str(home))


def _inside(number: int, *command: str) -> list[str]:
    return ["ip", "netns", "exec", f"{PREFIX}n{number}", *command]


def _address(number: int) -> str:
    return f"{SUBNET}.{number + 1}"


@contextmanager
def network(count: int) -> Iterator[None]:
    """So many computers on one bridge, in a namespace of their own; nothing else is on this network."""
    try:
        _ip("netns", "add", BRIDGE)
        _ip("-n", BRIDGE, "link", "add", "name", "switch", "type", "bridge")
        _ip("-n", BRIDGE, "link", "set", "switch", "up")
        for number in range(count):
            name, port = f"{PREFIX}n{number}", f"p{number}"
            _ip("netns", "add", name)
            _ip("link", "add", "lan", "netns", name, "type", "veth", "peer", "name", port, "netns", BRIDGE)
            _ip("-n", BRIDGE, "link", "set", port, "master", "switch")
            _ip("-n", BRIDGE, "link", "set", port, "up")
            _ip("-n", name, "addr", "add", f"{_address(number)}/24", "dev", "lan")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "lan", "up")
            _ip("-n", name, "route", "add", "default", "dev", "lan")
        yield
    finally:
        for name in (BRIDGE, *(f"{PREFIX}n{number}" for number in range(count))):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
