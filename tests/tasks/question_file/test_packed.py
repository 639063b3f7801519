"""Files as they travel: round trips, and everything a stranger's file may be refused for."""

import hashlib
import json
import random

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tasks.question_file.questions import packed_sums, sums
from waggle.core.errors import QuestionFileError
from waggle.core.text.unsound_text import UNSOUND
from waggle.tasks.question_file import packed, rules
from waggle.tasks.question_file.preview import packed_file, preview_of
from waggle.tasks.question_file.reader import read_questions
from waggle.tasks.question_file.rules import Row

SUMS = packed_sums()
ROWS = packed.unpack(b"".join(SUMS.pieces), SUMS.file)


def test_a_preview_shows_what_is_in_a_file():
    preview = preview_of(read_questions("sums.jsonl", sums() + b"\n" + sums(2)))
    assert (preview.questions, preview.duplicates, preview.refusal) == (40, 2, "")
    assert preview.reserved == sum(rules.split(row.question) != "train" for row in ROWS) > 0
    assert (preview.longest_question, preview.longest_answer) == (len("What is 10 + 10?"), 2)
    assert preview.examples == tuple(Row(f"What is {i} + {i}?", str(2 * i)) for i in range(5))
    assert (preview.grader, preview.grader_title) == ("number", "Number")
    assert preview.possible_graders == ("choice", "list", "number", "set", "text")


@pytest.mark.parametrize(
    ("answers", "hint"),
    [
        (["1"] * 16 + ["undefined"] + ["2"] * 45, '61 of 62 answers are numbers; line 17 is not: "undefined".'),
        (['{"a": 1}'] * 30 + ["none\nat all"], '30 of 31 answers are JSON objects; line 31 is not: "none at all".'),
        (["[1]"] * 18 + ["1", "2"], '18 of 20 answers are lists; line 19 is not: "1".'),
        (["1"] * 8 + ["x", "y"], ""),
        (["1"] * 40, ""),
        (["Paris"] * 40, ""),
    ],
)
def test_an_answer_that_looks_like_a_slip_is_a_hint(answers, hint):
    content = "\n".join(json.dumps({"question": f"q{i}", "answer": answer}) for i, answer in enumerate(answers)).encode()
    assert preview_of(read_questions("a.jsonl", content)).hint == hint


def test_a_file_with_too_few_questions_makes_no_swarm():
    table = read_questions("sums.jsonl", sums(20))
    assert "at least 20 different questions" in preview_of(table).refusal
    with pytest.raises(QuestionFileError, match="at least 20 different questions"):
        packed_file(table)


def test_a_packed_file_holds_the_same_questions_however_the_file_was_ordered():
    shuffled = sums().split(b"\n")
    random.Random(1).shuffle(shuffled)
    other = packed_file(read_questions("other.jsonl", b"\n".join(shuffled)))
    assert other == SUMS
    assert sorted(ROWS) == sorted(Row(f"What is {i} + {i}?", str(2 * i)) for i in range(40))
    assert packed.joined(SUMS.pieces, SUMS.file) == b"".join(SUMS.pieces)


def test_a_corrected_file_keeps_its_reserved_questions():
    other = packed_file(read_questions("sums.jsonl", sums(41)))
    assert other.file.dataset != SUMS.file.dataset
    reserved = {row.question for row in ROWS if rules.split(row.question) != "train"}
    rows = packed.unpack(b"".join(other.pieces), other.file)
    assert reserved == {row.question for row in rows if rules.split(row.question) != "train"} - {"What is 40 + 40?"}


def test_a_question_is_reserved_whatever_its_white_space_and_the_form_of_its_characters():
    questions = [f"What is {i} plus \u00e9?" for i in range(200)]
    spaced = [question.replace(" ", "\n  ").replace("\u00e9", "e\u0301") for question in questions]
    assert {rules.split(question) for question in questions} == {"train", "dev", "test"}
    assert list(map(rules.split, spaced)) == list(map(rules.split, questions))


def test_a_large_file_is_cut_into_pieces_of_one_mebibyte():
    noise = random.Random(1)
    questions = [f"{i} {noise.randbytes(500).hex()}" for i in range(4000)]
    content = "\n".join(json.dumps({"question": question, "answer": "x"}) for question in questions).encode()
    large = packed_file(read_questions("a.jsonl", content))
    assert [len(piece) for piece in large.pieces[:-1]] == [1 << 20] * (len(large.pieces) - 1)
    assert len(large.pieces) > 1
    assert large.file.fault() == ""
    assert len(packed.unpack(packed.joined(large.pieces, large.file), large.file)) == 4000


@pytest.mark.parametrize("bound", ["MOST_UNPACKED", "MOST_QUESTIONS", "MOST_PIECES"])
def test_a_file_that_is_too_large_is_refused(bound, monkeypatch):
    monkeypatch.setattr(packed, bound, 0)
    with pytest.raises(QuestionFileError, match=r"too many|when compressed"):
        packed.pack(ROWS)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).map(rules.tidy).filter(
    lambda text: text and not UNSOUND.search(text)
)  # fmt: skip


@given(st.dictionaries(TEXTS.map(rules.identity), TEXTS, min_size=1, max_size=60))
def test_any_questions_survive_the_way_through_pieces(answers):
    rows = [Row(question, f"x {answer}") for question, answer in answers.items()]
    rows += [Row(f"question {i}", "y") for i in range(30) if f"question {i}" not in answers]
    rows = [row for row in rows if not rules.text_fault(row)]
    pieces = packed.pack(rows)
    file = msgspec.structs.replace(SUMS.file, questions=len(rows), grader="text", samples=())
    assert sorted(packed.unpack(b"".join(pieces), file)) == sorted(rows)


def compressed(raw: bytes, **parameters) -> bytes:
    return zstandard.ZstdCompressor(**parameters).compress(raw)


def raw_of(rows) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def with_row(question: str, answer: str) -> bytes:
    return compressed(
        raw_of(sorted([*ROWS[1:], Row(question, answer)], key=lambda row: hashlib.sha256(row.question.encode()).digest()))
    )


RAW = raw_of(ROWS)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not compressed as agreed|size is not allowed"),
        (b"x" * 100, "not compressed as agreed"),
        (compressed(bytes(1 << 30)), "size is not allowed"),
        (compressed(RAW, write_content_size=False), "size is not allowed"),
        (compressed(RAW) + b"x", "not compressed as agreed"),
        (compressed(RAW) + compressed(RAW), "not compressed as agreed"),
        (compressed(RAW)[:-1], "not compressed as agreed"),
        (compressed(RAW[:-1]), "does not have the 40 questions"),
        (compressed(raw_of(ROWS[1:])), "does not have the 40 questions"),
        (compressed(raw_of([*ROWS[1:], ROWS[0]])), "out of order"),
        (compressed(raw_of([ROWS[0], *ROWS[:-1]])), "out of order"),
        (compressed(RAW.replace(b'","', b'", "', 1)), "line 1 is malformed"),
        (compressed(RAW.replace(b'["', b'{"', 1)), "line 1 is malformed"),
        (compressed(RAW.replace(b"W", b"\\u0057", 1)), "line 1 is malformed"),
        (compressed(RAW.replace(b"W", b"\\ud800", 1)), "line 1 is malformed"),
        (compressed(RAW.replace(b"W", b"\xff", 1)), "line 1 is malformed"),
        (with_row("a", "one"), 'the answer "one" is not a number'),
        (with_row("a", ""), "the answer is empty"),
        (with_row("", "1"), "the question is empty"),
        (with_row("a\u202e", "1"), "U\\+202E"),
        (with_row("a\0", "1"), "U\\+0000"),
        (with_row(" a", "1"), "white space around it"),
        (with_row("a" * 16_001, "1"), "more than 16,000"),
        (with_row(f"{ROWS[3].question.replace(' ', '  ')}", "1"), "a question again"),
    ],
)  # fmt: skip
def test_a_strangers_file_that_breaks_a_rule_is_refused_in_words(content, says):
    with pytest.raises(QuestionFileError, match=says) as refused:
        packed.unpack(content, SUMS.file)
    assert refused.value.title.isprintable()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"samples": ("What is love?",)}, "samples in the charter are no questions of it"),
        ({"grader": "regex"}, "needs the grader regex"),
        ({"questions": 41}, "does not have the 41 questions"),
    ],
)
def test_a_file_that_is_not_what_its_charter_says_is_refused(changes, says):
    with pytest.raises(QuestionFileError, match=says):
        packed.unpack(b"".join(SUMS.pieces), msgspec.structs.replace(SUMS.file, **changes))


def test_a_file_of_reserved_questions_only_is_refused():
    reserved = [Row(question, "1") for i in range(900) if rules.split(question := f"question {i}") != "train"][:40]
    file = msgspec.structs.replace(SUMS.file, samples=())
    with pytest.raises(QuestionFileError, match="only 0 of its questions are not reserved"):
        packed.unpack(b"".join(packed.pack(reserved)), file)


def test_pieces_that_are_missing_or_damaged_are_named():
    (piece,) = SUMS.pieces
    with pytest.raises(QuestionFileError, match="not complete"):
        packed.joined([], SUMS.file)
    for other in (piece[:-1], piece[:-1] + b"x", b""):
        with pytest.raises(QuestionFileError, match="Piece 1 of the questions is damaged"):
            packed.joined([other], SUMS.file)
