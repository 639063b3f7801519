"""`waggle compare`: compare two runs by reward and held-out score."""

import argparse
from pathlib import Path

import msgspec

from waggle.cli.rounds.runs import home_of, share_text
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.text.round_number import round_number
from waggle.engine.storage import runs
from waggle.engine.storage.runs import Comparison, Run, RunFacts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    for place in ("first", "second"):
        parser.add_argument(place, type=text, metavar="RUN", help="its name, or the folder of a node, for its newest run")
    parser.add_argument("--write", type=text, metavar="FILE", help="also write the comparison to a new JSON file")


def run(arguments: argparse.Namespace) -> int:
    """Print a comparison. Raises HistoryError, and OSError for the file."""
    compared = runs.compare(*(_run(words, paths.home_in(arguments.home)) for words in (arguments.first, arguments.second)))
    if arguments.write:
        paths.write_new(paths.expand_user(Path(arguments.write)), msgspec.json.format(msgspec.json.encode(compared)) + b"\n")
    return say_json(compared) if arguments.json else say(*_lines(compared))


def _run(words: str, home: paths.Home) -> Run:
    """The run that a person means. Raises HistoryError."""
    known = runs.runs_of(home_of(words))
    return known[-1] if known else runs.find(words, home)


def _lines(compared: Comparison) -> list[str]:
    first, second = compared.runs
    lines = [f"A  {first.name}  {first.folder}", f"B  {second.name}  {second.folder}", ""]
    lines.append(f"{'rounds':>11}  {'reward A':>8}  {'reward B':>8}  {'held out A':>10}  {'held out B':>10}")
    for part in compared.parts:
        rewards = "  ".join(f"{reward:8.3f}" for reward in part.reward)
        scores = "  ".join(f"{share_text(score):>10}" for score in part.held_out)
        span = f"{round_number(part.first)}–{round_number(part.last)}"
        lines.append(f"{span:>11}  {rewards}  {scores}")
    return [
        *lines,
        "",
        *(_score_line(letter, fact) for letter, fact in zip("AB", compared.runs, strict=True)),
        _verdict(compared),
    ]


def _score_line(letter: str, fact: RunFacts) -> str:
    if fact.held_out is None or fact.interval is None:
        return f"{letter}: {fact.rounds} rounds, no held-out score."
    low, high = fact.interval
    return f"{letter}: {fact.rounds} rounds, last held-out score {fact.held_out:.1%} (95% interval: {low:.1%} to {high:.1%})."


def _verdict(compared: Comparison) -> str:
    if compared.differ is None:
        return "Without two scores, which one solves more new questions is not known."
    if not compared.differ:
        return "These scores are too close to tell which one solves more new questions."
    first, second = compared.runs
    better = "A" if (first.held_out or 0) > (second.held_out or 0) else "B"
    return f"{better} solves more new questions. One run each: another seed may give another answer."
