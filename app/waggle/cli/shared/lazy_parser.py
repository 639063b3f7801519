"""The parser of a command. It imports the command only once it is chosen, so that others start without it."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Command(Protocol):
    """What the module of a command offers."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, arguments: argparse.Namespace, /) -> int: ...


class LazyParser(argparse.ArgumentParser):
    """The parser of a command; `load` imports its module.

    The module adds its arguments at first use, when the command has been chosen. `command` in the arguments is its last word.
    """

    def __init__(self, *, load: Callable[[], Command], **options: Any) -> None:
        super().__init__(**options)
        self._load: Callable[[], Command] | None = load

    def complete(self) -> None:
        """Import the command and add its arguments, unless that has happened."""
        if self._load is not None:
            load, self._load = self._load, None
            command = load()
            self.set_defaults(run=command.run, takes_settings=False, command=self.prog.rpartition(" ")[2])
            command.add_arguments(self)

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads that argparse itself does not need
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.complete()
        return super().parse_known_args(args, namespace)
