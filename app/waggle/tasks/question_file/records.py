"""Splits a file of JSON lines or a table (CSV) into records, with the line on which each begins."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from waggle.core.message import Message
from waggle.tasks.answer_text import json_value
from waggle.tasks.question_file.columns import ANSWER_COLUMN, MOST_COLUMNS, QUESTION_COLUMNS, RowFault

Record = tuple[int, Mapping[str, Any]]  # line, and the values by the name of their column

SEPARATORS = ",;\t"  # of columns; the second is what spreadsheets write in many countries
NAMED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[ ,;\t]*(?:\n|\Z)', re.IGNORECASE)  # the first line, for Excel


class LineFault(RowFault):
    """A fault of a record that cannot be read at all, with its line."""

    def __init__(self, line: int, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.line = line


def json_lines(text: str) -> Iterator[Record]:
    """The objects of JSON lines. Raises LineFault."""
    for line, source in enumerate(text.split("\n"), start=1):
        if not source.strip():
            continue
        try:
            value = json_value(source)
        except json.JSONDecodeError as error:
            raise LineFault(line, Message("this is not JSON: %1", error.msg), _ONE_A_LINE) from error
        except ValueError as error:
            raise LineFault(line, Message("this cannot be used: %1", error), _ONE_A_LINE) from error
        if not isinstance(value, dict):
            raise LineFault(line, "this is not a JSON object", _ONE_A_LINE)
        yield line, _named(line, list(value), list(value.values()))


_ONE_A_LINE = Message('Write one object on each line, such as {"question": "...", "answer": "..."}.')


def table(text: str) -> Iterator[Record]:
    """The rows of a CSV file, whose first line names the columns; a line `sep=;` before it is for Excel. Raises LineFault."""
    named = NAMED_SEPARATOR.match(text)
    if named:
        text = "\n" + text[named.end() :]  # an empty line in its place: the others keep their numbers
    header = text.lstrip("\n").split("\n", 1)[0]
    separator = named[1] if named else max(SEPARATORS, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] | None = None
    begin = 1
    try:
        for cells in reader:
            line, begin = begin, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = _header(line, cells)
                continue
            if len(cells) > len(names):
                advice = Message('Put a text that contains "%1" in double quotes.', separator)
                raise LineFault(line, Message("it has %1 cells, and the first line %2", len(cells), len(names)), advice)
            yield line, dict(zip(names, cells, strict=False))
    except csv.Error as error:
        raise LineFault(
            begin, Message("this is not a row of CSV: %1", error), 'Close every double quote; write one within a text as "".'
        ) from error


def _header(line: int, cells: list[str]) -> list[str]:
    names = list(_named(line, cells, cells))
    if not set(names) & set(QUESTION_COLUMNS):
        raise LineFault(line, "no column is named question or prompt", "Name the columns on the first line: question,answer.")
    if ANSWER_COLUMN not in names and "messages" not in names:
        raise LineFault(line, "no column is named answer", "Name the columns on the first line: question,answer.")
    return names


def _named(line: int, names: list[str], values: list[Any]) -> dict[str, Any]:
    if len(names) > MOST_COLUMNS:
        raise LineFault(line, Message("it has %1 columns, more than %2", len(names), MOST_COLUMNS), "Leave the others out.")
    named = dict(zip((name.strip().casefold() for name in names), values, strict=True))
    if len(named) != len(names):
        raise LineFault(line, "two columns have the same name", "Rename one of them, or leave it out.")
    return named
