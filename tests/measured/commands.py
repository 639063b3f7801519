#!/usr/bin/env python3
"""Measure the command line: what only the window can do, how long joining takes, for one and for a
class, and whether every round is in the CSV.

    python tests/measured/commands.py

Run it in the development environment, on Linux as root, which the class needs for its network. Two real engines run on this
computer: one invites, the other joins by the link, is watched and paused, writes its model, and leaves; then it plays ROUNDS
rounds alone. The guest's commands go to `commands/session.txt`, the page of the class to `commands/class.html`, the figures to
commands.json, beside this file.
"""

import contextlib
import csv
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import figures_file

sys.path[:0] = [str(figures_file.ROOT / "app"), str(figures_file.ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
from commands import classroom  # noqa: E402

from cli import parity  # noqa: E402
from end_to_end.programs import WAGGLE, Program, running  # noqa: E402
from waggle.cli.shared.engine import status  # noqa: E402
from waggle.core import paths  # noqa: E402
from waggle.core.errors import EngineError  # noqa: E402
from waggle.protocol.state import State  # noqa: E402

ROUNDS = 1000
TIMEOUT_S = 1800.0
SESSION = Path(__file__).with_suffix("") / "session.txt"
SETTINGS = ("swarm.host=127.0.0.1", "learning.questions=1", "learning.local=1", "learning.group_size=2",
            "computer.priority=normal",
            "learning.held_out_questions=1", "when.below_celsius=0", "when.only_on_power=false")  # fmt: skip


class Terminal:
    """Runs commands for a home, and writes down what a person would see."""

    def __init__(self, home: Path) -> None:
        self.home, self.screen = home, list[str]()

    def run(self, line: str) -> str:
        """What the command printed on stdout. Exits if it failed."""
        command = [*WAGGLE, *shlex.split(line), "--home", str(self.home)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        self.screen.append(f"$ waggle {line}\n{done.stderr}{done.stdout}".replace(str(self.home.parent), "~"))
        if done.returncode:
            sys.exit("\n".join(self.screen))
        return done.stdout


def engine(home: Path) -> Program:
    return Program("engine", "--home", str(home), *(word for value in SETTINGS for word in ("--set", value)))


def wait(home: Path, fits: Callable[[State], bool]) -> State:
    """The first State that fits."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(EngineError):  # it starts
            if fits(state := status(paths.Home(home))):
                return state
        time.sleep(0.2)
    sys.exit("The engine did not get there in time.")


def measure(folder: Path) -> dict[str, object]:
    host, guest = Terminal(folder / "host"), Terminal(folder / "guest")
    with running(engine(host.home)), running(engine(guest.home)):
        for person in (host, guest):
            wait(person.home, lambda state: state.phase == "contributing")
        charter = host.run('create --name "Our sums" --specialty "bf:easy,gcd:easy" --private').strip()
        host.run(f"join {charter} --yes")
        (folder / "ours.waggle").write_text(host.run("invite"))
        began = time.monotonic()
        guest.run(f"join {folder}/ours.waggle --yes")
        join_s = time.monotonic() - began
        wait(guest.home, lambda state: bool(state.members))
        for line in ("why", "peers", "pause --for 1h", "resume", f"export {folder}/trained --no-gguf", "leave", "swarms"):
            guest.run(line)
        wait(guest.home, lambda state: state.round >= ROUNDS)
        guest.run("stop")
        host.run("stop")
    rows = list(csv.DictReader(guest.run("history").splitlines()))
    played = {int(row["round"]) for row in rows}
    SESSION.parent.mkdir(exist_ok=True)
    SESSION.write_text("\n".join([*guest.screen[:-1], ""]))
    return {
        "window_only_actions": len(parity.window_only_actions(folder / "parity")),
        "join_headless_s": round(join_s, 1),
        "rounds_in_csv": len(played & set(range(ROUNDS))),
        "rounds_played": ROUNDS,
        **classroom.measure(folder / "class"),
    }


if __name__ == "__main__":
    figures_file.require_clean_tree()
    with tempfile.TemporaryDirectory() as temporary:
        figures_file.write(Path(__file__), measure(Path(temporary)))
