"""What this computer can take part through: hivemind, where it is installed, or gateways alone."""

import importlib.util

from waggle.network.messages.options import SwarmOptions


def has_hivemind() -> bool:
    """Whether this system has hivemind (there is none for Windows)."""
    return importlib.util.find_spec("hivemind") is not None


def is_light(options: SwarmOptions) -> bool:
    """Whether to take part through gateways alone: by choice, or because hivemind is missing here."""
    return options.light or not has_hivemind()
