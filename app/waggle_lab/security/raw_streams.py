"""Write the answer to a call by hand, because an attacker's own program can send what p2pd would never send.

In p2pd's protocol, a call is one protocol buffer message in each direction, with its length before it as a varint.
"""

import asyncio
import os

CALL_ID, CALL, ANSWER, PEER, NAME, DATA, RESULT, VALUE = 1, 3, 4, 1, 2, 3, 1, 1  # fields of p2pd's messages, and of those inside
CALL_ID_AT = slice(2, 18)  # the id in a call: its first field, 16 bytes after a header of 2
CHUNK = 65_536
MAX_MESSAGE = 4 * 1024 * 1024  # p2pd's default limit


async def read_call(reader: asyncio.StreamReader) -> bytes:
    """Read the message of a call; raises EOFError if the stream ends early."""
    length = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return await reader.readexactly(length)


def answer(call: bytes, value: bytes) -> tuple[bytes, bytes]:
    """The length prefix of the message that answers a call, and the message."""
    message = _field(CALL_ID, call[CALL_ID_AT]) + _field(ANSWER, _field(RESULT, _field(VALUE, value)))
    return _varint(len(message)), message


def call(writer: asyncio.StreamWriter, peer_id: bytes, name: str, content: bytes) -> None:
    """Write a whole call of a peer's handler."""
    called = _field(PEER, peer_id) + _field(NAME, name.encode()) + _field(DATA, _field(VALUE, content))
    message = _field(CALL_ID, os.urandom(CALL_ID_AT.stop - CALL_ID_AT.start)) + _field(CALL, called)
    writer.write(_varint(len(message)) + message)


async def begin(writer: asyncio.StreamWriter) -> None:
    """Write the longest message that p2pd accepts, except its last byte; raises ConnectionError if the peer hangs up."""
    writer.write(_varint(MAX_MESSAGE))
    for offset in range(0, MAX_MESSAGE, CHUNK):
        writer.write(bytes(min(CHUNK, MAX_MESSAGE - 1 - offset)))
        await writer.drain()


def declare(writer: asyncio.StreamWriter, length: int = MAX_MESSAGE) -> None:
    """Write the length of a message, of the longest by default, and nothing of it."""
    writer.write(_varint(length))


def _field(number: int, inside: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(inside)) + inside


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes((*encoded, number))
