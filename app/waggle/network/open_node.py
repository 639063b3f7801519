"""The node of a swarm with the transport that its options ask for."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from waggle.network.exchange.node_context import NodeContext
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership
from waggle.network.messages.events import NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.node import SwarmNode
from waggle.network.transport.choice import transport_for
from waggle.network.transport.gateway.server import GatewayServer
from waggle.network.web.training_status import TrainingStatus
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier


def open_node(
    options: SwarmOptions,
    charter: Charter,
    identity: Identity,
    verifier: Verifier,
    report: Callable[[NetworkEvent], None],
    clock: Callable[[], float] = time.time,
    is_paused: Callable[[], bool] = lambda: False,
    training: Callable[[], TrainingStatus | None] = lambda: None,
    invite: Callable[[Sequence[str]], str] = lambda addresses: "",
) -> SwarmNode:
    """A node that is not started yet; see NodeContext for the parameters."""
    membership = Membership(charter, identity.peer_id, options.key)
    context = NodeContext(
        options=options, charter=charter, identity=identity, membership=membership,
        verifier=verifier, report=report, clock=clock, is_paused=is_paused, training=training, invite=invite,
    )  # fmt: skip
    open_gateway = partial(GatewayServer, charter.digest, identity, membership)
    return SwarmNode(context, transport_for(options, identity), open_gateway)
