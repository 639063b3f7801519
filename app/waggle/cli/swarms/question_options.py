"""Options of commands that read a person's own file of questions."""

import argparse
from pathlib import Path

from waggle.cli.shared.options import text
from waggle.core import paths
from waggle.tasks.graders import grader_names


def add_grading(parser: argparse.ArgumentParser, every: str = "") -> None:
    """Add `--grader` and `--tolerance`. `every`: what is added to their help."""
    parser.add_argument(
        "--grader", default="", type=text, metavar="NAME",
        help=f"how answers are graded: {', '.join(grader_names())} (default: guessed from the answers).{every}",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", default=0.0, type=float, metavar="NUMBER",
        help=f"with the grader number: how far off is still right.{every}",
    )  # fmt: skip


def absolute(file: str) -> str:
    """The path of a file for an engine, whose current folder is another."""
    return str(paths.expand_user(Path(file)).absolute())
