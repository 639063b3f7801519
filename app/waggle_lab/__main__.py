"""The laboratory's command line: `python -m waggle_lab NAME ...`."""

import argparse
import importlib
import sys
from types import ModuleType

from waggle.cli.outcome import exit_code, open_streams
from waggle.core.errors import LabError

COMMANDS = {  # name -> the module that has its arguments and runs it
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
}


def main(argv: list[str] | None = None) -> int:
    """Parse, then run one experiment or recipe; returns the exit code."""
    open_streams()
    arguments = parser().parse_args(sys.argv[1:] if argv is None else argv)
    return exit_code(lambda: _run(arguments))


def parser() -> argparse.ArgumentParser:
    laboratory = argparse.ArgumentParser(prog="waggle-lab", description="Waggle's experiments and recipes.")
    laboratory.add_argument("name", choices=sorted(COMMANDS), metavar="NAME", help=", ".join(sorted(COMMANDS)))
    laboratory.add_argument("rest", nargs=argparse.REMAINDER, help="its own options: see NAME --help")
    return laboratory


def arguments_of(name: str) -> argparse.ArgumentParser:
    """The options of one command. Raises LabError where a package that it needs is not installed."""
    module = _module(name)
    options = argparse.ArgumentParser(prog=f"waggle-lab {name}", description=(module.__doc__ or "").split("\n")[0])
    module.add_arguments(options)
    return options


def _run(arguments: argparse.Namespace) -> int:
    options = arguments_of(arguments.name)
    return int(_module(arguments.name).run(options.parse_args(arguments.rest)))


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
