"""Refuses questions that two files of one swarm have: each file would grade them in its own way, perhaps with another answer."""

import hashlib
from collections.abc import Iterable, Sequence

from waggle.core.errors import QuestionFileError
from waggle.core.message import Figure, Message
from waggle.tasks.question_file import rules
from waggle.tasks.question_file.packed import NEW_FILE
from waggle.tasks.question_file.reader import QuestionTable
from waggle.tasks.question_file.rules import Row

MOST_CHARACTERS = 60  # characters of a question, in messages


def refuse_repeated_questions(tables: Iterable[QuestionTable]) -> None:
    """Raise QuestionFileError if two files that a person chose have the same question, also with the same answer."""
    first: dict[bytes, tuple[str, int]] = {}
    for table in tables:
        for each in table.rows:
            identity = _identity(each.row)
            if identity in first:
                name, line = first[identity]
                raise QuestionFileError(
                    Message(
                        "%1, line %2: %3 has this question too, on line %4: %5.",
                        table.name,
                        Figure(each.line),
                        name,
                        Figure(line),
                        _beginning(each.row),
                    ),
                    "Delete it in one of the two files.",
                )
        first |= {_identity(each.row): (table.name, each.line) for each in table.rows}


def refuse_repeated_rows(files: Iterable[Sequence[Row]]) -> None:
    """Raise QuestionFileError if two unpacked files of a charter have the same question."""
    first: dict[bytes, int] = {}
    for number, rows in enumerate(files, start=1):
        for row in rows:
            if other := first.get(_identity(row)):
                raise QuestionFileError(
                    Message(
                        "The files %1 and %2 with the questions are refused: both have the question %3.",
                        other,
                        number,
                        _beginning(row),
                    ),
                    NEW_FILE,
                )
        first |= dict.fromkeys(map(_identity, rows), number)


def _identity(row: Row) -> bytes:
    """A hash, as the questions of four files together take much memory."""
    return hashlib.sha256(rules.identity(row.question).encode()).digest()


def _beginning(row: Row) -> str:
    question = rules.identity(row.question)
    return f'"{question[:MOST_CHARACTERS]}{"…" if len(question) > MOST_CHARACTERS else ""}"'
