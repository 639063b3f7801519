#!/usr/bin/env python3
"""Two people at two windows of one computer: one creates a swarm and invites, the other joins by the link, and both learn.

    python tests/measured/two_windows.py [--rounds 30]

Run it in the development environment; Linux, with Xvfb and xdotool. Real windows with real engines, each on a screen of its
own, are clicked and typed at from outside; the link is read off the first window. Both nodes' events (`waggle --replay FILE`,
once unpacked by xz) and pictures of both windows are left in `two_windows/`, figures in two_windows.json, both beside this file.
"""

import argparse
import contextlib
import json
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keep
import numpy as np
from PySide6.QtGui import QImage

sys.path[:0] = [str(keep.ROOT / "app"), str(keep.ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
from end_to_end.programs import Program, virtual_screen  # noqa: E402
from waggle.cli import ctl  # noqa: E402
from waggle.core import paths  # noqa: E402
from waggle.core.errors import EngineError  # noqa: E402
from waggle.protocol import commands, events, json_lines  # noqa: E402
from waggle.protocol.events import RoundSummary  # noqa: E402
from waggle.protocol.state import AnyEvent, State  # noqa: E402

NAME = "Two laptops"
KINDS = ("Base conversion", "Fractions")
SOON = 300.0  # two engines on a busy computer
KEPT = Path(__file__).with_suffix("")
WATCHED = keep.ROOT / "tests/end_to_end/watched_window.py"
SETTINGS = ("swarm.host=127.0.0.1", "computer.priority=normal")


class Person:
    """At one window, with a mouse and a keyboard."""

    def __init__(self, who: str, home: Path, screen: dict[str, str]) -> None:
        self.who, self.home, self._screen = who, paths.Home(home), screen
        chosen = [part for one in SETTINGS for part in ("--set", one)]
        command = (sys.executable, str(WATCHED), "--home", str(home), *chosen)
        self.window = Program(command=command, environment=screen)

    def click(self, name: str) -> None:
        at = until(lambda: self._ask(where=name), f"{self.who} finds no {name}")
        self._move("mousemove", str(at["x"]), str(at["y"]), "click", "1")

    def type(self, words: str) -> None:
        self._move("type", "--delay", "2", words)

    def read(self, name: str) -> str:
        return str(until(lambda: self._ask(words=name)["words"], f"{self.who} reads nothing in {name}"))

    def sees(self, name: str) -> None:
        until(lambda: self._ask(where=name), f"{self.who} finds no {name}")

    def picture(self, name: str) -> None:
        """Taken when the pointer rests nowhere in particular."""
        self._move("mousemove", "1395", "895")
        time.sleep(1.0)  # for the next redrawing: the window redraws at most ten times a second
        file = KEPT / f"{name}.png"
        assert self._ask(picture=str(file))["saved"]
        make_small(file)

    def state(self) -> State | None:
        try:
            return ctl.status(self.home)
        except EngineError:  # not there yet, or just starting again
            return None

    def told(self) -> list[AnyEvent]:
        files = sorted(self.home.events.glob("*.jsonl"))
        return [event for file in files for event in json_lines.recording(file) if event is not None]

    def _ask(self, **asked: str) -> dict[str, Any]:
        start = len(self.window.lines)
        self.window.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.window.process.stdin.flush()
        return json.loads(self.window.wait_line(lambda line: line.startswith(b"{"), SOON, start))

    def _move(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env=self._screen, check=True)


def until(condition: Callable[[], Any], otherwise: str, seconds: float = SOON) -> Any:
    """The first true answer; a person looks a few times a second."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"{otherwise}, not within {seconds:.0f} s")


def is_in(person: Person, swarm: str) -> bool:
    state = person.state()
    return state is not None and state.ready is not None and state.ready.swarm == swarm and state.phase == "contributing"


def rounds_of(person: Person) -> list[RoundSummary]:
    """Those played in the swarm of the two."""
    told = person.told()
    begun = max(i for i, event in enumerate(told) if isinstance(event, events.Ready))
    return [event.summary for event in told[begun:] if isinstance(event, events.RoundCompleted)]


def play(first: Person, second: Person, rounds: int) -> dict[str, object]:
    """The whole story; seconds are those that a person waits."""
    for person in (first, second):
        until(lambda person=person: is_in(person, "First light"), f"{person.who} does not begin")
        person.click("Swarms")
    first.click("Create a swarm")
    first.click("Name of the swarm")
    first.type(NAME)
    for kind in KINDS:
        first.click(kind)
    first.picture("1-one-creates-a-swarm")
    asked = time.monotonic()
    first.click("Create")
    first.click(f"Go to {NAME}")
    until(lambda: is_in(first, NAME), "the first does not arrive")
    created = time.monotonic()
    first.click("Invite someone")
    link = first.read("The invite link")
    first.picture("2-one-invites")

    second.click("Join by a link")
    second.click("An invite link")
    second.type(link)
    second.click("Look at it")
    second.sees(f"Join {NAME}")
    second.picture("3-the-other-looks")
    joined = time.monotonic()
    second.click(f"Join {NAME}")
    until(lambda: is_in(second, NAME), "the second does not arrive")
    arrived = time.monotonic()
    first.click("Done")
    for person in (first, second):
        until(lambda person=person: any(one.external for one in rounds_of(person)), f"{person.who} learns from nobody")
    learned = time.monotonic()
    for person in (first, second):
        until(lambda person=person: len(rounds_of(person)) >= rounds, f"{person.who} stands still", 20.0 * rounds)
    for person, pages in ((first, ("Peers", "Home")), (second, ("Live", "Home"))):
        for page in pages:
            person.click(page)
            person.picture(f"4-{person.who}-{page.lower()}")
    return {
        "create_and_go_s": round(created - asked, 1), "join_s": round(arrived - joined, 1),
        "both_learned_from_the_other_s": round(learned - joined, 1), "link_characters": len(link),
        **{person.who: figures(rounds_of(person)) for person in (first, second)},
    }  # fmt: skip


def figures(rounds: list[RoundSummary]) -> dict[str, float]:
    third = max(1, len(rounds) // 3)
    return {
        "rounds": len(rounds), "groups_used_of_the_other": sum(one.external for one in rounds),
        "reward_first_third": round(statistics.mean(one.reward for one in rounds[:third]), 4),
        "reward_last_third": round(statistics.mean(one.reward for one in rounds[-third:]), 4),
    }  # fmt: skip


def keep_events(person: Person, rounds: int) -> None:
    """What was told until so many rounds in the swarm of the two, so that it can be played again."""
    told, last = person.told(), rounds_of(person)[rounds - 1]
    ends = next(i for i, event in enumerate(told) if isinstance(event, events.RoundCompleted) and event.summary == last)
    lines = b"".join(json_lines.line(event) for event in told[: ends + 1])
    (KEPT / f"events-of-{person.who}.jsonl.xz").write_bytes(lzma.compress(lines, preset=9))


def make_small(picture: Path) -> None:
    """The same picture in its 256 most frequent colours, each other one become the nearest of them: a third of the bytes."""
    image = QImage(str(picture)).convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.bits(), np.uint8).reshape(-1, 4)
    colours, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    kept = colours[np.argsort(-counts)[:256]].astype(int)
    nearest = np.array([np.abs(kept - colour).sum(axis=1).argmin() for colour in colours.astype(int)])
    few = kept[nearest[places.ravel()]].astype(np.uint8)
    made = QImage(few.tobytes(), image.width(), image.height(), QImage.Format.Format_RGB32)
    made.convertToFormat(QImage.Format.Format_Indexed8).save(str(picture), quality=0)


@contextlib.contextmanager
def at_a_window(who: str, home: Path) -> Iterator[Person]:
    with virtual_screen() as screen:
        person = Person(who, home, screen)
        try:
            yield person
        finally:
            person.window.kill()  # its engine hears that, and leaves by itself


def main() -> int:
    made = argparse.ArgumentParser()
    made.add_argument("--rounds", type=int, default=30, help="that each plays in the swarm of the two")
    chosen = made.parse_args()
    keep.require_clean()
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        with at_a_window("one", Path(folder) / "one") as first, at_a_window("the-other", Path(folder) / "other") as second:
            found = play(first, second, chosen.rounds)
            for person in (first, second):
                keep_events(person, chosen.rounds)
                ctl.ask(person.home, commands.Stop(id="stop"))
        shutil.rmtree(folder, ignore_errors=True)
    keep.write(Path(__file__).resolve(), found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
