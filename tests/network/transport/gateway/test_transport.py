"""A light client with an unusable proxy, behind something that refuses, or with malformed gateway addresses."""

import asyncio

import pytest

from network.loopback import Ear, callbacks, options
from waggle.core.errors import SwarmError
from waggle.network.identity.keys import Identity
from waggle.network.messages.events import ReachChanged
from waggle.network.transport.gateway.charter_download import fetch_charter
from waggle.network.transport.gateway.transport import GatewayTransport
from waggle.tasks.charter import Charter


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "nonsense://127.0.0.1:9"])
async def test_a_proxy_that_cannot_be_used_leaves_a_light_client_alone_and_alive(
    identity: Identity, charter: Charter, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("all_proxy", "socks_proxy"):
        monkeypatch.setenv(name, proxy)
    chosen = options(gateways=("ws://127.0.0.1:9/gateway",), light=True)
    with pytest.raises(SwarmError, match="proxy cannot be used"):
        await fetch_charter(chosen, identity, charter.digest)
    ear = Ear()
    node = GatewayTransport(chosen, identity, callbacks(identity, ear, charter))
    await node.start()
    try:
        await ear.hear(ReachChanged, lambda news: news.reach == "alone")
        assert not any(task.done() for task in node._tasks)
    finally:
        await node.close()


@pytest.mark.parametrize(
    "address", ["ws://a..b/gateway", "ws://host:99999/gateway", "ws://[::1/gateway", "wss://example.org", "http://example.org"]
)
async def test_an_address_that_is_no_gateways_is_refused_in_words_before_anything_is_called(
    identity: Identity, charter: Charter, address: str
) -> None:
    chosen = options(gateways=("ws://127.0.0.1:9/gateway", address), light=True)
    node = GatewayTransport(chosen, identity, callbacks(identity, Ear(), charter))
    try:
        with pytest.raises(SwarmError, match="no gateway's address"):
            await node.start()
        assert node._tasks == []
    finally:
        await node.close()
    with pytest.raises(SwarmError, match="no gateway's address"):
        await fetch_charter(chosen, identity, charter.digest)


@pytest.mark.parametrize(
    ("answer", "words"), [("511 Network Authentication Required", "log in first"), ("407 Proxy", "refused the connection: 407")]
)
async def test_what_stands_before_the_gateways_is_named(identity: Identity, charter: Charter, answer: str, words: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as before:
        address = f"ws://127.0.0.1:{before.sockets[0].getsockname()[1]}/gateway"
        with pytest.raises(SwarmError, match=words):
            await fetch_charter(options(gateways=("ws://127.0.0.1:9/gateway", address)), identity, charter.digest)
    with pytest.raises(SwarmError, match="No gateway of this swarm answers"):
        await fetch_charter(options(gateways=(address,)), identity, charter.digest)
