#!/usr/bin/env python3
"""Play two people at two windows: one creates a swarm and invites, the other joins by the link, and both learn.

    python tests/measured/two_windows.py [--rounds 30]

Run it in the development environment, on Linux with Xvfb and xdotool. It clicks and types into real windows with real engines,
each on a screen of its own, and reads the link from the first window. It writes the events of both nodes (unpack them with xz,
then `waggle --replay FILE`) and pictures of both windows to `two_windows/`, and figures to two_windows.json, beside this file.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figures_file
import numpy as np
from PySide6.QtGui import QImage

sys.path[:0] = [str(figures_file.ROOT / "app"), str(figures_file.ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
from end_to_end.programs import PATIENCE, Program, until, virtual_screen  # noqa: E402
from waggle.cli.shared import engine as engine_answers  # noqa: E402
from waggle.core import paths  # noqa: E402
from waggle.core.errors import EngineError  # noqa: E402
from waggle.protocol import commands, events, json_lines  # noqa: E402
from waggle.protocol.events import RoundSummary  # noqa: E402
from waggle.protocol.state import AnyEvent, State  # noqa: E402

SWARM_NAME = "Two laptops"
SPECIALTIES = ("Base conversion", "Fractions")
RESULTS = Path(__file__).with_suffix("")
WINDOW_PROGRAM = figures_file.ROOT / "tests/end_to_end/watched_window.py"
SETTINGS = ("swarm.host=127.0.0.1", "computer.priority=normal")


class Person:
    """A person at a window, with a mouse and a keyboard."""

    def __init__(self, who: str, home: Path, screen: dict[str, str]) -> None:
        self.who, self.home, self._screen = who, paths.Home(home), screen
        options = [part for setting in SETTINGS for part in ("--set", setting)]
        command = (sys.executable, str(WINDOW_PROGRAM), "--home", str(home), *options)
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
        """Save a picture of the window, with the pointer in a corner."""
        self._move("mousemove", "1395", "895")
        time.sleep(1.0)  # until the window has redrawn, which it does at most ten times a second
        file = RESULTS / f"{name}.png"
        assert self._ask(picture=str(file))["saved"]
        make_small(file)

    def state(self) -> State | None:
        try:
            return engine_answers.status(self.home)
        except EngineError:  # the engine is not there yet, or is restarting
            return None

    def recorded_events(self) -> list[AnyEvent]:
        files = sorted(self.home.events.glob("*.jsonl"))
        return [event for file in files for event in json_lines.recording(file) if event is not None]

    def _ask(self, **question: str) -> dict[str, Any]:
        start = len(self.window.lines)
        self.window.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.window.process.stdin.flush()
        return json.loads(self.window.wait_line(lambda line: line.startswith(b"{"), PATIENCE, start))

    def _move(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env=self._screen, check=True)


def is_contributing_to(person: Person, swarm: str) -> bool:
    state = person.state()
    return state is not None and state.ready is not None and state.ready.swarm == swarm and state.phase == "contributing"


def rounds_of(person: Person) -> list[RoundSummary]:
    """The rounds that a person's node played in the swarm of both."""
    recorded = person.recorded_events()
    start = max(i for i, event in enumerate(recorded) if isinstance(event, events.Ready))
    return [event.summary for event in recorded[start:] if isinstance(event, events.RoundCompleted)]


def play(first: Person, second: Person, rounds: int) -> dict[str, object]:
    """Play the whole story; returns the figures. Seconds are those that a person waits."""
    for person in (first, second):
        until(lambda person=person: is_contributing_to(person, "First light"), f"{person.who} does not begin")
        person.click("Swarms")
    first.click("Create a swarm")
    first.click("Name of the swarm")
    first.type(SWARM_NAME)
    for specialty in SPECIALTIES:
        first.click(specialty)
    first.picture("1-one-creates-a-swarm")
    create_clicked = time.monotonic()
    first.click("Create")
    first.click(f"Switch to {SWARM_NAME}")
    until(lambda: is_contributing_to(first, SWARM_NAME), "the first does not arrive")
    created = time.monotonic()
    first.click("Invite someone")
    link = first.read("The invite link")
    first.picture("2-one-invites")

    second.click("Join with an invite")
    second.click("An invite link")
    second.type(link)
    second.click("Preview")
    second.sees(f"Join {SWARM_NAME}")
    second.picture("3-the-other-looks")
    join_clicked = time.monotonic()
    second.click(f"Join {SWARM_NAME}")
    until(lambda: is_contributing_to(second, SWARM_NAME), "the second does not arrive")
    arrived = time.monotonic()
    first.click("Done")
    for person in (first, second):
        until(lambda person=person: any(summary.external for summary in rounds_of(person)), f"{person.who} learns from nobody")
    learned = time.monotonic()
    for person in (first, second):
        until(lambda person=person: len(rounds_of(person)) >= rounds, f"{person.who} stands still", 20.0 * rounds)
    for person, pages in ((first, ("Peers", "Home")), (second, ("Live", "Home"))):
        for page in pages:
            person.click(page)
            person.picture(f"4-{person.who}-{page.lower()}")
    return {
        "create_and_go_s": round(created - create_clicked, 1), "join_s": round(arrived - join_clicked, 1),
        "both_learned_from_the_other_s": round(learned - join_clicked, 1), "link_characters": len(link),
        **{person.who: figures(rounds_of(person)) for person in (first, second)},
    }  # fmt: skip


def figures(rounds: list[RoundSummary]) -> dict[str, float]:
    third = max(1, len(rounds) // 3)
    return {
        "rounds": len(rounds), "groups_used_of_the_other": sum(summary.external for summary in rounds),
        "reward_first_third": round(statistics.mean(summary.reward for summary in rounds[:third]), 4),
        "reward_last_third": round(statistics.mean(summary.reward for summary in rounds[-third:]), 4),
    }  # fmt: skip


def save_events(person: Person, rounds: int) -> None:
    """Save the events up to so many rounds in the swarm of both, for a replay."""
    recorded, last = person.recorded_events(), rounds_of(person)[rounds - 1]
    end = next(i for i, event in enumerate(recorded) if isinstance(event, events.RoundCompleted) and event.summary == last)
    lines = b"".join(json_lines.line(event) for event in recorded[: end + 1])
    (RESULTS / f"events-of-{person.who}.jsonl.xz").write_bytes(lzma.compress(lines, preset=9))


def make_small(picture: Path) -> None:
    """Reduce a picture to its 256 most frequent colours (others become the nearest of them): a third of the bytes."""
    image = QImage(str(picture)).convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.bits(), np.uint8).reshape(-1, 4)
    colours, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts)[:256]].astype(int)
    nearest = np.array([np.abs(palette - colour).sum(axis=1).argmin() for colour in colours.astype(int)])
    reduced = palette[nearest[places.ravel()]].astype(np.uint8)
    result = QImage(reduced.tobytes(), image.width(), image.height(), QImage.Format.Format_RGB32)
    result.convertToFormat(QImage.Format.Format_Indexed8).save(str(picture), quality=0)


@contextlib.contextmanager
def person_at_window(who: str, home: Path) -> Iterator[Person]:
    with virtual_screen() as screen:
        person = Person(who, home, screen)
        try:
            yield person
        finally:
            person.window.kill()  # its engine notices, and exits by itself


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30, help="rounds that each plays in the swarm of both")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        with (
            person_at_window("one", Path(folder) / "one") as first,
            person_at_window("the-other", Path(folder) / "other") as second,
        ):
            story_figures = play(first, second, options.rounds)
            for person in (first, second):
                save_events(person, options.rounds)
                engine_answers.ask(person.home, commands.Stop(id="stop"))
        shutil.rmtree(folder, ignore_errors=True)
    figures_file.write(Path(__file__).resolve(), story_figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
