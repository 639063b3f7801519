"""Whether hivemind is installed here."""

import importlib.util


def has_hivemind() -> bool:
    """Whether this system has hivemind (there is none for Windows)."""
    return importlib.util.find_spec("hivemind") is not None
