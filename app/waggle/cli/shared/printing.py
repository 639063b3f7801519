"""What commands print: lines for people, or with `--json` one JSON value for programs."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from waggle.core.message import english, packed_message


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print the facts as JSON, for programs")


def say(*lines: str) -> int:
    """Print lines. Returns the exit code 0."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0


def say_for(lines: Sequence[str], *, window: bool) -> int:
    """Print lines for people, or each as JSON for a window, which puts messages into its language. Returns the exit code 0."""
    if not window:
        return say(*lines)
    return say(*(msgspec.json.encode(line, enc_hook=packed_message).decode() for line in lines))


def add_stdio(parser: argparse.ArgumentParser) -> None:
    """Add `--stdio`."""
    parser.add_argument("--stdio", action="store_true", help="print each line as JSON, for a window")


def say_json(value: object) -> int:
    """Print a value as one line of JSON. Returns the exit code 0."""
    return say(msgspec.json.encode(value, enc_hook=english).decode())
