"""The answer to a call written by hand onto its stream: what an attacker's own program sends need not be what p2pd would send.

p2pd carries a call as one message of protocol buffers each way, its length before it.
"""

import asyncio

CALL_ID, ANSWER, RESULT, VALUE = 1, 4, 1, 1  # fields of p2pd's messages, and of the bytes inside
CALL_ID_AT = slice(2, 18)  # of a call: its first field, 16 bytes behind their own header
CHUNK = 65_536
LONGEST = 4 * 1024 * 1024  # of a message, as p2pd is started


async def read_call(reader: asyncio.StreamReader) -> bytes:
    """The message of a call; raises EOFError where it ends before."""
    length = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return await reader.readexactly(length)


def answer(call: bytes, value: bytes) -> tuple[bytes, bytes]:
    """The head of the message that answers this call, and the message itself."""
    told = _field(CALL_ID, call[CALL_ID_AT]) + _field(ANSWER, _field(RESULT, _field(VALUE, value)))
    return _number(len(told)), told


async def begin(writer: asyncio.StreamWriter) -> None:
    """Write the longest message that p2pd takes, but for its last byte; raises ConnectionError where nobody hears it."""
    writer.write(_number(LONGEST))
    for at in range(0, LONGEST, CHUNK):
        writer.write(bytes(min(CHUNK, LONGEST - 1 - at)))
        await writer.drain()


def _field(number: int, inside: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(inside)) + inside


def _number(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes((*written, number))
