"""Options that several commands share."""

import argparse
from pathlib import Path


def text(word: str) -> str:
    """A word in UTF-8. Raises argparse.ArgumentTypeError for other bytes, which file names may contain."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{word!a} is not written in UTF-8") from None
    return word


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add `--home`. The parser of `waggle` sets its default, so that it can also stand before the command."""
    parser.add_argument(
        "--home", type=Path, metavar="FOLDER", default=argparse.SUPPRESS,
        help="where this node keeps everything (default: per user)",
    )  # fmt: skip


def add_settings(parser: argparse.ArgumentParser, destination: str = "set") -> None:
    """Add `--set`, which may be repeated, and say that this command takes settings."""
    parser.set_defaults(takes_settings=True)
    parser.add_argument(
        "--set", dest=destination, action="append", type=text, default=argparse.SUPPRESS, metavar="SECTION.NAME=VALUE",
        help="a setting, for this run only",
    )  # fmt: skip


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add `--verbose`. The parser of `waggle` sets its default, as it does for `--home`."""
    parser.add_argument(
        "--verbose", action="store_true", default=argparse.SUPPRESS,
        help="log what is retried, dropped or slow, and why, to stderr and the log file",
    )  # fmt: skip


def start_log(arguments: argparse.Namespace) -> None:
    """Log to stderr and into the home of these arguments; make the home if it is missing."""
    from contextlib import suppress

    from waggle.core import log, paths

    home = paths.home_in(arguments.home)
    with suppress(OSError):  # the command reports it in its own words
        home.prepare()
    log.start("DEBUG" if arguments.verbose else "WARNING", home.logs)
