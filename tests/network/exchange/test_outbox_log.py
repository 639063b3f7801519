"""The outbox log holds the newest ten messages once each, and shows every value of them."""

import json
from pathlib import Path

import msgspec
import pytest
import zstandard

from waggle.network.exchange.outbox_log import MAX_MESSAGES, OutboxLog, OutgoingMessage, readable, written_by_hand
from waggle.network.identity.keys import load_or_create
from waggle.network.messages import announcement, handshake
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.rollout_record import RolloutRecord, encode
from waggle.tasks.questions import QuestionId
from waggle.tasks.rollout_group import Author, Completion, Group
from waggle.tasks.shipped_swarms import first_swarm


def test_only_the_newest_are_kept() -> None:
    sent = OutboxLog(clock=lambda: 5.0)
    for number in range(MAX_MESSAGES + 3):
        assert sent.add("groups", bytes([number]), b"peer") == bytes([number])
    assert [message.content[0] for message in sent.newest()] == list(range(MAX_MESSAGES + 2, 2, -1))


def test_the_same_words_said_again_are_one_message() -> None:
    sent, times = OutboxLog(clock=lambda: next(moments)), []
    moments = iter((1.0, 2.0, 3.0))
    for content in (b"hello", b"other", b"hello"):
        sent.add("greeting", content)
    times = [(message.at, message.content) for message in sent.newest()]
    assert times == [(3.0, b"hello"), (2.0, b"other")]
    assert sent.add("groups", b"") == b"", "nothing is no message"
    assert len(sent.newest()) == 2


def message(kind: str, content: bytes) -> OutgoingMessage:
    return msgspec.convert({"at": 0.0, "kind": kind, "to": b"", "content": content}, OutgoingMessage)


@pytest.mark.parametrize("text", ["seven", "<b>7</b>", "\u202e7"])
def test_groups_are_shown_word_for_word(text: str) -> None:
    packed = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode([1, b"\x01\x02", [[text, True]]]))
    assert json.loads(readable(message("groups", packed))) == [1, "0102", [[text, True]]]


def test_an_announcement_is_shown_with_its_signature(tmp_path: Path) -> None:
    offer = Announcement(charter=b"c" * 32, sha256=b"s" * 32, size=9, round=3, epoch=4, specialties=1, model="m", expires=5)
    signed = announcement.signed(offer, load_or_create(tmp_path / "identity.key"))
    *body, signature = readable(message("announcement", signed)).splitlines()
    assert "m" in json.loads("\n".join(body))
    assert signed.hex().endswith(signature)


def test_a_greeting_is_shown() -> None:
    assert json.loads(readable(message("greeting", handshake.write(b"c" * 32, b""))))[2] == (b"c" * 32).hex()


@pytest.mark.parametrize("author", ["policy", "human"])
def test_a_message_with_an_answer_of_ones_own_is_known_by_its_mark_not_by_its_words(author: Author) -> None:
    messages = (Completion(text='"human"', ended=True), Completion(text="7", ended=True, by=author))
    group = Group(origin=b"me", id=QuestionId("bf", 5, 1), completions=messages)
    blob = encode(RolloutRecord(origin=b"me", round=1, epoch=5, model="m", groups=(group,)), first_swarm())
    assert written_by_hand(message("groups", blob)) == (author == "human")
    assert not written_by_hand(message("greeting", b"human"))
