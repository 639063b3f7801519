"""A person's own file of questions: reads it, says what is in it, and lets the own model try some questions.

A file is read in a worker thread. Only graders of Waggle touch its answers, and the verifier's child judges the model's.
"""

import asyncio
import dataclasses
import os
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import EngineError, QuestionFileError, WaggleError
from waggle.core.message import Figure, Message, in_turn
from waggle.core.system.os_faults import fault_of
from waggle.core.text.legible_name import legible
from waggle.core.text.unsound_text import UNSOUND
from waggle.engine.services.playground import PlaygroundService, shown_completion
from waggle.protocol import commands, events_questions
from waggle.protocol.events_questions import QuestionExample, QuestionsPreviewed
from waggle.tasks.charter import LONGEST_TITLE
from waggle.tasks.graders import graders
from waggle.tasks.new_charter import new_charter
from waggle.tasks.question_file import rules
from waggle.tasks.question_file.packed import joined, unpack
from waggle.tasks.question_file.preview import PackedFile, packed_file, preview_of
from waggle.tasks.question_file.reader import LARGEST_FILE, QuestionTable, read_questions
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier

LONGEST_NAME = 80  # characters of a file's name, in messages
LONGEST_TEXT = 1000  # characters of a question or an answer, in an example
TRIED_QUESTIONS = 5


def read_file(path: Path, grader: str = "", tolerance: float = 0.0) -> QuestionTable:
    """Read a file of questions; see `read_questions`. Raises QuestionFileError, also for what is no file."""
    name = UNSOUND.sub("?", path.name)[:LONGEST_NAME] or "The file"
    try:
        path = paths.expand_user(path)
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            raise QuestionFileError(Message("%1 is not a file.", name), "Choose a file of JSON lines or CSV.")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = fault_of(error).reason if isinstance(error, OSError) else "there is no such file"
        raise QuestionFileError(Message("%1 cannot be read: %2.", name, reason), "Check its name, and who owns it.") from error
    return read_questions(name, content, grader=grader, tolerance=tolerance)


def title_of(path: str) -> str:
    """A title for the questions of a file, from its name."""
    return legible(Path(os.path.basename(path)).stem.replace("_", " "))[:LONGEST_TITLE].rstrip() or "Questions"


def preview_file(path: str, grader: str = "", tolerance: float = 0.0) -> tuple[QuestionsPreviewed, PackedFile | None]:
    """What a file contains, and the file as it travels if a swarm can be created from it. Raises nothing about the file."""
    previewed = QuestionsPreviewed(path=path, title=title_of(path))
    try:
        table = read_file(Path(path), grader, tolerance)
        preview = preview_of(table)
    except QuestionFileError as error:
        return _refused(previewed, error), None
    offers = (events_questions.GraderOffer(name=name, title=graders()[name].title, uses_tolerance=graders()[name].uses_tolerance)
              for name in preview.possible_graders)  # fmt: skip
    previewed = replace(
        previewed, questions=preview.questions, duplicates=preview.duplicates, reserved=preview.reserved,
        longest_question=preview.longest_question, longest_answer=preview.longest_answer,
        examples=tuple(_example(row.question, row.answer) for row in preview.examples), grader=preview.grader,
        grader_title=preview.grader_title, possible_graders=tuple(offers), tolerance=preview.tolerance, hint=preview.hint,
    )  # fmt: skip
    try:
        return previewed, packed_file(table)
    except QuestionFileError as error:
        return _refused(previewed, error), None


@dataclass(frozen=True)
class OwnQuestionsService:
    """Obeys the command about a file of questions. `playground` returns None while no model is open."""

    playground: Callable[[], PlaygroundService | None] = lambda: None

    async def obey(self, command: commands.PreviewQuestions) -> QuestionsPreviewed:
        """Preview a file. What is wrong with it is part of the answer."""
        previewed, packed = await asyncio.to_thread(preview_file, command.path, command.grader, command.tolerance)
        previewed = replace(previewed, command_id=command.id)
        playground = self.playground()
        if packed is None or playground is None or not command.try_model:
            return previewed
        try:
            return replace(previewed, trial=await playground.in_thread(lambda: _trial(playground, packed)))
        except WaggleError as error:
            return replace(previewed, trial_refusal=in_turn(error.title, error.advice))


def _trial(playground: PlaygroundService, packed: PackedFile) -> events_questions.ModelTrial:
    """What the newest snapshot earns with some questions that are not reserved and that it can read. Raises WaggleError."""
    charter = new_charter("Preview", {}, files=[("Preview", packed.file)])
    dataset = packed.file.dataset
    with closing(Verifier(charter, files={dataset: packed.pieces})) as verifier:
        trying = dataclasses.replace(playground, node=dataclasses.replace(playground.node, charter=charter, verifier=verifier))
        rows = unpack(joined(packed.pieces, packed.file), packed.file)
        all_questions = [Question(dataset=dataset, seed=i, text=row.question) for i, row in enumerate(rows)]
        readable = trying.readable(all_questions)
        too_long = len(rows) - len(readable)
        questions = [question for question in readable if rules.split(question.text) == "train"][:TRIED_QUESTIONS]
        if not questions:
            raise EngineError(
                Message(
                    "Your model reads %1 tokens at a time, a question and its answer together; %2 of %3 questions are longer.",
                    Figure(trying.rules.context),
                    Figure(too_long),
                    Figure(len(rows)),
                ),
                "Shorten them, or choose another model.",
            )
        completions = trying.newest_answers(questions)
        verdicts = verifier.judge(list(zip(questions, completions, strict=True)))
        rewards = [verdict.reward for verdict in verdicts]
        best = max(range(len(rewards)), key=rewards.__getitem__)
        (answer,) = verifier.answers([questions[best].key])
    return events_questions.ModelTrial(
        questions=len(questions),
        too_long=too_long,
        mean_reward=round(sum(rewards) / len(rewards), 4),
        example=_example(questions[best].text, answer),
        completion=shown_completion(completions[best], verdicts[best]),
    )


def _example(question: str, answer: str) -> QuestionExample:
    return QuestionExample(question=question[:LONGEST_TEXT], answer=answer[:LONGEST_TEXT])


def _refused(previewed: QuestionsPreviewed, error: QuestionFileError) -> QuestionsPreviewed:
    return replace(previewed, refusal=in_turn(error.title, error.advice))
