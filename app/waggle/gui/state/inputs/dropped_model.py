"""Whether what is dropped on the window names a model: a folder, a file of a model, or an address of the hub."""

import os
from collections.abc import Sequence

from waggle.core.model_reference import hub_address, is_model_file

LONGEST_PATH = 4096  # characters, as in a command


def dropped_model(items: Sequence[str]) -> str:
    """The path or address of the one model among what was dropped; empty if it is something else, or several things."""
    if len(items) != 1 or len(items[0]) > LONGEST_PATH:
        return ""
    item = items[0]
    if "://" in item:
        return item if hub_address(item) is not None else ""
    return item if os.path.isabs(item) and (os.path.isdir(item) or is_model_file(item)) else ""
