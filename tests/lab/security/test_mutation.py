"""Test mutations that keep the format of a message."""

from random import Random

import msgspec

from waggle_lab.security.mutation import mutated

MESSAGE = {"a": [1, "text", {"b": None}], "c": 2.5}


def test_json_stays_json_and_changes():
    before = msgspec.json.encode(MESSAGE)
    mutants = {mutated(before, Random(i)) for i in range(200)}
    assert len(mutants) > 50
    for each in mutants - {None, b""}:  # what cannot be written again, and the whole removed
        msgspec.json.decode(each)


def test_msgpack_stays_msgpack():
    before = msgspec.msgpack.encode([1, b"bytes", ["text"]])
    mutants = {mutated(before, Random(i)) for i in range(200)}
    assert len(mutants) > 50
    for each in mutants - {None, b""}:
        msgspec.msgpack.decode(each)


def test_one_line_of_several_is_changed():
    mutant = mutated(b'{"a":1}\n{"a":1}\n{"a":1}', Random(1))
    assert mutant is not None
    assert len([line for line in mutant.split(b"\n") if line == b'{"a":1}']) == 2


def test_bytes_that_are_no_message_are_left_to_others():
    assert mutated(b"[swarm]\nport = 1\n\xff", Random(0)) is None
