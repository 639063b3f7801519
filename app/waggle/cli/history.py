"""`waggle history`: print every round of the model that is trained here, as numbers."""

import argparse
import io
import sys

from waggle.cli.shared.options import add_home
from waggle.core import paths, settings
from waggle.core.errors import HistoryError
from waggle.engine.runtime import model_source
from waggle.engine.storage import history
from waggle.protocol import rounds_csv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    for form in rounds_csv.FORMS:
        parser.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="csv",
            help="a table with a head (default)" if form == "csv" else "one JSON object a line",
        )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Print the rounds, also beside a running engine. Raises HistoryError."""
    home = paths.home_in(arguments.home)
    path = model_source.home_of(home, settings.read(home.settings).model).model.history
    if not path.exists():
        raise HistoryError("No round has been played here yet.", "The engine writes the history: `waggle engine` starts it.")
    try:
        rounds, scores = history.read_all(path)
    except history.DAMAGED as error:
        raise HistoryError(f"The history {path} cannot be read: {error}.", "The engine repairs it when it starts.") from error
    if isinstance(sys.stdout, io.TextIOWrapper):  # as other programs read tables and JSON, whatever the terminal's encoding
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    rounds_csv.write(sys.stdout, rounds, scores, arguments.form)
    return 0
