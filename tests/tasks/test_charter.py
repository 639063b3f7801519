"""Charters: encoding, hashes, and what is refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.errors import CharterError
from waggle.core.text.legible_name import legible
from waggle.tasks import audit_results, catalogue
from waggle.tasks.charter import Charter, Specialty, decode, encode, other_questions, read
from waggle.tasks.shipped_swarms import first_swarm


def changed(**changes) -> bytes:
    return encode(msgspec.structs.replace(first_swarm(), **changes))


def test_a_charter_survives_the_way_through_bytes_with_its_name():
    charter = first_swarm()
    assert decode(encode(charter), expected=charter.digest) == charter
    assert len(charter.specialties) == 9


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"{", "cannot be read"),
        (b'{"name":"\xff"}', "cannot be read"),
        (b'{"settings":' * 5000, "cannot be read"),
        (b"x" * 70_000, "too large"),
        (changed(specialties=(Specialty(dataset="bf", title="t", levels=("hard",)),)), "a level of bf that does not exist"),
        (changed(specialties=(Specialty(dataset="bf", title="t", levels=("easy", "easy")),)), "each level of a specialty once"),
        (encode(first_swarm()).replace(b'["easy"]', b"[]"), "cannot be read"),
        (encode(first_swarm()).replace(b'["easy"]', b'["deadly"]'), "cannot be read"),
        (changed(group_size_min=9, group_size_max=8), "smallest group"),
        (changed(protocol=3), "needs a newer Waggle"),
        (changed(protocol=3)[:-1] + b',"reward":1}', "First light speaks protocol 3.*needs a newer Waggle"),
        (changed(protocol=3, questions_per_epoch=1 << 30), "needs a newer Waggle"),
        (changed(protocol=3, name="n" * 999), "^n{60} speaks protocol 3.*needs a newer Waggle"),
        (changed(protocol=3, name="First\u202elight"), "plain words on one line"),
        (changed(specialties=first_swarm().specialties[:1] * 2), "names each specialty once"),
        (changed(name="First\u202elight"), "plain words on one line"),
        (changed(reasoning_gym="1\u202e"), "cannot be read"),
        (encode(first_swarm())[:-1] + b',"reward":1}', "unknown field"),
    ],
)
def test_a_charter_that_breaks_a_rule_is_refused_in_words(document, says):
    with pytest.raises(CharterError, match=says):
        decode(document)


def test_what_is_wrong_in_it_is_said_of_a_charter_in_ones_own_file_only():
    with pytest.raises(CharterError, match=r"^This charter is malformed\. Update Waggle, or have the charter corrected\.$"):
        decode(encode(first_swarm())[:-1] + b',"reward":1}', expected=bytes(32))


@pytest.mark.parametrize(
    "document",
    [
        encode(first_swarm())[:-1] + b',"\\u202e\\u001b]0;owned\\u0007\\n2026-11-23 all is well":1}',
        encode(first_swarm())[:-1] + b',"%s":1}' % (b"x" * 50_000),
    ],
    ids=["control characters", "a long one"],
)
def test_what_is_wrong_with_a_charter_is_said_in_plain_words_on_one_line(document):
    with pytest.raises(CharterError) as refused:
        decode(document)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 3000


@pytest.mark.parametrize(
    "hidden", ["\u3164", "\u2800", "\xad", "\u034f", "\ufe0f", "\U000e0041", "\u202e", "\u0336" * 20, "\u200d"]
)
def test_no_name_title_or_hint_has_what_nobody_sees_or_what_covers_other_letters(hidden):
    title = msgspec.structs.replace(first_swarm().specialties[0], title=f"Sums{hidden}")
    for document in (changed(name=f"First{hidden}light"), changed(model_hint=hidden), changed(specialties=(title,))):
        with pytest.raises(CharterError, match="plain words on one line"):
            decode(document)


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=13).map(legible).filter(bool)
LEVELS = {
    entry.dataset: list(entry.levels)
    for entry in catalogue.catalogue_entries()
    if audit_results.shipped_audit().findings[entry.dataset].longest >= 20_000
}


def specialty_of(dataset: str) -> st.SearchStrategy:
    levels = st.lists(st.sampled_from(LEVELS[dataset]), min_size=1, unique=True).map(tuple)
    return st.builds(Specialty, dataset=st.just(dataset), title=WORDS, levels=levels)


SPECIALTIES = st.lists(
    st.sampled_from(sorted(LEVELS)).flatmap(specialty_of), min_size=1, max_size=4, unique_by=lambda specialty: specialty.dataset
).map(tuple)


@given(st.builds(Charter, name=WORDS, specialties=SPECIALTIES, completion_characters=st.integers(16, 20_000)))
def test_any_charter_survives_the_way_through_bytes(charter):
    assert decode(encode(charter), expected=charter.digest) == charter


def test_a_charter_changed_on_the_way_is_noticed():
    with pytest.raises(CharterError, match="not the one the invite names"):
        decode(changed(name="Other"), expected=first_swarm().digest)


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.1.26", "It uses reasoning-gym 0.1.26, this Waggle 0.1.25. This swarm needs a newer Waggle: update this one."),
        (
            "0.1.9",
            "It uses reasoning-gym 0.1.9, this Waggle 0.1.25. "
            "This swarm was made for an older Waggle: somebody has to create it anew.",
        ),
        ("0.1.25", "Both use reasoning-gym 0.1.25. Install Waggle again, or ask whoever wrote the charter."),
    ],
)
def test_whoever_makes_other_questions_hears_which_side_must_update(version, says):
    error = other_questions(msgspec.structs.replace(first_swarm(), reasoning_gym=version), "0" * 64)
    assert error.title == "This computer makes other questions than First light agreed on."
    assert error.advice == says


def test_a_missing_charter_file_is_named(tmp_path):
    with pytest.raises(CharterError, match="nowhere"):
        read(tmp_path / "nowhere")
