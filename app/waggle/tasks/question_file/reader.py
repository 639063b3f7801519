"""Reads a person's own file of questions: JSON lines or CSV. What is wrong with it is named by file, line and reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from waggle.core.errors import QuestionFileError
from waggle.core.message import Figure, Message
from waggle.tasks.graders import grader_names, graders
from waggle.tasks.graders.interface import Grader
from waggle.tasks.question_file import records, rules
from waggle.tasks.question_file.columns import RowFault, row_of
from waggle.tasks.question_file.description import LARGEST_TOLERANCE
from waggle.tasks.question_file.guess import guess
from waggle.tasks.question_file.rules import MOST_QUESTIONS, Row

LARGEST_FILE = 32 << 20  # bytes
LONGEST_LINE = 1 << 20  # bytes
TOLERANT = "number"  # the grader that uses a tolerance
MOST_RECORDS = 4 * MOST_QUESTIONS  # with duplicates
OTHER_FORMATS = {  # how files begin that people may choose by mistake
    b"PK": (Message("a spreadsheet or an archive"), Message("Save the table as CSV (UTF-8).")),
    b"\x1f\x8b": (Message("compressed"), Message("Unpack it first.")),
    b"\x28\xb5\x2f\xfd": (Message("compressed"), Message("Unpack it first.")),
    b"PAR1": (Message("a Parquet file"), Message("Export it as JSON lines or CSV.")),
    b"%PDF": (Message("a PDF"), Message("Write the questions as CSV or JSON lines.")),
    b"\xff\xfe": (Message("saved as UTF-16"), Message("Save it as UTF-8.")),
    b"\xfe\xff": (Message("saved as UTF-16"), Message("Save it as UTF-8.")),
}


@dataclass(frozen=True, kw_only=True)
class ReadRow:
    """A question with its true answer, and the line on which it begins."""

    line: int
    row: Row


@dataclass(frozen=True, kw_only=True)
class QuestionTable:
    """A file's different questions, in its order, and how they are graded. `duplicates` are left out."""

    name: str
    rows: tuple[ReadRow, ...]
    duplicates: int
    grader: str
    tolerance: float = 0.0


def read_questions(name: str, content: bytes, *, grader: str = "", tolerance: float = 0.0) -> QuestionTable:
    """Read a file, whose name is for messages and tells CSV from JSON lines. An empty `grader` is guessed from the answers.

    Raises QuestionFileError.
    """
    if grader and grader not in grader_names():
        raise QuestionFileError(
            Message("There is no grader %1.", grader), Message("Choose one of: %1.", ", ".join(grader_names()))
        )
    if not 0.0 <= tolerance <= LARGEST_TOLERANCE:  # NaN is not, either
        raise QuestionFileError("The tolerance is not a number from 0 to a billion.", "Use 0 for exact numbers.")
    text = _decode(name, content)
    read = list(_rows(name, text))
    chosen = grader or guess([each.row.answer for each in read])
    if tolerance and not graders()[chosen].uses_tolerance:
        raise _unused_tolerance(name, read, chosen)
    rows = _different(name, read, graders()[chosen])
    return QuestionTable(
        name=name,
        rows=tuple(rows),
        duplicates=len(read) - len(rows),
        grader=chosen,
        tolerance=float(tolerance),
    )


def _decode(name: str, content: bytes) -> str:
    """The text of a file, with one kind of line break."""
    if len(content) > LARGEST_FILE:
        raise QuestionFileError(
            Message("%1 is larger than %2 MiB.", name, LARGEST_FILE >> 20), "Leave some questions or columns out."
        )
    for beginning, (kind, advice) in OTHER_FORMATS.items():
        if content.startswith(beginning):
            raise QuestionFileError(Message("%1 is %2.", name, kind), advice)
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (nul := content.find(b"\0")) >= 0:
        reason, advice = Message("it contains the byte 0"), Message("Save the file as text in UTF-8.")
        raise _error(name, content.count(b"\n", 0, nul) + 1, reason, advice)
    for line, source in enumerate(content.split(b"\n"), start=1):
        if len(source) > LONGEST_LINE:
            raise _error(
                name, line, Message("it is longer than %1 MiB", LONGEST_LINE >> 20), Message("Shorten it, or leave it out.")
            )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _error(name, line, Message("this is not text in UTF-8"), Message("Save the file as UTF-8.")) from error


def _rows(name: str, text: str) -> Iterator[ReadRow]:
    is_json = not name.casefold().endswith((".csv", ".tsv")) and (
        name.casefold().endswith((".jsonl", ".ndjson", ".json")) or text.lstrip()[:1] in ("{", "[")
    )
    line, count = 0, 0
    try:
        for line, record in records.json_lines(text) if is_json else records.table(text):
            count += 1
            if count > MOST_RECORDS:
                raise RowFault(Message("there are more than %1 questions", Figure(MOST_RECORDS)), "Leave some out.")
            row = row_of(record)
            if reason := rules.text_fault(row):
                raise RowFault(reason, "Change it, or delete the question.")
            yield ReadRow(line=line, row=row)
    except records.LineFault as error:
        raise _error(name, error.line, error.reason, error.advice) from error
    except RowFault as error:
        raise _error(name, line, error.reason, error.advice) from error
    if not count:
        raise QuestionFileError(Message("%1 has no questions.", name), "Write one on each line, with its answer.")


def _different(name: str, rows: Sequence[ReadRow], grader: Grader) -> list[ReadRow]:
    """The first row with each question. Raises QuestionFileError for a row that cannot be graded, or for two true answers."""
    first: dict[str, ReadRow] = {}
    for each in rows:
        if reason := rules.fault(each.row, grader):
            advice = Message("Correct it, delete the question, or choose another way to grade.")
            raise _error(name, each.line, reason, advice)
        earlier = first.setdefault(rules.identity(each.row.question), each)
        if grader.score(each.row.answer, earlier.row.answer, 0.0) < 1.0:
            reason = Message("the question of line %1 has another answer here", earlier.line)
            raise _error(name, each.line, reason, Message("Delete one of the two, or make the questions different."))
    if len(first) > MOST_QUESTIONS:
        raise QuestionFileError(
            Message("%1 has %2 questions, more than %3.", name, Figure(len(first)), Figure(MOST_QUESTIONS)), "Leave some out."
        )
    return list(first.values())


def _unused_tolerance(name: str, rows: Sequence[ReadRow], grader: str) -> QuestionFileError:
    """The refusal of a tolerance, with the first answer that is no number."""
    for each in rows:
        if reason := graders()[TOLERANT].check(each.row.answer):
            advice = Message(
                "Only numbers have a tolerance: correct the answer, delete the question, or leave the tolerance out."
            )
            return _error(name, each.line, rules.ungradable(each.row.answer, reason), advice)
    return QuestionFileError(
        Message("%1 has a tolerance, but the grader %2 uses none.", name, grader),
        "Leave the tolerance out, or choose the grader number.",
    )


def _error(name: str, line: int, reason: Message, advice: Message) -> QuestionFileError:
    return QuestionFileError(Message("%1, line %2: %3.", name, Figure(line), reason), advice)
