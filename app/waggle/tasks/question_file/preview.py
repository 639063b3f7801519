"""What a person sees of a file before creating a swarm from it, and the packed file that the swarm gets."""

from dataclasses import dataclass

from waggle.core.errors import QuestionFileError
from waggle.core.message import NOTHING, Figure, Message
from waggle.tasks.graders import graders
from waggle.tasks.question_file import packed, rules
from waggle.tasks.question_file.description import MOST_SAMPLES, SAMPLE_CHARACTERS, QuestionFile
from waggle.tasks.question_file.guess import nearly_fitting, possible
from waggle.tasks.question_file.reader import QuestionTable
from waggle.tasks.question_file.rules import FEWEST_TRAINABLE, Row

EXAMPLES = 5
KINDS = {
    "number": Message("numbers"),
    "fields": Message("JSON objects"),
    "list": Message("lists"),
}  # of answers, by the grader that fits them


@dataclass(frozen=True, kw_only=True)
class Preview:
    """`longest_question` and `longest_answer` count characters. `refusal` says why no swarm can be made of it, if so.

    `hint` names an answer that looks like a slip, in a sentence; empty if none does.
    """

    questions: int
    reserved: int
    duplicates: int
    longest_question: int
    longest_answer: int
    examples: tuple[Row, ...]
    grader: str
    grader_title: str
    possible_graders: tuple[str, ...]
    tolerance: float
    refusal: Message
    hint: Message


@dataclass(frozen=True, kw_only=True)
class PackedFile:
    """The pieces of a file, and what a charter says of it."""

    pieces: tuple[bytes, ...]
    file: QuestionFile


def preview_of(table: QuestionTable) -> Preview:
    rows = [each.row for each in table.rows]
    reserved = sum(rules.split(row.question) != "train" for row in rows)
    return Preview(
        questions=len(rows),
        reserved=reserved,
        duplicates=table.duplicates,
        longest_question=max(len(row.question) for row in rows),
        longest_answer=max(len(row.answer) for row in rows),
        examples=tuple(rows[:EXAMPLES]),
        grader=table.grader,
        grader_title=graders()[table.grader].title,
        possible_graders=possible([row.answer for row in rows]),
        tolerance=table.tolerance,
        refusal=_refusal(len(rows), len(rows) - reserved),
        hint=_hint(table),
    )


def _hint(table: QuestionTable) -> Message:
    """The first answer that keeps a file from another grader, which fits nearly all answers."""
    grader, misfits = nearly_fitting([each.row.answer for each in table.rows])
    if not grader or grader == table.grader:
        return NOTHING
    fitting, first = len(table.rows) - len(misfits), table.rows[misfits[0]]
    answer = " ".join(first.row.answer[:40].split())
    return Message(
        '%1 of %2 answers are %3; line %4 is not: "%5".',
        Figure(fitting),
        Figure(len(table.rows)),
        KINDS[grader],
        Figure(first.line),
        answer,
    )


def _refusal(questions: int, trainable: int) -> Message:
    if trainable >= FEWEST_TRAINABLE:
        return NOTHING
    return Message(
        "A swarm needs at least %1 different questions beside the tenth that is reserved for the exam. "
        "This file has %2, of which %3 are not reserved.",
        FEWEST_TRAINABLE,
        questions,
        trainable,
    )


def packed_file(table: QuestionTable) -> PackedFile:
    """The file as it travels. Raises QuestionFileError if it has too few questions, or too much text."""
    rows = sorted((each.row for each in table.rows), key=rules.place)
    trainable = [row for row in rows if rules.split(row.question) == "train"]
    if reason := _refusal(len(rows), len(trainable)):
        raise QuestionFileError(reason, "Add some questions.")
    pieces = packed.pack(rows)
    file = QuestionFile(
        pieces=tuple(map(packed.piece_hash, pieces)),
        packed_bytes=sum(map(len, pieces)),
        questions=len(rows),
        grader=table.grader,
        tolerance=table.tolerance,
        samples=tuple(row.question[:SAMPLE_CHARACTERS] for row in trainable[:MOST_SAMPLES]),
    )
    return PackedFile(pieces=pieces, file=file)
