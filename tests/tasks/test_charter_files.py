"""Charters with people's own questions: what is in them, and what is refused."""

import msgspec
import pytest

from tasks.question_file.questions import packed_sums
from waggle.core.errors import CharterError
from waggle.tasks.charter import Specialty, decode, encode
from waggle.tasks.new_charter import new_charter
from waggle.tasks.question_file.description import QuestionFile

SUMS = packed_sums().file
CHARTER = new_charter("Mine", {}, files=[("  My\nsums ", SUMS)])
MIXED = new_charter("Both", {"bf": ["easy"]}, files=[("Sums", SUMS)])


def test_a_file_stands_alone_or_beside_datasets():
    assert CHARTER.specialties == (Specialty(dataset=SUMS.dataset, title="My sums", file=SUMS),)
    assert [specialty.dataset for specialty in MIXED.specialties] == ["bf", SUMS.dataset]
    for charter in (CHARTER, MIXED):
        assert decode(encode(charter), expected=charter.digest) == charter


def test_pieces_grader_and_tolerance_are_part_of_the_name():
    others = [SUMS, packed_sums(41).file, packed_sums(grader="text").file, packed_sums(tolerance=0.5).file]
    assert len({file.dataset for file in others}) == 4
    assert len({new_charter("Mine", {}, files=[("Sums", file)]).digest for file in others}) == 4
    assert SUMS.dataset.startswith("file_")
    assert len(SUMS.dataset) == len("file_") + 16


def with_file(own: QuestionFile, **changes) -> bytes:
    specialty = Specialty(**{"dataset": own.dataset, "title": "Sums", "file": own, **changes})
    return encode(msgspec.structs.replace(CHARTER, specialties=(specialty,)))


def changed(**changes) -> bytes:
    return with_file(msgspec.structs.replace(SUMS, **changes))


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (with_file(SUMS, dataset="file_0123456789abcdef"), "does not have the name that its hashes make"),
        (with_file(SUMS, dataset="bf"), "does not have the name that its hashes make"),
        (with_file(SUMS, levels=("easy",)), "has levels of the catalogue"),
        (with_file(SUMS, levels=("standard", "hard")), "has levels of the catalogue"),
        (with_file(SUMS, file=msgspec.UNSET), "this Waggle has no such dataset"),
        (changed(packed_bytes=(1 << 20) + 1), "has a size that does not fit its pieces"),
        (changed(pieces=SUMS.pieces * 2), "has a size that does not fit its pieces"),
        (changed(pieces=SUMS.pieces * 9), "cannot be read"),
        (changed(pieces=()), "cannot be read"),
        (changed(pieces=("../../etc/passwd",)), "cannot be read"),
        (changed(packed_bytes=(8 << 20) + 1), "cannot be read"),
        (changed(questions=19), "cannot be read"),
        (changed(questions=50_001), "cannot be read"),
        (changed(grader="regex"), "needs the grader regex, which this Waggle does not have. Update Waggle"),
        (changed(grader="../x"), "cannot be read"),
        (changed(tolerance=-1.0), "cannot be read"),
        (changed(tolerance=1e10), "cannot be read"),
        (changed(samples=("x" * 301,)), "cannot be read"),
        (changed(samples=("a", "b", "c", "d")), "cannot be read"),
        (changed(samples=("a\u202eb",)), "samples with hidden characters"),
        (changed(samples=("a\u3164b",)), "samples with hidden characters"),
        (encode(CHARTER).replace(b'"bytes"', b'"code":"x","bytes"'), "unknown field"),
    ],
)
def test_a_charter_with_a_file_that_breaks_a_rule_is_refused_in_words(document, says):
    with pytest.raises(CharterError, match=says):
        decode(document)


def test_a_charter_has_a_few_files_only():
    files = [(f"Sums {i}", packed_sums(40 + i).file) for i in range(5)]
    assert len(new_charter("Four", {}, files=files[:4]).specialties) == 4
    with pytest.raises(CharterError, match="at most 4 files"):
        new_charter("Five", {}, files=files)
    with pytest.raises(CharterError, match="names each specialty once"):
        new_charter("Twice", {}, files=[files[0], files[0]])


def test_a_title_is_plain_words():
    assert new_charter("Mine", {}, files=[("a\u202eb\u3164 ", SUMS)]).specialties[0].title == "ab"
