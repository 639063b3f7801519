"""Reads a person's own file of questions: JSON lines or CSV. What is wrong with it is named by file, line and reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from waggle.core.errors import QuestionFileError
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
    b"PK": ("a spreadsheet or an archive", "Save the table as CSV (UTF-8)."),
    b"\x1f\x8b": ("compressed", "Unpack it first."),
    b"\x28\xb5\x2f\xfd": ("compressed", "Unpack it first."),
    b"PAR1": ("a Parquet file", "Export it as JSON lines or CSV."),
    b"%PDF": ("a PDF", "Write the questions as CSV or JSON lines."),
    b"\xff\xfe": ("saved as UTF-16", "Save it as UTF-8."),
    b"\xfe\xff": ("saved as UTF-16", "Save it as UTF-8."),
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
        raise QuestionFileError(f"There is no grader {grader}.", f"Choose one of: {', '.join(grader_names())}.")
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
        raise QuestionFileError(f"{name} is larger than {LARGEST_FILE >> 20} MiB.", "Leave some questions or columns out.")
    for beginning, (kind, advice) in OTHER_FORMATS.items():
        if content.startswith(beginning):
            raise QuestionFileError(f"{name} is {kind}.", advice)
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (nul := content.find(b"\0")) >= 0:
        raise _error(name, content.count(b"\n", 0, nul) + 1, "it contains the byte 0", "Save the file as text in UTF-8.")
    for line, source in enumerate(content.split(b"\n"), start=1):
        if len(source) > LONGEST_LINE:
            raise _error(name, line, f"it is longer than {LONGEST_LINE >> 20} MiB", "Shorten it, or leave it out.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _error(name, line, "this is not text in UTF-8", "Save the file as UTF-8.") from error


def _rows(name: str, text: str) -> Iterator[ReadRow]:
    is_json = not name.casefold().endswith((".csv", ".tsv")) and (
        name.casefold().endswith((".jsonl", ".ndjson", ".json")) or text.lstrip()[:1] in ("{", "[")
    )
    line, count = 0, 0
    try:
        for line, record in records.json_lines(text) if is_json else records.table(text):
            count += 1
            if count > MOST_RECORDS:
                raise RowFault(f"there are more than {MOST_RECORDS:,} questions", "Leave some out.")
            row = row_of(record)
            if reason := rules.text_fault(row):
                raise RowFault(reason, "Change it, or delete the question.")
            yield ReadRow(line=line, row=row)
    except records.LineFault as error:
        raise _error(name, error.line, error.reason, error.advice) from error
    except RowFault as error:
        raise _error(name, line, error.reason, error.advice) from error
    if not count:
        raise QuestionFileError(f"{name} has no questions.", "Write one on each line, with its answer.")


def _different(name: str, rows: Sequence[ReadRow], grader: Grader) -> list[ReadRow]:
    """The first row with each question. Raises QuestionFileError for a row that cannot be graded, or for two true answers."""
    first: dict[str, ReadRow] = {}
    for each in rows:
        if reason := rules.fault(each.row, grader):
            raise _error(name, each.line, reason, "Correct it, delete the question, or choose another way to grade.")
        earlier = first.setdefault(rules.identity(each.row.question), each)
        if grader.score(each.row.answer, earlier.row.answer, 0.0) < 1.0:
            reason = f"the question of line {earlier.line} has another answer here"
            raise _error(name, each.line, reason, "Delete one of the two, or make the questions different.")
    if len(first) > MOST_QUESTIONS:
        raise QuestionFileError(f"{name} has {len(first):,} questions, more than {MOST_QUESTIONS:,}.", "Leave some out.")
    return list(first.values())


def _unused_tolerance(name: str, rows: Sequence[ReadRow], grader: str) -> QuestionFileError:
    """The refusal of a tolerance, with the first answer that is no number."""
    for each in rows:
        if reason := graders()[TOLERANT].check(each.row.answer):
            advice = "Only numbers have a tolerance: correct the answer, delete the question, or leave the tolerance out."
            return _error(name, each.line, f'the answer "{each.row.answer[:40]}" {reason}', advice)
    return QuestionFileError(
        f"{name} has a tolerance, but the grader {grader} uses none.", "Leave the tolerance out, or choose the grader number."
    )


def _error(name: str, line: int, reason: str, advice: str) -> QuestionFileError:
    return QuestionFileError(f"{name}, line {line:,}: {reason}.", advice)
