"""The laboratory's command line: `python -m waggle_lab NAME ...`."""

import argparse
import importlib
import sys
from types import ModuleType

from waggle.cli.shared.outcome import exit_code, open_streams
from waggle.core.errors import LabError

COMMANDS = {  # name -> the module that has its options and runs it
    "audit": "security.audit",
    "bench": "benchmark.run",
    "churn": "reliability.churn",
    "fuzz": "security.fuzz",
    "hostile": "security.hostile",
    "scale": "scaling.scale",
    "shapes": "starter_model.shapes",
    "starter": "starter_model.starter",
    "swarm": "study.swarm",
    "torture": "reliability.torture",
    "truth": "truth.audit",
}


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run one experiment or recipe; returns the exit code."""
    open_streams()
    arguments = parser().parse_args(sys.argv[1:] if argv is None else argv)
    return exit_code(lambda: _run(arguments))


def parser() -> argparse.ArgumentParser:
    command_line = argparse.ArgumentParser(prog="waggle-lab", description="Waggle's experiments and recipes.")
    command_line.add_argument("name", choices=sorted(COMMANDS), metavar="NAME", help=", ".join(sorted(COMMANDS)))
    command_line.add_argument("rest", nargs=argparse.REMAINDER, help="options of NAME; see NAME --help")
    return command_line


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command. Raises LabError if a package that the command needs is not installed."""
    module = _module(name)
    command_line = argparse.ArgumentParser(prog=f"waggle-lab {name}", description=(module.__doc__ or "").split("\n")[0])
    module.add_arguments(command_line)
    return command_line


def _run(arguments: argparse.Namespace) -> int:
    command_line = parser_of(arguments.name)
    return int(_module(arguments.name).run(command_line.parse_args(arguments.rest)))


def _module(name: str) -> ModuleType:
    """A module with `add_arguments(parser)` and `run(arguments)`."""
    try:
        return importlib.import_module(f"waggle_lab.{COMMANDS[name]}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "waggle", "waggle_lab"):
            raise
        raise LabError(f"This part of the laboratory needs {package}; install it with: pip install {package}") from error


if __name__ == "__main__":
    raise SystemExit(main())
