"""What hivemind's DHTNode and `Daemon` use of hivemind's P2P, over the network process. hivemind's classes are handed in.

Answers that name peers bring their addresses along: iroh itself searches nobody.
"""

import types
from collections.abc import Sequence
from typing import Any

from waggle.core.peer_id import text_of
from waggle.network.transport.interface import PeerAway
from waggle.network.transport.iroh.process import Answer, NetworkProcess

CALL_S = 10.0  # hivemind has shorter limits of its own


class DhtCalls:
    """Protobuf calls. Belongs to one event loop."""

    def __init__(self, hivemind: types.SimpleNamespace, process: NetworkProcess) -> None:
        self._hivemind, self.process = hivemind, process
        self.peer_id = hivemind.PeerID(process.peer_id)
        self._client = types.SimpleNamespace(connect=self._connect, control=types.SimpleNamespace(_read_task=process._reading))
        self._child = types.SimpleNamespace(
            pid=process.pid, returncode=None, wait=process.wait_until_exit, terminate=process.terminate
        )

    async def call_protobuf_handler(self, peer: Any, name: str, request: Any, kind: Any) -> Any:
        """The peer's answer. Raises P2PDaemonError."""
        try:
            content = await self.process.call(peer.to_bytes(), name, request.SerializeToString(), CALL_S)
        except PeerAway as error:
            raise self._hivemind.P2PDaemonError(str(error)) from error
        return kind.FromString(content)

    async def add_protobuf_handler(self, name: str, handler: Any, kind: Any, **_options: Any) -> None:
        """Answer peers that call this name."""

        async def answer(peer_id: bytes, _socket: str, request: bytes) -> Answer | None:
            context = types.SimpleNamespace(handle_name=name, local_id=self.peer_id, remote_id=self._hivemind.PeerID(peer_id))
            try:
                reply = await handler(kind.FromString(request), context)
            except (*self._hivemind.failures, AssertionError):  # hivemind's own refusals of strangers' requests
                return None
            return Answer(reply.SerializeToString(), _named(reply))

        self.process.handlers[name] = answer

    async def remove_protobuf_handler(self, name: str, **_options: Any) -> None:
        self.process.handlers.pop(name, None)

    async def list_peers(self) -> list[Any]:
        """Connected peers, as hivemind's PeerInfo."""
        peers = (await self.process.peers()).peers
        return [
            types.SimpleNamespace(peer_id=self._hivemind.PeerID(each.peer_id), addrs=[multiaddress(each.socket)])
            for each in peers
        ]

    async def get_visible_maddrs(self, latest: bool = False) -> list[str]:
        """Our own addresses."""
        own = text_of(self.process.peer_id)
        return [f"{multiaddress(socket)}/p2p/{own}" for socket in self.process.sockets if not socket.startswith("[::1]")]

    async def shutdown(self) -> None:
        await self.process.close()

    async def _connect(self, peer: Any, addresses: Sequence[Any]) -> None:
        try:
            await self.process.connect(peer.to_bytes(), [socket_of(str(address)) for address in addresses], CALL_S)
        except PeerAway as error:
            raise self._hivemind.P2PDaemonError(str(error)) from error


def multiaddress(socket: str) -> str:
    """A socket address as a multiaddress."""
    host, _, port = socket.rpartition(":")
    host = host.strip("[]")
    return f"/{'ip6' if ':' in host else 'ip4'}/{host}/udp/{port}/quic-v1"


def socket_of(address: str) -> str:
    """The socket address in a multiaddress: of udp or tcp, which have one port here."""
    _, kind, host, _, port, *_ = address.split("/")
    return f"[{host}]:{port}" if kind == "ip6" else f"{host}:{port}"


def _named(reply: Any) -> list[bytes]:
    """The peers that a FindResponse names."""
    return [peer_id for result in getattr(reply, "results", ()) for peer_id in result.nearest_peer_ids]
