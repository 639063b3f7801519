"""Calls over streams that Python reads itself, between real daemons: what is counted, bounded and given back."""

import asyncio
import gc
import os
import resource
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from network.loopback import SOON, fresh_identity
from network.transport.hivemind.test_network import NOTHING, opened
from waggle.network.limits.address_ranges import RELAYED
from waggle.network.messages.rollout_record import MAX_BLOB
from waggle.network.transport.hivemind import call_streams, memory_limit
from waggle.network.transport.hivemind.call_streams import MOST_OF_PEER, MOST_OPEN, MOST_UNSENT, OpenStreams
from waggle.network.transport.hivemind.network import HANDSHAKE, PAYLOAD, HivemindNetwork
from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.network.transport.hivemind.rate_limited_p2p import LONGEST_MESSAGE
from waggle.network.transport.interface import PeerAway, Services
from waggle_lab.security import raw_streams

hivemind = load_hivemind()
MOST_STREAMS = 500  # each declares .4 MB, and p2pd has room for 16 MiB more


class Stream:
    """Stands for a stream of which only its end matters."""

    def __init__(self) -> None:
        self.transport = self
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def places(sources: dict[bytes, str], hung_up: list[bytes]) -> OpenStreams:
    async def hang_up(peer_id: bytes) -> None:
        hung_up.append(peer_id)

    return OpenStreams(sources.get, hang_up)


def admitted(open_streams: OpenStreams, peer_id: bytes) -> Stream | None:
    stream: Any = Stream()
    return stream if open_streams.admit(peer_id, stream) else None


async def test_a_peer_has_so_many_streams_at_a_time_and_is_hung_up_on_for_many_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_streams, "EXCESS_RATE", 0.0)  # or a slow computer would never reach the limit
    hung_up = list[bytes]()
    open_streams = places({}, hung_up)
    own = [admitted(open_streams, b"greedy") for _ in range(MOST_OF_PEER)]
    assert None not in own
    assert admitted(open_streams, b"greedy") is None
    assert admitted(open_streams, b"other") is not None
    open_streams.remove(own[0])  # type: ignore[arg-type]
    assert admitted(open_streams, b"greedy") is not None
    await asyncio.sleep(0)
    assert hung_up == []
    for _ in range(int(call_streams.EXCESS_BURST)):
        assert admitted(open_streams, b"greedy") is None
    await asyncio.sleep(0)
    assert set(hung_up) == {b"greedy"}


@pytest.mark.parametrize("source", ["8.8.4", "", RELAYED, None])
async def test_if_all_places_are_taken_the_party_that_holds_most_loses_its_oldest(source: str | None) -> None:
    crowd = [bytes([number]) for number in range(MOST_OPEN // MOST_OF_PEER)]
    sources = {each: source for each in crowd if source is not None} | {b"honest": "1.1.1"}
    open_streams = places(sources, [])
    honest = admitted(open_streams, b"honest")
    streams = [admitted(open_streams, each) for each in crowd for _ in range(MOST_OF_PEER)]
    assert honest is not None
    assert not honest.is_aborted
    assert [each is not None and each.is_aborted for each in streams] == [True, *[False] * (len(streams) - 1)]
    assert len(open_streams._open) == MOST_OPEN


async def test_of_answers_that_are_not_read_the_party_with_most_bytes_loses_its_oldest() -> None:
    open_streams = places({b"one": "8.8.4", b"other": "8.8.4", b"honest": "1.1.1"}, [])
    size = MOST_UNSENT // 3
    honest, first, second, late = (admitted(open_streams, peer) for peer in (b"honest", b"one", b"other", b"other"))
    for stream in (honest, first, second):
        open_streams.hold(stream, size)  # type: ignore[arg-type]
    open_streams.sent(honest, size)  # type: ignore[arg-type]
    open_streams.hold(late, size)  # type: ignore[arg-type]
    assert [stream is not None and stream.is_aborted for stream in (honest, first, second, late)] == [False] * 4, "there is room"
    another = admitted(open_streams, b"one")
    open_streams.hold(another, 2)  # type: ignore[arg-type]
    assert [stream is not None and stream.is_aborted for stream in (honest, first, second, late, another)] == [
        False, True, False, False, False,
    ]  # fmt: skip
    open_streams.hold(first, MOST_UNSENT)  # type: ignore[arg-type]
    assert not any(stream is None or stream.is_aborted for stream in (second, late)), "who has lost its place holds nothing"


async def test_callers_that_read_no_answer_take_little_memory_and_give_it_back(tmp_path: Path) -> None:
    bad = [fresh_identity(tmp_path, f"bad {number}") for number in range(2)]
    blob, callers = os.urandom(MAX_BLOB), list[bytes]()

    async def payload(peer_id: bytes, _request: bytes) -> bytes:
        callers.append(peer_id)
        return blob

    async with opened(fresh_identity(tmp_path, "giver"), Services(payload=payload)) as node:
        giver = node.daemon.p2p.peer_id.to_bytes()
        async with opened(bad[0], NOTHING, node) as first, opened(bad[1], NOTHING, node) as second:
            writers = list[asyncio.StreamWriter]()
            gc.disable()  # what is given back does not wait for it
            tracemalloc.start()
            try:
                for caller in (first, second) * MOST_OF_PEER:
                    _, reader, writer = await caller.daemon.p2p.call_binary_stream_handler(node.daemon.p2p.peer_id, PAYLOAD)
                    reader._transport.pause_reading()  # type: ignore[attr-defined]
                    raw_streams.call(writer, giver, PAYLOAD, bytes(32))
                    writers.append(writer)
                async with asyncio.timeout(SOON):
                    while len(callers) < len(writers):
                        await asyncio.sleep(0.05)
                most = tracemalloc.get_traced_memory()[1]
                async with opened(fresh_identity(tmp_path, "honest"), NOTHING, node) as honest:
                    assert await honest.pull(giver, bytes(32), SOON) == blob
                for writer in writers:
                    writer.transport.abort()
                async with asyncio.timeout(SOON):
                    while node.daemon.p2p._streams._open:
                        await asyncio.sleep(0.05)
                afterwards = tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
                gc.enable()
            assert most < 64 * memory_limit.MIB
            assert len(callers) * len(blob) > 2 * most, "they asked for more than that"
            assert afterwards < 8 * memory_limit.MIB


async def test_the_largest_payload_comes_whole_in_small_pieces_and_a_larger_one_not_at_all(tmp_path: Path) -> None:
    giver, taker = fresh_identity(tmp_path, "giver"), fresh_identity(tmp_path, "taker")
    blob = os.urandom(MAX_BLOB)

    async def payload(_peer_id: bytes, request: bytes) -> bytes:
        return blob + (b"!" if request == bytes(32) else b"")

    async with opened(giver, Services(payload=payload)) as node, opened(taker, NOTHING, node) as other:
        pieces, kind = list[int](), hivemind.BytesValue
        answer = await other.daemon.p2p.pull(
            node.daemon.p2p.peer_id, PAYLOAD, kind(value=b"x" * 32), kind, MAX_BLOB + call_streams.FRAME, pieces.append
        )
        assert answer.value == blob
        assert max(pieces) <= call_streams.PIECE
        assert sum(pieces) > MAX_BLOB
        for _ in range(20):  # whole each time: p2pd resets a stream that its server closes first
            assert await other.pull(giver.peer_id, b"x" * 32, SOON) == blob
        too_long = 2 * call_streams.FRAME * b"!"
        blob += too_long
        with pytest.raises(PeerAway) as away:
            await other.pull(giver.peer_id, bytes(32), SOON)
        assert away.value.received == 0


async def test_what_came_of_a_payload_that_breaks_off_is_known(tmp_path: Path) -> None:
    giver, taker = fresh_identity(tmp_path, "giver"), fresh_identity(tmp_path, "taker")

    async def serve(_info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = await raw_streams.read_call(reader)
        head, message = raw_streams.answer(call, bytes(MAX_BLOB))
        writer.write(head + message[: 5 * call_streams.PIECE])
        await writer.drain()

    async with opened(giver) as node, opened(taker, NOTHING, node) as other:
        await node.daemon.p2p.remove_protobuf_handler(PAYLOAD)
        await node.daemon.p2p.add_binary_stream_handler(PAYLOAD, serve)
        with pytest.raises(PeerAway) as away:
            await other.pull(giver.peer_id, bytes(32), 2.0)
        assert away.value.received == 5 * call_streams.PIECE


async def test_a_stream_on_which_nothing_comes_is_closed_and_its_place_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_streams, "REQUEST_S", 0.3)
    async with (
        opened(fresh_identity(tmp_path, "victim")) as victim,
        opened(fresh_identity(tmp_path, "bad"), NOTHING, victim) as bad,
    ):
        _, reader, writer = await bad.daemon.p2p.call_binary_stream_handler(victim.daemon.p2p.peer_id, HANDSHAKE)
        raw_streams.declare(writer)
        assert await asyncio.wait_for(_read(reader), SOON) == b""
        assert not victim.daemon.p2p._streams._open
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        return await reader.read(1)
    return b""


async def test_a_peer_is_called_by_its_name_alone_which_needs_the_dht_of_libp2p(tmp_path: Path) -> None:
    """The directory names peers without addresses. libp2p's own DHT, in server mode, finds these."""
    names = [fresh_identity(tmp_path, name) for name in ("seed", "first", "second")]
    async with (
        opened(names[0]) as seed,
        opened(names[1], Services(handshake=lambda: b"here"), seed),
        opened(names[2], NOTHING, seed) as second,
    ):
        assert await _called(second, names[1].peer_id) == b"here"


async def _called(dht: HivemindNetwork, peer_id: bytes) -> bytes:
    async with asyncio.timeout(SOON):
        while True:
            with suppress(PeerAway):  # the seed has just met it
                return await dht.fetch_handshake(peer_id)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no such limit")
async def test_the_system_and_go_limit_the_memory_of_the_network_process(tmp_path: Path) -> None:
    async with opened(fresh_identity(tmp_path, "own")) as dht:
        process = psutil.Process(dht.daemon.pid)
        assert process.name() == "p2pd"
        assert process.environ()["GOMEMLIMIT"] == str(memory_limit.AIM)
        assert process.rlimit(resource.RLIMIT_DATA) == (memory_limit.SYSTEM_LIMIT,) * 2
    assert not memory_limit.limit_by_system(dht.daemon.pid), "it has ended"
    assert memory_limit.AIM < memory_limit.MOST_MEMORY < memory_limit.SYSTEM_LIMIT


async def test_a_network_process_that_reaches_the_systems_limit_ends(tmp_path: Path) -> None:
    """As shown by p2pd's own collecting of messages, which Waggle does not use."""
    async with opened(fresh_identity(tmp_path, "own")) as dht, opened(fresh_identity(tmp_path, "bad"), NOTHING, dht) as bad:
        if not memory_limit.limit_by_system(dht.daemon.pid):
            pytest.skip("no such limit here")
        used = int(Path(f"/proc/{dht.daemon.pid}/status").read_text().split("VmData:")[1].split()[0]) * 1024
        resource.prlimit(dht.daemon.pid, resource.RLIMIT_DATA, (used + 16 * memory_limit.MIB,) * 2)
        await dht.daemon.p2p._client.add_unary_handler("test/unary", SimpleNamespace)
        ended, writers = asyncio.create_task(dht.daemon.wait_until_exit()), list[asyncio.StreamWriter]()
        try:
            async with asyncio.timeout(SOON):
                while not ended.done():
                    assert len(writers) < MOST_STREAMS, "the limit does not hold"
                    with suppress(*hivemind.failures):
                        _, _, writer = await bad.daemon.p2p.call_binary_stream_handler(dht.daemon.p2p.peer_id, "test/unary")
                        raw_streams.declare(writer, LONGEST_MESSAGE)
                        writers.append(writer)  # a stream that is forgotten is closed
                    await asyncio.sleep(0)  # opening one may fail before it waits for anything
            assert ended.result() != 0
        finally:
            ended.cancel()
            for writer in writers:
                writer.transport.abort()
