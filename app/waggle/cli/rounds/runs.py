"""`waggle runs`: list the runs of nodes, with rewards and held-out scores."""

import argparse

from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.text.round_number import round_number
from waggle.engine.storage import runs
from waggle.engine.storage.runs import RunFacts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("folders", nargs="*", type=text, metavar="FOLDER", help="of other nodes (default: this one)")


def run(arguments: argparse.Namespace) -> int:
    """Print the runs, the newest last. Raises HistoryError."""
    homes = [home_of(folder) for folder in arguments.folders] or [paths.home_in(arguments.home)]
    facts = [runs.facts_of(each) for home in homes for each in runs.runs_of(home)]
    if arguments.json:
        return say_json({"runs": facts})
    if not facts:
        return say("No round has been played here yet.")
    width = max(len(fact.name) for fact in facts)  # whole, because `waggle compare` takes it
    head = f"{'run':<{width}}  {'rounds':>11}  {'reward':>6}  {'held out':>8}  folder"
    return say(head, *(_line(fact, width) for fact in facts))


def home_of(folder: str) -> paths.Home:
    """The node of a folder that a person named."""
    return paths.Home(paths.expand_user(folder).absolute())


def _line(fact: RunFacts, width: int) -> str:
    span = f"{round_number(fact.first)}–{round_number(fact.last)}"
    return f"{fact.name:<{width}}  {span:>11}  {fact.reward:6.3f}  {share_text(fact.held_out):>8}  {fact.folder}"


def share_text(value: float | None) -> str:
    """A share in percent; empty if it is not known."""
    return "" if value is None else f"{value:.1%}"
