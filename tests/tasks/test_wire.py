"""Frames between the verifier and its child."""

import io
import math

import msgspec
import pytest

from waggle.tasks import wire
from waggle.tasks.group import UNJUDGED


def test_a_child_that_talks_nonsense_is_as_good_as_gone():
    for frame in (b"", b"\xc1", b"\x92\xa6Failed\xa1\xff", b"\x92\xa5Texts\x91\xa1\xff", b"\x91" * 5000, b"\x80"):
        with pytest.raises(EOFError, match="nonsense"):
            wire.reply(frame)


@pytest.mark.parametrize(
    "wrong", [{"reward": math.nan}, {"reward": 1.5}, {"reward": -0.1}, {"start": -1}, {"length": -1}, {"reason": "x" * 65}]
)
def test_a_verdict_that_is_none_is_nonsense(wrong):
    with pytest.raises(EOFError, match="nonsense"):
        wire.reply(msgspec.msgpack.encode(wire.Verdicts([msgspec.structs.replace(UNJUDGED, **wrong)])))


def test_an_answer_to_what_nobody_asked_is_nonsense():
    items, keys = [("bf", 1, "text", True)] * 2, [("bf", 1)] * 2
    wire.require_all(wire.Judge(items), wire.Verdicts([UNJUDGED] * 2))
    wire.require_all(wire.MakeAnswers(keys), wire.Texts(["7"] * 2))
    for request, said in (
        (wire.Judge(items), wire.Verdicts([UNJUDGED])),
        (wire.Judge(items), wire.Texts(["7"] * 2)),
        (wire.MakeQuestions(keys), wire.Texts(["7"] * 3)),
        (wire.Warm(()), wire.Texts([])),
    ):
        with pytest.raises(EOFError, match="nonsense"):
            wire.require_all(request, said)


def test_a_frame_that_is_cut_or_too_long_is_none():
    pipe = io.BytesIO()
    wire.send(pipe, wire.Failed("why"))
    whole = pipe.getvalue()
    frame = wire.receive(io.BytesIO(whole))
    assert frame is not None
    assert wire.reply(frame) == wire.Failed("why")
    for cut in (b"", whole[:3], whole[:-1], b"\xff\xff\xff\xff" + whole[4:]):
        assert wire.receive(io.BytesIO(cut)) is None
