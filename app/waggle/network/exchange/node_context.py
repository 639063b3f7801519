"""What the parts of a node share: who it is and in which swarm, and what it knows of its peers."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from waggle.core.message import plain
from waggle.core.peer_id import short_id
from waggle.network.identity.keys import Identity, name_of
from waggle.network.identity.membership import Membership
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.named_calls import NamedCalls, UnmetCalls
from waggle.network.limits.rate_limits import PeerRateLimits, RateLimit
from waggle.network.limits.reputation import ReputationTable
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.events import NetworkEvent
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import Transport
from waggle.network.web.training_status import TrainingStatus
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier

log = logging.getLogger(__name__)

# Refusals that are logged at INFO, per second and at once. New names cost nothing, so an attacker could cause any number of them;
# the others are logged at DEBUG.
LINES_RATE, LINES_BURST = 0.1, 20.0


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """One participant of one swarm.

    `report` is called on the loop's thread. `clock` gives unix seconds and counts epochs. While `is_paused` is true, nothing is
    pulled from peers or judged. `training` returns what the status page shows of this node's own model; None: it trains nothing.
    `invite` writes an invite with these addresses of the node, for the page of a class; empty: none can be written.
    """

    options: SwarmOptions
    charter: Charter
    identity: Identity
    membership: Membership
    verifier: Verifier
    report: Callable[[NetworkEvent], None]
    clock: Callable[[], float] = time.time
    is_paused: Callable[[], bool] = lambda: False
    training: Callable[[], TrainingStatus | None] = lambda: None
    invite: Callable[[Sequence[str]], str] = lambda addresses: ""


@dataclass(frozen=True, kw_only=True)
class PeerAccounts:
    """What this node knows of its peers, and what they may still cost it."""

    reputations: ReputationTable = field(default_factory=ReputationTable)
    bandwidth: BandwidthLimiter = field(default_factory=BandwidthLimiter)
    rate_limits: PeerRateLimits = field(default_factory=PeerRateLimits)
    named_calls: NamedCalls = field(default_factory=NamedCalls)
    unmet_calls: UnmetCalls = field(default_factory=UnmetCalls)
    _lines: RateLimit = field(default_factory=lambda: RateLimit(LINES_RATE, LINES_BURST), init=False)

    def is_met(self, givers: Iterable[bytes]) -> bool:
        """Whether one of these peers is connected or trusted: of others nobody knows whether their addresses are their own."""
        known = map(self.reputations.of, givers)
        return any(peer.connection != "gone" or peer.trusted for peer in known)

    def reject(self, origin: bytes, reason: str, count: int = 1, *, cause: BaseException | None = None) -> None:
        """Count something refused against its origin, and log it. `reason` is a text of ours, `cause` its details."""
        pause_s = self.reputations.record_rejection(origin, reason, count)
        level = logging.INFO if self._lines.allows("all peers") else logging.DEBUG
        log.log(
            level, "a message of peer %s (%s) is refused: %s; nothing is pulled from it for %.0f s",
            short_id(origin), name_of(origin), reason, pause_s,
        )  # fmt: skip
        if cause is not None:
            log.debug("%s of peer %s, more exactly: %.200s", reason, short_id(origin), plain(str(cause)))


def is_unmet(context: NodeContext, accounts: PeerAccounts, transport: Transport, origin: bytes, announced: Announcement) -> bool:
    """Whether this node would have to call somebody who is not connected to get what was announced."""
    givers = announced.via or (origin,)
    is_here = context.identity.peer_id in givers  # a light client of our own gateway
    return transport.calls_peers and not is_here and not accounts.is_met(givers)
