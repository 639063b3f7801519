"""`waggle history`: print every round of the model that is trained here as numbers, or write them to a Parquet file."""

import argparse
import io
import sys
from importlib import import_module
from pathlib import Path

from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import say
from waggle.core import paths, research_library, settings
from waggle.core.errors import HistoryError
from waggle.core.message import Message, in_turn
from waggle.engine.runtime import model_source
from waggle.engine.storage import run_file
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.figures import rounds_csv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    for form in rounds_csv.FORMS:
        parser.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="csv",
            help="a table with a head (default)" if form == "csv" else "one JSON object a line",
        )  # fmt: skip
    parser.add_argument("--parquet", type=text, metavar="FILE", help="write them to a new Parquet file; needs pyarrow")


def run(arguments: argparse.Namespace) -> int:
    """Print or write the rounds, also beside a running engine. Raises HistoryError."""
    home = paths.home_in(arguments.home)
    home = model_source.home_of(home, settings.read(home.settings).model)
    rounds, scores = run_file.read_rounds(home)
    if arguments.parquet:
        return _write_parquet(paths.expand_user(Path(arguments.parquet)), rounds, scores)
    if isinstance(sys.stdout, io.TextIOWrapper):  # as other programs read tables and JSON, whatever the terminal's encoding
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    rounds_csv.write(sys.stdout, rounds, scores, arguments.form)
    return 0


def _write_parquet(path: Path, rounds: list[RoundSummary], scores: list[HeldOutScore]) -> int:
    """Write a table with a column for each number. The library is imported by name: the installed app is packed without it."""
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        advice = in_turn(Message("`waggle history` prints a table without it."), research_library.advice("pyarrow"))
        raise HistoryError("A Parquet file needs pyarrow, which is not installed.", advice) from error
    if path.exists():
        raise HistoryError(f"{path} is there already.", "Name a new file.")
    rows = rounds_csv.every_row(rounds, scores)
    kinds = {"words": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64()}
    schema = pyarrow.schema([(column, kinds[rounds_csv.kind_of(column)]) for column in rows[0]])
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), str(path))
    return say(f"Written to {path}: {len(rounds)} rounds.")
