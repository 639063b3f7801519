"""The decoder of answers to a search of the DHT, in hivemind, before our validator sees any entry."""

import time
from contextlib import suppress
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError

from waggle.core.peer_id import PEER_ID_PREFIX, is_peer_id
from waggle.network.transport.hivemind import patches
from waggle_lab.security.decoders import Decoder

DICTIONARY, TUPLE = 0x50, 0x40  # extension codes of msgpack in hivemind
NESTED = 50  # levels in a seed; a few times as many end a process that follows them recursively


def find_reply(scratch: Path) -> Decoder:
    """Values of the DHT, plain and as the content of a dictionary; and the answer around them, with its neighbours."""
    hivemind = patches.load_hivemind()
    serializer, answers = hivemind.serializer, hivemind.dht_pb2.FindResponse

    def check(data: bytes) -> None:
        for value in (data, _extension(DICTIONARY, data)):
            with suppress(
                Exception
            ):  # hivemind's callers treat any exception as no answer; only the end of the process is a finding
                serializer.loads(value)
        with suppress(DecodeError):
            for result in patches.with_few_neighbours(answers.FromString(data)).results:
                assert len(result.nearest_node_ids) == len(result.nearest_peer_ids) <= patches.MOST_NEIGHBOURS
                assert all(map(is_peer_id, result.nearest_peer_ids))

    entry = msgspec.msgpack.encode([None, time.time(), [[bytes(38), bytes(100), time.time()]]])
    seeds = (_extension(DICTIONARY, entry), entry, msgspec.msgpack.encode(bytes(38)))
    ids = [PEER_ID_PREFIX + bytes(range(32))] * (patches.MOST_NEIGHBOURS + 1)
    result = hivemind.dht_pb2.FindResult(nearest_node_ids=[bytes(20)] * len(ids), nearest_peer_ids=[b"x" * 99, *ids[1:]])
    answer = answers(results=[result]).SerializeToString()
    return Decoder((*seeds, answer, *(nested(code, NESTED) for code in (DICTIONARY, TUPLE))), check)


def nested(code: int, times: int) -> bytes:
    """Nested extensions of msgpack, which no honest node sends."""
    data = b"\x90"
    for _ in range(times):
        data = _extension(code, b"\x91" + data)
    return data


def _extension(code: int, data: bytes) -> bytes:
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(code, data))
