"""Frames between the verifier and its child."""

import io

import pytest

from waggle.tasks import wire


def test_a_child_that_talks_nonsense_is_as_good_as_gone():
    for frame in (b"", b"\xc1", b"\x92\xa6Failed\xa1\xff", b"\x92\xa5Texts\x91\xa1\xff", b"\x91" * 5000, b"\x80"):
        with pytest.raises(EOFError, match="nonsense"):
            wire.reply(frame)


def test_a_frame_that_is_cut_or_too_long_is_none():
    pipe = io.BytesIO()
    wire.send(pipe, wire.Failed("why"))
    whole = pipe.getvalue()
    frame = wire.receive(io.BytesIO(whole))
    assert frame is not None
    assert wire.reply(frame) == wire.Failed("why")
    for cut in (b"", whole[:3], whole[:-1], b"\xff\xff\xff\xff" + whole[4:]):
        assert wire.receive(io.BytesIO(cut)) is None
