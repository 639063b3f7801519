"""How answers to people's own questions are graded, one kind a file.

A file is registered by being here. It holds `GRADER`, and its own name is the grader's name in charters. What a grader is:
interface.py; how to add one: docs/adding/question-kind.md.
"""

# Importing the graders `list` and `set` makes these names of this module: do not use the built-in ones here.

import functools

from waggle.core.module_names import load, module_names
from waggle.tasks.graders.interface import Grader


@functools.cache
def grader_names() -> tuple[str, ...]:
    """The names of all graders, in alphabetical order, without importing them."""
    return module_names("tasks/graders")


@functools.cache
def graders() -> dict[str, Grader]:
    """Every grader of this folder by its name. Raises ExtensionError if a file cannot be used."""
    return {name: load(__name__, name, "GRADER") for name in grader_names()}
