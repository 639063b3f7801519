"""Whether this computer can use hivemind."""

import importlib.util


def has_hivemind() -> bool:
    """Whether hivemind is installed (it does not exist for Windows)."""
    return importlib.util.find_spec("hivemind") is not None
