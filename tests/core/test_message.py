"""Messages: English as text, and whole again on the other side of a pipe."""

import copy
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from waggle.core.message import (
    LONGEST,
    Figure,
    Message,
    as_message,
    counted,
    english,
    in_turn,
    packed_message,
    turns_of,
    unpacked_message,
)


class Envelope(msgspec.Struct):
    """As events carry messages."""

    words: Message


FULL = Message("The disk is full: %1 of %2 GB.", Figure(1234.5, 1), 2000)
MESSAGES = (
    Message("Paused."), Message("%1 is running.", "50%1"), FULL, counted(1, "%n peer", "%n peers"),
    counted(1234, "%n peer", "%n peers of %1", "A"),
    in_turn(Message("Paused."), FULL), Message("It broke a rule (%1).", Message("too large")),
)  # fmt: skip
texts = some.text(max_size=30)
values = some.recursive(
    texts | some.integers(-(1 << 60), 1 << 60) | some.builds(Figure, some.floats(-1e9, 1e9), some.integers(0, 3)),
    lambda inner: some.builds(Message, texts, inner, inner),
    max_leaves=6,
)


def there_and_back(message: Message) -> list[Message]:
    json = msgspec.json.encode(Envelope(message), enc_hook=packed_message)
    msgpack = msgspec.msgpack.encode(Envelope(message), enc_hook=packed_message)
    return [
        msgspec.json.decode(json, type=Envelope, dec_hook=unpacked_message).words,
        msgspec.msgpack.decode(msgpack, type=Envelope, dec_hook=unpacked_message).words,
        pickle.loads(pickle.dumps(message)),
        copy.deepcopy(message),
    ]


def parts_of(message: Message) -> list[object]:
    return [
        message.id,
        message.singular,
        message.amount,
        *(parts_of(each) if isinstance(each, Message) else each for each in message.values),
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_whole_on_the_other_side(message):
    for arrived in there_and_back(message):
        assert (arrived, parts_of(arrived)) == (message, parts_of(message))


@given(some.builds(Message, texts, values, values))
def test_any_message_is_whole_on_the_other_side(message):
    for arrived in there_and_back(message):
        assert arrived == message
        assert [*map(str, arrived.values)] == [*map(str, message.values)]


def test_as_text_it_is_english():
    assert FULL == "The disk is full: 1,234.5 of 2000 GB."
    assert MESSAGES[3:5] == ("1 peer", "1,234 peers of A")
    assert Message("%1 and %2", "%2", "b") == "%2 and b", "a value is no place"
    assert Message("%1 of %3", "a") == "a of %3"
    assert msgspec.json.encode(Envelope(FULL), enc_hook=english) == b'{"words":"The disk is full: 1,234.5 of 2000 GB."}'


def test_a_value_that_is_a_sentence_ends_with_its_own_full_stop():
    assert Message("It cannot be used: %1.", "No users.") == "It cannot be used: No users."
    assert Message("It cannot be used: %1.", "no users") == "It cannot be used: no users."
    assert Message("%1. %2.", "One.", Message("Two.")) == "One. Two."
    assert Message("Wait %1.5 s: %2", 0, "Now.") == "Wait 0.5 s: Now.", "a full stop within a word is none"


def test_what_strangers_wrote_is_on_one_line_and_short():
    message = Message("%1 says %2.", "a\nb\u202ec\x1b[31m", "x" * 10_000)
    assert message.startswith("a b\ufffdc\ufffd[31m says xxx")
    assert len(message) <= LONGEST + 3
    assert all(len(value) <= LONGEST + 3 for value in message.values)


def test_words_that_are_no_message_are_looked_up_whole():
    assert parts_of(as_message("Paused.")) == ["Paused.", "", None]
    assert parts_of(as_message("50%1 of it")) == ["%1", "", None, "50%1 of it"]
    assert as_message(FULL) is FULL


def test_messages_in_turn_are_one_message_and_its_parts_again():
    both = in_turn("", Message("Paused."), FULL, "")
    assert both == "Paused. The disk is full: 1,234.5 of 2000 GB."
    assert turns_of(both) == ("Paused.", FULL)
    assert in_turn("", FULL) is FULL
    assert turns_of(FULL) == (FULL,)
    assert in_turn() == in_turn("", "") == ""


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"words":1}', b'{"words":{}}', b'{"words":{"id":1}}', b'{"words":{"id":"a","values":[null]}}',
        b'{"words":{"id":"a","also":1}}',
        b'{"words":{"id":"a","values":[[1,2,3]]}}', b'{"words":' + b'{"id":"a","values":[' * 5000,
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(wrong):
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        msgspec.json.decode(wrong, type=Envelope, dec_hook=unpacked_message)
