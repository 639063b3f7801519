"""People's files: every form that works, the guess of the grader, and what is refused, with the line and the reason."""

import gzip
import json

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.errors import QuestionFileError
from waggle.tasks.question_file import reader
from waggle.tasks.question_file.reader import read_questions


def lines(*objects: object) -> bytes:
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in objects).encode()


def pairs(table: reader.QuestionTable) -> list[tuple[int, str, str]]:
    return [(each.line, each.row.question, each.row.answer) for each in table.rows]


@pytest.mark.parametrize(
    ("record", "question", "answer"),
    [
        ({"question": "2+2?", "answer": "4"}, "2+2?", "4"),
        ({"Prompt": " 2+2? ", "ANSWER": 4, "id": [1]}, "2+2?", "4"),
        ({"question": "2+2?", "answer": 4.50}, "2+2?", "4.5"),
        ({"question": "2+2?", "answer": True}, "2+2?", "true"),
        ({"question": "Primes?", "answer": [2, "three", 5.0]}, "Primes?", '[2, "three", 5.0]'),
        ({"question": "Who?", "answer": {"name": "Ada", "born": 1815}}, "Who?", '{"name": "Ada", "born": 1815}'),
        ({"question": "2+2?", "answer": "Two and two.\n#### 1,234"}, "2+2?", "1,234"),
        ({"question": "2+2?", "answer": "4 #### 5"}, "2+2?", "4 #### 5"),
        ({"question": "A\r\nB", "answer": "4"}, "A\nB", "4"),
        (
            {"messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"},
                {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "So\n#### 4"},
            ]},
            "Be brief.\n\n2+2?", "4",
        ),
        ({"prompt": [{"role": "user", "content": "2+2?"}], "answer": "4"}, "2+2?", "4"),
    ],
)  # fmt: skip
def test_each_usual_form_of_a_line_is_read(record, question, answer):
    table = read_questions("sums.jsonl", lines(record), grader="text")
    assert pairs(table) == [(1, question, answer)]


def test_lines_may_be_empty_and_each_row_knows_its_own():
    content = b'\xef\xbb\xbf\r\n{"question": "a", "answer": 1}\r\n\r\n{"question": "b", "answer": 2}\r\n'
    assert pairs(read_questions("a.jsonl", content)) == [(2, "a", "1"), (4, "b", "2")]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_is_read_whatever_separates_its_columns(separator):
    rows = [["id", "Question", "Answer"], ["1", '"Two\nlines, ""quoted"""', "4"], ["2", "b", "5"]]
    content = "\r\n".join(separator.join(row) for row in rows).encode("utf-8-sig")
    assert pairs(read_questions("a.csv", content)) == [(2, 'Two\nlines, "quoted"', "4"), (4, "b", "5")]


def test_a_conversation_in_a_table_is_json():
    cell = json.dumps([{"role": "user", "content": "2+2?"}]).replace('"', '""')
    assert pairs(read_questions("a.csv", f'messages,answer\n"{cell}",4\n'.encode())) == [(2, "2+2?", "4")]


@pytest.mark.parametrize(
    ("answers", "grader"),
    [
        ([1, "2", "$3,000.50"], "number"),
        ([1, "two"], "text"),
        ([{"a": 1}, {"b": "x"}], "fields"),
        ([[1], ["x", "y"]], "list"),
        (["A", "B", "A", "C"] * 4, "choice"),
        (["yes", "no"] * 4, "choice"),
        (["yes", "no"], "text"),
        ([f"city {i}" for i in range(40)], "text"),
        (["a long sentence about something"] * 12, "text"),
    ],
)
def test_the_grader_is_guessed_from_the_answers(answers, grader):
    content = lines(*({"question": f"q{i}", "answer": answer} for i, answer in enumerate(answers)))
    assert read_questions("a.jsonl", content).grader == grader


def test_the_person_may_choose_another_grader_and_a_tolerance():
    content = lines({"question": "a", "answer": "1.5"})
    assert read_questions("a.jsonl", content, grader="text").tolerance == 0.0
    table = read_questions("a.jsonl", content, tolerance=0.1)
    assert (table.grader, table.tolerance) == ("number", 0.1)
    with pytest.raises(QuestionFileError, match="no grader regex"):
        read_questions("a.jsonl", content, grader="regex")
    for tolerance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(QuestionFileError, match="tolerance"):
            read_questions("a.jsonl", content, tolerance=tolerance)


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "sep=;;", "sep=|", "sep=\t"])
def test_a_first_line_for_excel_names_the_separator_and_is_skipped(first):
    separator = first.strip('"')[4]
    content = f"{first}\nquestion{separator}answer\na, b, c{separator}1\n".encode()
    assert pairs(read_questions("a.csv", content)) == [(3, "a, b, c", "1")]


def test_only_the_first_line_names_the_separator():
    assert pairs(read_questions("a.csv", b"question,answer\nsep=;,1\n")) == [(2, "sep=;", "1")]
    with pytest.raises(QuestionFileError, match="has no questions"):
        read_questions("a.csv", b"sep=;")


def test_a_tolerance_that_would_not_be_used_is_refused_with_the_line_of_the_first_answer_that_is_no_number():
    numbers = [{"question": f"n{i}", "answer": i} for i in range(16)]
    for misfit in ("undefined", "word " * 20):
        content = lines(*numbers, {"question": "x", "answer": misfit})
        for grader in ("", "text"):
            with pytest.raises(QuestionFileError) as refused:
                read_questions("a.jsonl", content, grader=grader, tolerance=0.5)
            reason = f'the answer "{misfit[:40]}" is not a number'
            assert refused.value.title.startswith(f"a.jsonl, line 17: {reason}")
            assert "leave the tolerance out" in refused.value.advice
            assert len(refused.value.title) < 200
    with pytest.raises(QuestionFileError, match="has a tolerance, but the grader text uses none"):
        read_questions("a.jsonl", lines(*numbers), grader="text", tolerance=0.5)


def test_a_question_that_comes_twice_is_counted_once_also_if_its_answer_is_written_otherwise():
    content = lines(*({"question": q, "answer": a} for q, a in [("a  b", "4"), ("c", "5"), ("a b", "4.0"), ("c", "5")]))
    table = read_questions("a.jsonl", content)
    assert pairs(table) == [(1, "a  b", "4"), (2, "c", "5")]
    assert table.duplicates == 2


GOOD = {"question": "a", "answer": "1"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has no questions"),
        (b"\n\n", "has no questions"),
        (b"x" * ((32 << 20) + 1), "larger than 32 MiB"),
        (b"\n" + b'{"question": "' + b"x" * (10 << 20) + b'"}', "line 2: it is longer than 1 MiB"),
        (b'{"question": "a",\n\0', "line 2: it contains the byte 0"),
        (lines(GOOD) + b'\n{"question": "\xff"}', "line 2: this is not text in UTF-8"),
        ('{"question": "a"}'.encode("utf-16"), "saved as UTF-16"),
        (gzip.compress(lines(GOOD), mtime=0), "is compressed"),
        (zstandard.compress(bytes(1 << 20)), "is compressed"),
        (b"PK\x03\x04", "a spreadsheet or an archive"),
        (b"{", "line 1: this is not JSON"),
        (b"[" * 100_000, "line 1: this cannot be used: it is nested too deeply"),
        (b'{"question": "a", "answer": NaN}', "line 1: this cannot be used: NaN"),
        (b'{"question": "a", "question": "b"}', "a name twice"),
        (b'{"question": "a", "Question": "b"}', "two columns have the same name"),
        (lines([GOOD]), "line 1: this is not a JSON object"),
        (lines({f"column{i}": 1 for i in range(51)}), "51 columns, more than 50"),
        (lines({"text": "a"}), "line 1: there is no question"),
        (lines({"question": "a"}), "line 1: there is no answer"),
        (lines({"question": "a", "answer": None}), "there is no answer"),
        (lines({"question": "a", "answer": " "}), "there is no answer"),
        (lines({"question": " ", "answer": 1}), "the question is empty"),
        (lines({"question": {"a": 1}, "answer": 1}), "the question is not a text"),
        (lines({"question": "a", "answer": [[1]]}), "lists or objects within"),
        (lines({"question": "a", "prompt": "b", "answer": 1}), "both a question and a prompt"),
        (lines({"messages": [{"role": "tool", "content": "a"}], "answer": 1}), "unknown role"),
        (lines({"messages": [{"role": "system", "content": "a"}], "answer": 1}), "no message is the user's"),
        (lines({"messages": [{"role": "user"}], "answer": 1}), "no content that is a text"),
        (lines({"messages": ["a"], "answer": 1}), "no role that is a text"),
        (lines({"messages": "a", "answer": 1}), "the messages are not JSON"),
        (lines({"question": "x" * 16_001, "answer": 1}), "16,001 characters, more than 16,000"),
        (lines({"question": "a", "answer": "x" * 1001}), "the answer has 1,001 characters"),
        (lines({"question": "a", "answer": "see <answer>"}), "<answer> or </answer>"),
        (lines(GOOD, {"question": "a\u202eb", "answer": 1}), r"line 2: .*U\+202E \(RIGHT-TO-LEFT OVERRIDE\)"),
        (lines({"question": "a", "answer": "1\u200b2"}), r"answer contains U\+200B"),
        (b'{"question": "a\\u0000", "answer": 1}', r"U\+0000"),
        (b'{"question": "a\\ud800", "answer": 1}', r"U\+D800"),
        (lines({"question": "a\x1b[31m", "answer": 1}), r"U\+001B"),
        (lines({"question": "a\u3164", "answer": 1}), r"question contains U\+3164 \(HANGUL FILLER\), which nobody sees"),
        (lines({"question": "\u200d", "answer": 1}), "the question has no visible character"),
        (lines({"question": "\u00e9?", "answer": 1}, {"question": "e\u0301?", "answer": 2}), "line 2: the question of line 1"),
        (lines(GOOD, {"question": "b", "answer": 1}, {"question": "a", "answer": 2}), "line 3: the question of line 1"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_with_its_line_and_a_reason(content, says):
    with pytest.raises(QuestionFileError, match=says) as refused:
        read_questions("own.jsonl", content)
    assert refused.value.title.startswith("own.jsonl")
    assert refused.value.advice
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"text,answer\na,1\n", "line 1: no column is named question"),
        (b"question,text\na,1\n", "line 1: no column is named answer"),
        (b"question,answer,Answer\na,1,2\n", "two columns have the same name"),
        (b"question,answer\na,1\nb,2,3\n", "line 3: it has 3 cells"),
        (b'question,answer\n"a,1\nb,2\n', "line 2: this is not a row of CSV"),
        (b"question,answer\na\n", "line 2: there is no answer"),
        (b"question,answer," + b"x," * 49 + b"\n", "52 columns, more than 50"),
        (b"question,answer\n" + b"a" * 140_000 + b",1\n", "line 2: this is not a row of CSV"),
        (b"question,answer\na,one\nb,2\n", "line 2: the answer .one. is not a number"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_line_and_a_reason(content, says):
    with pytest.raises(QuestionFileError, match=says):
        read_questions("own.csv", content, grader="number")


def test_too_many_questions_are_refused(monkeypatch):
    monkeypatch.setattr(reader, "MOST_QUESTIONS", 3)
    monkeypatch.setattr(reader, "MOST_RECORDS", 6)
    with pytest.raises(QuestionFileError, match="4 questions, more than 3"):
        read_questions("a.jsonl", lines(*({"question": str(i), "answer": 1} for i in range(4))))
    with pytest.raises(QuestionFileError, match="line 7: there are more than 6 questions"):
        read_questions("a.jsonl", lines(*[GOOD] * 7))


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a"])
def test_any_bytes_are_read_or_refused(name, content):
    for content_after in (content, b"question,answer\n" + content, b'{"question":"a","answer":' + content + b"}"):
        try:
            table = read_questions(name, content_after)
        except QuestionFileError:
            continue
        assert table.rows
