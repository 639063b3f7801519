"""hivemind's P2P with a quota before every handler, the DHT's own ones too. No message is read that is longer than ours are."""

from typing import Any

from waggle.network.limits.address_ranges import owner_of
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.hivemind import relay
from waggle.network.transport.hivemind.dht_validator import STORER
from waggle.network.transport.hivemind.patches import MAX_VALUE, load_hivemind
from waggle.network.transport.hivemind.rpc_handlers import Limits
from waggle.network.transport.interface import Services

LONGEST_CALL = 4096  # bytes of what others ask: an announcement on its way into the directory is the longest of them
LONGEST_FOUND = MAX_VALUE + 4096  # of what the directory answers: a shard, and the neighbours of its key
ENDING = "use of closed network connection"  # what p2pd calls an error when it is told to end


class Within:
    """A kind of message, none of which is read that is longer: one of millions of empty pieces would take seconds."""

    def __init__(self, kind: Any, longest: int) -> None:
        self._kind, self._longest = kind, longest

    def FromString(self, raw: bytes) -> Any:
        """The message; raises ValueError for a longer one."""
        if len(raw) > self._longest:
            raise ValueError("too long a message")
        return self._kind.FromString(raw)


def limited(p2p: Any, services: Services, options: SwarmOptions) -> Any:
    """That P2P, also with what `create` has no words for."""
    limits, hivemind = Limits(services), load_hivemind()

    class Limited(p2p):  # type: ignore[misc]
        @staticmethod
        def _make_process_args(*arguments: Any, **named: Any) -> Any:
            # With relay discovery p2pd looks for relays among all peers, for three minutes, before it asks those it was given.
            words = p2p._make_process_args(*arguments, relayDiscovery=False, **relay.arguments(options.relay), **named)
            return [*(relay.LAST if options.relay else ()), *words]

        @staticmethod
        def _log_p2pd_message(line: str) -> None:
            if ENDING not in line:
                p2p._log_p2pd_message(line)

        async def _call_unary_protobuf_handler(self, peer_id: Any, name: str, request: Any, kind: Any) -> Any:
            read = Within(kind, LONGEST_FOUND) if kind is hivemind.dht_pb2.FindResponse else kind
            return await super()._call_unary_protobuf_handler(peer_id, name, request, read)

        async def _add_protobuf_unary_handler(self, name: str, handler: Any, kind: Any, balanced: bool = False) -> None:
            async def answer(request: Any, context: Any) -> Any:
                peer_id = context.remote_id.to_bytes()
                source = await limits.admit(peer_id, request)
                STORER.set(owner_of(source, peer_id))
                if getattr(request, "peer", None) and request.peer.node_id != hivemind.node_id_of(context.remote_id).to_bytes():
                    request.ClearField("peer")  # it is answered all the same
                answered = await handler(request, context)
                limits.tell(peer_id, source, answered)
                return answered

            await super()._add_protobuf_unary_handler(name, answer, Within(kind, LONGEST_CALL), balanced=balanced)

    return Limited
