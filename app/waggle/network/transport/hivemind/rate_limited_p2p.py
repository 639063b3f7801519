"""hivemind's P2P with limits in front of every handler, the DHT's own handlers too, and on the length of every message."""

from typing import Any

from waggle.network.limits.address_ranges import owner_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import memory_limit, relay
from waggle.network.transport.hivemind.call_limits import CallLimits
from waggle.network.transport.hivemind.call_streams import FRAME
from waggle.network.transport.hivemind.dht_validator import STORER
from waggle.network.transport.hivemind.patches import MAX_VALUE, load_hivemind
from waggle.network.transport.interface import Services

LONGEST_CALL = 4096  # bytes of a call; the longest is an announcement on its way into the directory
LONGEST_FOUND = MAX_VALUE + 4096  # bytes of the directory's answer: a shard, and the neighbours of its key
LONGEST_MESSAGE = LONGEST_FOUND + FRAME  # bytes of any message that p2pd collects: answers to our calls, without payloads
ENDING = "use of closed network connection"  # what p2pd logs as an error when it ends as it should


class BoundedMessage:
    """A protobuf message class that does not decode longer bytes: a message of millions of empty fields would take seconds."""

    def __init__(self, kind: Any, longest: int) -> None:
        self._kind, self._longest = kind, longest

    def FromString(self, raw: bytes) -> Any:
        """The message. Raises ValueError if it is too long."""
        if len(raw) > self._longest:
            raise ValueError("too long a message")
        return self._kind.FromString(raw)


def rate_limited(p2p: Any, services: Services, options: SwarmOptions) -> Any:
    """A subclass of hivemind's P2P with our limits, and with options of p2pd that `P2P.create` does not know."""
    limits, hivemind = CallLimits(services), load_hivemind()

    class RateLimitedP2P(p2p):  # type: ignore[misc]
        @staticmethod
        def _make_process_args(*arguments: Any, **named: Any) -> Any:
            # With relay discovery, p2pd searches all peers for relays for three minutes before it uses those that we name.
            words = p2p._make_process_args(*arguments, relayDiscovery=False, **relay.arguments(options.relay), **named)
            return [*memory_limit.ENVIRONMENT, *((relay.ONE_THREAD,) if options.relay else ()), *words]

        @staticmethod
        def _log_p2pd_message(line: str) -> None:
            if ENDING not in line:
                p2p._log_p2pd_message(line)

        async def _call_unary_protobuf_handler(self, peer_id: Any, name: str, request: Any, kind: Any) -> Any:
            bounded = BoundedMessage(kind, LONGEST_FOUND) if kind is hivemind.dht_pb2.FindResponse else kind
            return await super()._call_unary_protobuf_handler(peer_id, name, request, bounded)

        async def _add_protobuf_unary_handler(self, name: str, handler: Any, kind: Any, balanced: bool = False) -> None:
            async def limited(request: Any, context: Any) -> Any:
                peer_id = context.remote_id.to_bytes()
                source = await limits.admit(peer_id, request)
                STORER.set(owner_of(source, peer_id))
                if getattr(request, "peer", None) and request.peer.node_id != hivemind.node_id_of(context.remote_id).to_bytes():
                    request.ClearField("peer")  # it may not enter the routing table, but it is answered
                answer = await handler(request, context)
                limits.trim(peer_id, source, answer)
                return answer

            await super()._add_protobuf_unary_handler(name, limited, BoundedMessage(kind, LONGEST_CALL), balanced=balanced)

    return RateLimitedP2P
