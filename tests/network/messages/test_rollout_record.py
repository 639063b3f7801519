"""A record is decoded as it was encoded, and everything else is refused."""

import tracemalloc

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.errors import BadRecord
from waggle.core.text.unsound_text import UNSOUND
from waggle.network.messages import rollout_record
from waggle.network.messages.faults import Fault
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.tasks.charter import PROTOCOL, Charter, Specialty
from waggle.tasks.questions import QuestionId
from waggle.tasks.rollout_group import Completion, Group
from waggle.tasks.shipped_swarms import first_swarm

CHARTER = first_swarm()
ORIGIN = bytes(range(38))
EPOCH = 2_900_000
NOW = EPOCH * 600.0 + 5


def group(index: int = 0, dataset: str = "bf", size: int = 2) -> Group:
    completions = tuple(Completion(text=f"<answer>{i} é</answer>", ended=i % 2 == 0) for i in range(size))
    return Group(origin=ORIGIN, id=QuestionId(dataset, EPOCH, index), completions=completions)


RECORD = RolloutRecord(origin=ORIGIN, round=12, epoch=EPOCH, model="starter", groups=(group(), group(7, "binary_matrix", 16)))


def packed(wire: object) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(wire))


def wire(**changes: object) -> list[object]:
    fields = {
        "v": PROTOCOL,
        "charter": CHARTER.digest,
        "origin": ORIGIN,
        "round": 12,
        "epoch": EPOCH,
        "model": "starter",
        "groups": [[0, 0, 5, [["a", True, "policy"], ["b", False, "human"]]]],
    }
    assert set(changes) <= set(fields)
    return list({**fields, **changes}.values())


def one_group(
    specialty: object = 0, level: object = 0, number: object = 5, texts: tuple[object, ...] = ("a", "b")
) -> list[object]:
    return [specialty, level, number, [[text, True, "policy"] for text in texts]]


def read(blob: bytes, charter: Charter = CHARTER, now: float = NOW) -> RolloutRecord:
    return rollout_record.decode(blob, charter, origin=ORIGIN, now=now)


def test_a_record_comes_back_as_it_was() -> None:
    assert read(rollout_record.encode(RECORD, CHARTER)) == RECORD


def test_the_table_below_starts_from_a_record_that_is_accepted() -> None:
    result = read(packed(wire()))

    assert result.groups[0].id == QuestionId("base_conversion", EPOCH, 5)
    assert [each.by for each in result.groups[0].completions] == ["policy", "human"]


REFUSED = {
    "not compressed": b"hello",
    "nothing": b"",
    "not msgpack": zstandard.ZstdCompressor().compress(b"\xc1"),
    "something behind it": packed(wire()) + b"x",
    "two frames": packed(wire()) + packed(wire()),
    "something behind the message": zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(wire()) + b"\0"),
    "a frame that hides its size": zstandard.ZstdCompressor(write_content_size=False).compress(msgspec.msgpack.encode(wire())),
    "a bomb": zstandard.ZstdCompressor().compress(bytes(rollout_record.MAX_RAW + 1)),
    "too many bytes": bytes(rollout_record.MAX_BLOB + 1),
    "deep nesting": zstandard.ZstdCompressor().compress(b"\x91" * 100_000),
    "a map": packed({"v": PROTOCOL}),
    "a field too few": packed(wire()[:-1]),
    "a field too many": packed([*wire(), 1]),
    "another protocol": packed(wire(v=PROTOCOL + 1)),
    "an older protocol": packed(wire(v=1)),
    "another charter": packed(wire(charter=bytes(32))),
    "a charter of another size": packed(wire(charter=b"x")),
    "another origin": packed(wire(origin=bytes(38))),
    "a negative round": packed(wire(round=-1)),
    "a round that is no integer": packed(wire(round=1.5)),
    "a round beyond counting": packed(wire(round=1 << 41)),
    "an epoch from the future": packed(wire(epoch=EPOCH + 2)),
    "an epoch too old": packed(wire(epoch=EPOCH - 7)),
    "a long model name": packed(wire(model="m" * 65)),
    "a model name that cannot be printed": packed(wire(model="a\u202eb")),
    "a model name of broken text": packed(wire(model="a\ufffdb")),
    "no groups": packed(wire(groups=[])),
    "too many groups": packed(wire(groups=[one_group(number=i) for i in range(129)])),
    "a question twice": packed(wire(groups=[one_group(), one_group()])),
    "a number twice with another specialty": packed(wire(groups=[one_group(), one_group(specialty=1)])),
    "a level the charter lacks": packed(wire(groups=[one_group(level=1)])),
    "a negative level": packed(wire(groups=[one_group(level=-1)])),
    "a level that is no integer": packed(wire(groups=[one_group(level="easy")])),
    "a negative number": packed(wire(groups=[one_group(number=-1)])),
    "a group without a level": packed(wire(groups=[[0, 5, one_group()[3]]])),
    "a specialty the charter lacks": packed(wire(groups=[one_group(specialty=9)])),
    "a negative specialty": packed(wire(groups=[one_group(specialty=-1)])),
    "a number beyond the epoch": packed(wire(groups=[one_group(number=CHARTER.questions_per_epoch)])),
    "too few completions": packed(wire(groups=[one_group(texts=("a",))])),
    "too many completions": packed(wire(groups=[one_group(texts=("a",) * 17)])),
    "a completion too long": packed(wire(groups=[one_group(texts=("a" * (CHARTER.completion_characters + 1), "b"))])),
    "a control character": packed(wire(groups=[one_group(texts=("a\x07", "b"))])),
    "a bidirectional override": packed(wire(groups=[one_group(texts=("a\u202e", "b"))])),
    "a completion of broken text": packed(wire(groups=[one_group(texts=("a\ufffd", "b"))])),
    "a completion that is no text": packed(wire(groups=[one_group(texts=(b"a", "b"))])),
    "a lone surrogate": packed(wire(groups=[one_group(texts=("abc", "b"))])).replace(b"abc", b"\xed\xa0\x80"),
    "ended is no boolean": packed(wire(groups=[[0, 0, 5, [["a", 1, "policy"], ["b", True, "policy"]]]])),
    "an author of another kind": packed(wire(groups=[[0, 0, 5, [["a", True, "robot"], ["b", True, "policy"]]]])),
}


@pytest.mark.parametrize("blob", REFUSED.values(), ids=REFUSED.keys())
def test_a_record_that_breaks_a_rule_is_refused(blob: bytes) -> None:
    with pytest.raises(BadRecord) as refused:
        read(blob)
    assert 0 < len(refused.value.title) < 40


TWO_LEVELS = msgspec.structs.replace(
    CHARTER,
    specialties=(
        Specialty(dataset="gcd", title="Divisors", levels=("easy",)),
        Specialty(dataset="bf", title="Programs", levels=("standard", "easy")),
    ),
    questions_per_epoch=100,
)


def of_two_levels(*groups: list[object]) -> bytes:
    return packed(wire(charter=TWO_LEVELS.digest, groups=list(groups)))


@pytest.mark.parametrize(
    ("groups", "fault"),
    [
        ([one_group(specialty=2)], Fault.UNKNOWN_SPECIALTY),
        ([one_group(specialty=1, level=2)], Fault.UNKNOWN_LEVEL),
        ([one_group(specialty=0, level=1)], Fault.UNKNOWN_LEVEL),
        ([one_group(specialty=1, level=1, number=100)], Fault.QUESTION_BEYOND_LIMIT),
        ([one_group(specialty=0, number=7), one_group(specialty=1, number=7)], Fault.QUESTION_TWICE),
        ([one_group(specialty=1, level=0, number=7), one_group(specialty=1, level=1, number=7)], Fault.QUESTION_TWICE),
    ],
)
def test_a_level_that_does_not_exist_a_number_beyond_the_epoch_and_one_used_twice_are_named(
    groups: list[list[object]], fault: Fault
) -> None:
    with pytest.raises(BadRecord, match=fault):
        read(of_two_levels(*groups), TWO_LEVELS)


def test_a_group_of_any_level_with_the_last_number_is_read_and_written() -> None:
    blob = of_two_levels(one_group(specialty=1, level=1, number=99), one_group(specialty=1, number=98), one_group(number=0))
    record = read(blob, TWO_LEVELS)
    assert [each.id for each in record.groups] == [
        QuestionId("bf", EPOCH, 99, level=1), QuestionId("bf", EPOCH, 98), QuestionId("gcd", EPOCH, 0),
    ]  # fmt: skip
    assert read(rollout_record.encode(record, TWO_LEVELS), TWO_LEVELS) == record


def test_the_surrogate_of_the_table_reaches_the_decoder() -> None:
    assert b"\xed\xa0\x80" in REFUSED["a lone surrogate"]


@pytest.mark.parametrize("epoch", [EPOCH - 6, EPOCH, EPOCH + 1])
def test_epochs_inside_the_age_window_are_accepted_with_one_of_skew(epoch: int) -> None:
    assert read(packed(wire(epoch=epoch))).epoch == epoch


def test_groups_of_another_node_or_epoch_cannot_be_encoded() -> None:
    for wrong in (
        msgspec.structs.replace(group(), origin=bytes(38)),
        msgspec.structs.replace(group(), id=QuestionId("bf", EPOCH - 1, 0)),
    ):
        with pytest.raises(ValueError, match="one node's groups"):
            rollout_record.encode(msgspec.structs.replace(RECORD, groups=(wrong,)), CHARTER)


def test_groups_that_do_not_fit_are_left_out() -> None:
    roomy = msgspec.structs.replace(CHARTER, completion_characters=20_000)
    long = Completion(text="x" * 20_000, ended=True)
    groups = tuple(Group(origin=ORIGIN, id=QuestionId("bf", EPOCH, i), completions=(long,) * 16) for i in range(70))

    blob = rollout_record.encode(msgspec.structs.replace(RECORD, groups=groups), roomy)

    result = read(blob, roomy).groups
    assert result == groups[: len(result)]
    assert 8 <= len(result) < 64


def test_a_cut_completion_travels_without_its_broken_end() -> None:
    cut, ended = Completion(text="4\ufffd\ufffd", ended=False), Completion(text="5", ended=True)

    shared = rollout_record.shareable(msgspec.structs.replace(group(), completions=(cut, ended)), CHARTER)

    assert shared is not None
    assert [each.text for each in shared.completions] == ["4", "5"]


@pytest.mark.parametrize(
    "completions",
    [
        pytest.param((Completion(text="a\ufffdb", ended=False), Completion(text="c", ended=True)), id="broken inside"),
        pytest.param((Completion(text="a\ufffd", ended=True), Completion(text="c", ended=True)), id="ended broken"),
        pytest.param((Completion(text="\ud800", ended=True), Completion(text="c", ended=True)), id="half a character"),
        pytest.param((Completion(text="x" * 401, ended=True), Completion(text="c", ended=True)), id="too long"),
        pytest.param((Completion(text="c", ended=True),), id="alone"),
    ],
)
def test_a_group_that_others_would_refuse_does_not_travel(completions: tuple[Completion, ...]) -> None:
    assert rollout_record.shareable(msgspec.structs.replace(group(), completions=completions), CHARTER) is None


def test_specialties_are_announced_as_a_bitmask() -> None:
    assert rollout_record.specialties_of(RECORD.groups, CHARTER) == 1 << CHARTER.position("bf") | 1 << CHARTER.position(
        "binary_matrix"
    )


def test_a_model_name_is_made_fit_to_travel() -> None:
    assert rollout_record.model_name("a\nb\u202ec" + "x" * 100) == "a bc" + "x" * 60
    assert rollout_record.model_name("x" + "\N{HONEYBEE}" * 64) == "x" + "\N{HONEYBEE}" * 23, "no half of one"
    assert rollout_record.is_model_name("x" + "\N{HONEYBEE}" * 23)
    assert not rollout_record.is_model_name("\N{HONEYBEE}" * 64), "nobody sends it"


UNSEEN = "Qw\u3164en\u2800 \u2800\u0336\u115f0.5B\ufe0f"


def test_the_invisible_letters_of_a_name_that_an_earlier_version_sends_are_not_read() -> None:
    assert rollout_record.is_model_name(UNSEEN)
    sent = packed(wire(model=UNSEEN))
    assert rollout_record.decode(sent, CHARTER, origin=RECORD.origin, now=NOW).model == "Qwen 0.5B"


VALID = rollout_record.encode(RECORD, CHARTER)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


SOUND = st.characters(exclude_categories=["Cs"]).filter(lambda character: not UNSOUND.match(character))
TEXTS = st.text(SOUND, max_size=CHARTER.completion_characters)
COMPLETIONS = st.lists(
    st.builds(Completion, text=TEXTS, ended=st.booleans(), by=st.sampled_from(["policy", "human"])), min_size=2, max_size=16
)
GROUPS = st.builds(
    lambda dataset, index, completions: Group(
        origin=ORIGIN, id=QuestionId(dataset, EPOCH, index), completions=tuple(completions)
    ),
    st.sampled_from([specialty.dataset for specialty in CHARTER.specialties]),
    st.integers(0, CHARTER.questions_per_epoch - 1),
    COMPLETIONS,
)


@given(st.lists(GROUPS, min_size=1, max_size=5, unique_by=lambda group: group.id.number), st.integers(0, (1 << 40) - 1))
def test_any_record_comes_back_as_it_was(groups: list[Group], number: int) -> None:
    shared = RolloutRecord(origin=ORIGIN, round=number, epoch=EPOCH, model="starter", groups=tuple(groups))
    assert read(rollout_record.encode(shared, CHARTER)) == shared


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(blob: bytes) -> None:
    for candidate in (blob, zstandard.ZstdCompressor().compress(blob)):
        with pytest.raises(BadRecord):
            read(candidate)


@given(ANYTHING, st.integers(0, 6))
def test_any_message_is_read_or_refused(message: object, field: int) -> None:
    mixed = wire()
    mixed[field] = message
    for candidate in (message, mixed):
        try:
            read(packed(candidate))
        except BadRecord:
            continue


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255))
def test_a_record_with_one_byte_changed_is_read_or_refused(position: int, value: int) -> None:
    changed = bytearray(VALID)
    changed[position] = value
    try:
        read(bytes(changed))
    except BadRecord:
        return


def small(round_number: int, epoch: int, *indexes: int) -> RolloutRecord:
    groups = tuple(msgspec.structs.replace(group(), id=QuestionId("bf", epoch, index)) for index in indexes)
    return RolloutRecord(origin=ORIGIN, round=round_number, epoch=epoch, model="starter", groups=groups)


def test_quick_rounds_travel_together_named_after_the_last_and_a_question_once() -> None:
    both = rollout_record.merge(small(4, EPOCH, 1, 2), small(5, EPOCH, 2, 3))
    assert (both.round, [each.id.number for each in both.groups]) == (5, [1, 2, 3])
    assert read(rollout_record.encode(both, CHARTER)) == both


def test_of_two_questions_with_one_number_the_later_travels_and_the_record_is_accepted() -> None:
    """A round that skips many questions uses numbers of the next one."""
    later = msgspec.structs.replace(small(5, EPOCH), groups=(group(2, "binary_matrix"), group(4)))
    both = rollout_record.merge(small(4, EPOCH, 1, 2), later)
    assert [(each.id.dataset, each.id.number) for each in both.groups] == [("bf", 1), ("binary_matrix", 2), ("bf", 4)]
    assert read(rollout_record.encode(both, CHARTER)) == both


def test_groups_of_another_epoch_do_not_travel_with_a_later_round() -> None:
    assert [each.id.number for each in rollout_record.merge(small(4, EPOCH - 1, 1), small(5, EPOCH, 3)).groups] == [3]


def test_more_quick_rounds_than_a_record_holds_lose_the_oldest_groups() -> None:
    both = rollout_record.merge(small(4, EPOCH, *range(rollout_record.MAX_GROUPS)), small(5, EPOCH, 9999))
    assert (len(both.groups), both.groups[-1].id.number) == (rollout_record.MAX_GROUPS, 9999)


def fullest(text: str) -> bytes:
    """The blob of a record with as many groups, completions and characters as the charter allows."""
    texts = (text,) * CHARTER.group_size_max
    groups = [one_group(number=number, texts=texts) for number in range(rollout_record.MAX_GROUPS)]
    return packed(wire(groups=groups))


@pytest.mark.parametrize("letter", ["a", "é", "\U0001f41d"])
def test_the_fullest_record_is_read_and_takes_little_more_memory_than_its_texts(letter: str) -> None:
    blob = fullest(letter * CHARTER.completion_characters)
    assert len(blob) < 5000, "it unpacks to a thousand times of that"
    tracemalloc.start()
    try:
        record = read(blob)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(record.groups) == rollout_record.MAX_GROUPS
    assert most < 16 << 20


def test_what_unpacks_to_more_than_any_record_under_the_charter_is_not_unpacked() -> None:
    most = rollout_record.most_raw(CHARTER)
    assert most < rollout_record.MAX_RAW
    with pytest.raises(BadRecord, match=Fault.TOO_LARGE_UNPACKED):
        read(zstandard.ZstdCompressor().compress(bytes(most + 1)))
