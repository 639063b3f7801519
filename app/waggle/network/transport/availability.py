"""Whether this computer can use hivemind, or takes part through gateways only."""

import importlib.util

from waggle.network.messages.options import SwarmOptions


def has_hivemind() -> bool:
    """Whether hivemind is installed (it does not exist for Windows)."""
    return importlib.util.find_spec("hivemind") is not None


def is_light(options: SwarmOptions) -> bool:
    """Whether this node takes part through gateways only, by choice or because hivemind is missing."""
    return options.transport == "gateway" or (not options.transport and (options.light or not has_hivemind()))
