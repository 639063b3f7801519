"""What commands print: lines for people, or with `--json` one JSON value for programs."""

import argparse
import sys

import msgspec

from waggle.core.message import english


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print the facts as JSON, for programs")


def say(*lines: str) -> int:
    """Print lines. Returns the exit code 0."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0


def say_json(value: object) -> int:
    """Print a value as one line of JSON. Returns the exit code 0."""
    return say(msgspec.json.encode(value, enc_hook=english).decode())
