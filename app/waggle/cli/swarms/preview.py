"""`waggle swarm preview`: what a file of questions contains, and what is wrong with it."""

import argparse

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms.question_options import absolute, add_grading
from waggle.core import paths
from waggle.core.errors import EngineError, QuestionFileError
from waggle.engine.services.own_questions import preview_file
from waggle.protocol import commands
from waggle.protocol.events_questions import ModelTrial, QuestionsPreviewed

TRIAL_SECONDS = 1800.0  # five answers of a large model on the CPU


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("file", type=text, metavar="FILE")
    parser.add_argument(
        "--try-model", action="store_true", help="let the model of the running engine answer five of the questions"
    )
    add_grading(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is in the file. Raises QuestionFileError if no swarm can be created from it."""
    home = paths.home_in(arguments.home)
    path = absolute(arguments.file)
    if arguments.try_model:
        command = commands.PreviewQuestions(
            id=commands.new_id(), path=path, grader=arguments.grader, tolerance=arguments.tolerance
        )
        (previewed,) = (event for event in ask(home, command, TRIAL_SECONDS) if isinstance(event, QuestionsPreviewed))
    else:
        previewed, _ = preview_file(path, arguments.grader, arguments.tolerance)
    if arguments.json:
        say_json(previewed)
    elif previewed.questions:
        say(*_lines(previewed))
    if previewed.refusal:
        raise QuestionFileError(previewed.refusal)
    if arguments.try_model and previewed.trial is None:
        if previewed.trial_refusal:
            raise EngineError(previewed.trial_refusal)
        raise EngineError("The engine has not opened its model yet.", "Try again in a moment.")
    return 0


def _lines(previewed: QuestionsPreviewed) -> list[str]:
    graders = ", ".join(offer.name for offer in previewed.possible_graders)
    tolerance = f", tolerance {previewed.tolerance:g}" if previewed.tolerance else ""
    lines = [
        f"{previewed.questions} questions, of which {previewed.reserved} are reserved; {previewed.duplicates} came twice.",
        f"The longest question has {previewed.longest_question} characters, the longest answer {previewed.longest_answer}.",
        f"Graded as: {previewed.grader} ({previewed.grader_title}{tolerance}). Possible: {graders}.",
        *filter(None, [previewed.hint]),
    ]
    for example in previewed.examples:
        lines += ["", example.question, f"-> {example.answer}"]
    return [*lines, *(_trial_lines(previewed.trial) if previewed.trial else ())]


def _trial_lines(trial: ModelTrial) -> list[str]:
    too_long = [f"{trial.too_long} questions are longer than your model can read."] if trial.too_long else []
    return [
        "", *too_long,
        f"Your model earned {trial.mean_reward:.2f} on average with {trial.questions} questions. Its best answer:",
        trial.example.question, trial.completion.text, f"-> {trial.completion.reward:g}",
    ]  # fmt: skip
