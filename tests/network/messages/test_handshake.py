"""Handshakes are read strictly, except for fields that later versions may append."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle import __version__
from waggle.core.errors import BadRecord
from waggle.network.messages import announcement, handshake
from waggle.tasks.charter import PROTOCOL

CHARTER = bytes(range(32))


def test_what_is_written_is_read() -> None:
    greeting = handshake.read(handshake.write(CHARTER, b"announced"))
    assert (greeting.protocol, greeting.version, greeting.charter, greeting.announced) == (
        PROTOCOL,
        __version__,
        CHARTER,
        b"announced",
    )
    assert handshake.refusal(greeting, CHARTER) == ""


def test_a_later_version_may_say_more() -> None:
    blob = msgspec.msgpack.encode([PROTOCOL + 1, "2.0", CHARTER, b"", b"", {"more": [1, 2]}, "words"])
    assert "update this Waggle" in handshake.refusal(handshake.read(blob), CHARTER)


@pytest.mark.parametrize(("protocol", "which"), [(PROTOCOL + 1, "newer"), (PROTOCOL - 1, "older")])
def test_where_a_version_has_no_name_it_is_another(protocol: int, which: str) -> None:
    greeting = handshake.read(msgspec.msgpack.encode([protocol, "", CHARTER]))
    assert handshake.refusal(greeting, CHARTER).startswith(f"runs another Waggle, which is {which}: ")


@pytest.mark.parametrize(
    "fields",
    [
        [-1, "1", CHARTER, b""],
        ["1", "1", CHARTER, b""],
        [1, "1" * 65, CHARTER, b""],
        [1, "1\u202e", CHARTER, b""],
        [1, "1", CHARTER[:31], b""],
        [1, "1", CHARTER, b"x" * (announcement.MAX_BYTES + 1)],
        [1, "1"],
        {},
    ],
)
def test_what_breaks_the_form_is_refused(fields: object) -> None:
    with pytest.raises(BadRecord):
        handshake.read(msgspec.msgpack.encode(fields))


@given(st.binary(max_size=handshake.MAX_BYTES + 10))
def test_no_bytes_do_anything_else(blob: bytes) -> None:
    try:
        greeting = handshake.read(blob)
    except BadRecord:
        return
    assert len(greeting.charter) == 32
