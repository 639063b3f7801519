"""`waggle token`: store the token of the model hub in the keychain, or remove it from there."""

import argparse
import getpass
import sys

from waggle.core import hub_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--forget", action="store_true", help="remove it from the keychain")


def run(arguments: argparse.Namespace) -> int:
    """Store the token that is typed or piped in, or remove the stored one. Raises TokenError."""
    if arguments.forget:
        hub_token.forget()
        sys.stdout.write("No token is stored any more.\n")
        return 0
    hub_token.store(_read_token())
    sys.stdout.write("The token is in the keychain of this computer.\n")
    return 0


def _read_token() -> str:
    """The token from stdin; a terminal shows a prompt and does not echo it. Empty if there is none."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().removeprefix("\ufeff").strip()
    try:
        return getpass.getpass("Hugging Face token (it is not shown): ").strip()
    except EOFError:  # Ctrl+D does not end the line
        sys.stderr.write("\n")
        return ""
