"""`waggle history`: print every round of the model that is trained here as numbers, or write them to a Parquet file."""

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import say
from waggle.core import paths, settings
from waggle.core.errors import HistoryError
from waggle.core.text.legible_name import legible
from waggle.engine.runtime import model_source
from waggle.engine.services.earlier_runs import earlier_runs
from waggle.engine.storage import run_file
from waggle.protocol import rounds_csv
from waggle.protocol.events import HeldOutScore, RoundSummary, TrainingRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    for form in rounds_csv.FORMS:
        parser.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="csv",
            help="a table with a head (default)" if form == "csv" else "one JSON object a line",
        )  # fmt: skip
    parser.add_argument("--runs", action="store_true", help="list the other models that were trained here, with their scores")
    parser.add_argument("--parquet", type=text, metavar="FILE", help="write them to a new Parquet file; needs pyarrow")


def run(arguments: argparse.Namespace) -> int:
    """Print or write the rounds, also beside a running engine. Raises HistoryError."""
    home = paths.home_in(arguments.home)
    home = model_source.home_of(home, settings.read(home.settings).model)
    if arguments.runs:
        return _print_runs(earlier_runs(home).runs)
    rounds, scores = run_file.read_rounds(home)
    if arguments.parquet:
        return _write_parquet(paths.expand_user(Path(arguments.parquet)), rounds, scores)
    if isinstance(sys.stdout, io.TextIOWrapper):  # as other programs read tables and JSON, whatever the terminal's encoding
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    rounds_csv.write(sys.stdout, rounds, scores, arguments.form)
    return 0


def _print_runs(runs: Sequence[TrainingRun]) -> int:
    """A line for each training of another model, the newest first."""
    if not runs:
        return say("Only one model has scores here.")
    for run in runs:
        model = "the starter" if run.is_starter else legible(run.model) or "a model from a folder"
        last = run.held_out[-1]
        say(f"{model}: {run.rounds} rounds, {last.right} of {last.total} right on held-out questions after round {last.round}.")
    return 0


def _write_parquet(path: Path, rounds: list[RoundSummary], scores: list[HeldOutScore]) -> int:
    """Write a table with a column for each number. The library is imported by name: the installed app is packed without it."""
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        advice = "Install it beside Waggle: pip install 'waggle[research]'. `waggle history` prints a table without it."
        raise HistoryError("A Parquet file needs pyarrow, which is not installed.", advice) from error
    if path.exists():
        raise HistoryError(f"{path} is there already.", "Name a new file.")
    parquet.write_table(pyarrow.Table.from_pylist(rounds_csv.every_row(rounds, scores)), str(path))
    return say(f"Written to {path}: {len(rounds)} rounds.")
