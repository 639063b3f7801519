#!/usr/bin/env python3
"""Train a real model in the app until its held-out score has risen beyond chance; writes first_rise.json beside this file.

    python tests/measured/first_rise.py FOLDER [--runs 3] [--minutes 60]

FOLDER holds a small language model, such as SmolLM2-135M-Instruct. Run it in the development environment, on Linux with Xvfb, on
an idle computer. In each run a new home chooses the model and the swarm First steps by command; then the window starts, runs its
engine, and shows Home all the time. What the app recorded in the first run goes to `first_rise/recording.jsonl` for
`waggle --replay`, and pictures of Home and Progress at its end beside it.

A rise is beyond chance where the 95% interval of a score lies above that of the first score. The first scores are on a few
questions, as many of each specialty; later ones on all of them, of which the few are some.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import figures_file

sys.path[:0] = [str(figures_file.ROOT / "app"), str(figures_file.ROOT / "tests")]
from end_to_end.programs import ENVIRONMENT, WAGGLE, Program, running, virtual_screen  # noqa: E402
from waggle.core import paths  # noqa: E402
from waggle.core.confidence_interval import interval_of  # noqa: E402
from waggle.protocol import events, json_lines  # noqa: E402
from waggle.protocol.state import AnyEvent  # noqa: E402

RESULTS = Path(__file__).with_suffix("")
SWARM = "First steps"
LOOK_S = 5.0  # between two looks at the record
SIZE = "1440x900"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of a model")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to wait for the rise")
    options = parser.parse_args()
    figures_file.require_clean_tree()
    runs = []
    with virtual_screen(SIZE) as screen:
        for _ in range(options.runs):
            started = time.time()
            record = train(options.folder.resolve(), screen, 60 * options.minutes)
            if not runs:
                keep(record, screen)
            runs.append(figures_of(record, started))
    rises = [each["rise_minutes"] for each in runs if each["rise_minutes"] is not None]
    figures_file.write(
        Path(__file__).resolve(),
        {"swarm": SWARM, "rise_minutes_median": statistics.median(rises) if rises else None, "risen": len(rises), "runs": runs},
    )
    return 0


def train(model: Path, screen: dict[str, str], seconds: float) -> list[AnyEvent]:
    """Train in the app until the score has risen, or for so long; returns what the app recorded."""
    with tempfile.TemporaryDirectory() as folder:
        home = paths.Home(Path(folder) / "waggle")
        run("model", "--home", str(home.root), "choose", str(model))
        run("swarm", "join", "--home", str(home.root), "--yes", SWARM)
        deadline = time.monotonic() + seconds
        with running(Program("--home", str(home.root), environment=screen)) as window:
            while not risen(record := recorded(home)) and time.monotonic() < deadline:
                assert window.process.poll() is None, window.errors.decode()
                time.sleep(LOOK_S)
            window.process.terminate()
    return record


def keep(record: list[AnyEvent], screen: dict[str, str]) -> None:
    """Write the recording, and pictures of its end."""
    RESULTS.mkdir(exist_ok=True)
    recording = RESULTS / "recording.jsonl"
    recording.write_bytes(b"".join(map(json_lines.line, record)))
    for page in ("home", "progress"):
        run("--replay", str(recording), "--page", page, "--screenshot", str(RESULTS / f"{page}.png"), **screen)


def run(*arguments: str, **environment: str) -> None:
    subprocess.run([*WAGGLE, *arguments], env={**ENVIRONMENT, **environment}, check=True)


def recorded(home: paths.Home) -> list[AnyEvent]:
    """Everything that the app has recorded so far."""
    return [event for file in sorted(home.events.glob("*.jsonl")) for event in read(file)]


def read(file: Path) -> Iterator[AnyEvent]:
    return (event for event in json_lines.recording(file) if event is not None)


def scores(record: list[AnyEvent]) -> list[events.HeldOutScore]:
    return [event.score for event in record if isinstance(event, events.HeldOutMeasured)]


def risen(record: list[AnyEvent]) -> events.HeldOutScore | None:
    """The first score that has risen beyond chance, if any has."""
    first, *later = scores(record) or [None]
    for score in later:
        if interval_of(score.right, score.total)[0] > interval_of(first.right, first.total)[1]:
            return score
    return None


def figures_of(record: list[AnyEvent], started: float) -> dict[str, object]:
    """The figures of a run; times are minutes since the home was made, some seconds before the window was started."""
    (ready,) = (event for event in record if isinstance(event, events.Ready))
    rounds = [event.summary for event in record if isinstance(event, events.RoundCompleted)]
    rise = risen(record)
    return {
        "model": ready.model,
        "first_score_minutes": minutes(scores(record)[0].at - started),
        "first_round_minutes": minutes(rounds[0].at - started),
        "rise_minutes": minutes(rise.at - started) if rise else None,
        "rise_round": rise.round if rise else None,
        "scores": [
            {"minutes": minutes(score.at - started), "round": score.round, "right": score.right, "total": score.total}
            for score in scores(record)
        ],
        "rounds": len(rounds),
        "answers": sum(each.completions for each in rounds),
        "minutes": minutes(rounds[-1].at - started),
    }


def minutes(seconds: float) -> float:
    return round(seconds / 60, 1)


if __name__ == "__main__":
    raise SystemExit(main())
