"""Frames between the verifier and its child."""

import io
import math

import msgspec
import pytest

from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import UNJUDGED
from waggle.tasks.sandbox import messages


def test_a_child_that_talks_nonsense_is_as_good_as_gone():
    for frame in (b"", b"\xc1", b"\x92\xa6Failed\xa1\xff", b"\x92\xa5Texts\x91\xa1\xff", b"\x91" * 5000, b"\x80"):
        with pytest.raises(EOFError, match="nonsense"):
            messages.reply(frame)


@pytest.mark.parametrize(
    "wrong", [{"reward": math.nan}, {"reward": 1.5}, {"reward": -0.1}, {"start": -1}, {"length": -1}, {"reason": "x" * 65}]
)
def test_a_verdict_that_is_none_is_nonsense(wrong):
    with pytest.raises(EOFError, match="nonsense"):
        messages.reply(msgspec.msgpack.encode(["Verdicts", [{"reward": 0.0, "reason": "no"} | wrong], 0.0]))
    messages.reply(msgspec.msgpack.encode(["Verdicts", [{"reward": 0.0, "reason": "no"}], 0.0]))


def test_an_answer_to_what_nobody_asked_is_nonsense():
    items, keys = [(QuestionKey("bf", 1), "text", True)] * 2, [QuestionKey("bf", 1)] * 2
    messages.require_all(messages.Judge(items), messages.Verdicts([UNJUDGED] * 2))
    messages.require_all(messages.GenerateAnswers(keys), messages.Texts(["7"] * 2))
    for request, reply in (
        (messages.Judge(items), messages.Verdicts([UNJUDGED])),
        (messages.Judge(items), messages.Texts(["7"] * 2)),
        (messages.GenerateQuestions(keys), messages.Texts(["7"] * 3)),
        (messages.Prepare(()), messages.Texts([])),
    ):
        with pytest.raises(EOFError, match="nonsense"):
            messages.require_all(request, reply)


def test_a_frame_that_is_cut_or_too_long_is_none():
    pipe = io.BytesIO()
    messages.send(pipe, messages.Failed("why"))
    whole = pipe.getvalue()
    frame = messages.receive(io.BytesIO(whole))
    assert frame is not None
    assert messages.reply(frame) == messages.Failed("why")
    for cut in (b"", whole[:3], whole[:-1], b"\xff\xff\xff\xff" + whole[4:]):
        assert messages.receive(io.BytesIO(cut)) is None
