"""The node of a swarm with the transport that its options ask for."""

import time
from collections.abc import Callable

from waggle.network.identity.keys import Identity
from waggle.network.messages.events import NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.transport.choice import transport_for
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier


def open_node(
    options: SwarmOptions,
    charter: Charter,
    identity: Identity,
    verifier: Verifier,
    tell: Callable[[NetworkEvent], None],
    clock: Callable[[], float] = time.time,
    is_resting: Callable[[], bool] = lambda: False,
) -> SwarmNode:
    """A node that is not started yet. See SwarmNode."""
    return SwarmNode(options, charter, identity, verifier, tell, transport_for(options, identity), clock, is_resting)
