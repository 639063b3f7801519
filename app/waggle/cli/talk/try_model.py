"""`waggle try`: the model of now, its earlier snapshots and you answer the same question, on which no model here trained."""

import argparse
import secrets
import sys

from waggle.cli.shared.engine import ask, status
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import plain
from waggle.protocol import commands
from waggle.protocol.events import ShownCompletion, SpecialtyInfo
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed

ANSWER_SECONDS = 1800.0  # up to eight snapshots of a large model on the CPU
NUMBERS = 1 << 20  # higher ones repeat earlier questions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("specialty", nargs="?", type=text, default="", help="one of the swarm's; without it, they are listed")
    parser.add_argument("--number", type=int, metavar="N", help="the same number poses the same question (default: a new one)")
    parser.add_argument("--mine", type=text, metavar="ANSWER", help="your own answer, which is judged like the others")
    parser.add_argument(
        "--share", action="store_true", help="share your answer, marked as human; only if swarm.my_answers allows it"
    )


def run(arguments: argparse.Namespace) -> int:
    """Pose a question, and print all answers. Raises EngineError if no engine runs, and for what cannot be asked."""
    home = paths.home_in(arguments.home)
    state = status(home)
    if state.ready is None:
        raise EngineError("Waggle is still starting.", "Try again in a moment.")
    specialties = state.ready.specialties
    if not arguments.specialty:
        return say_json(specialties) if arguments.json else say(*(f"{each.dataset}: {each.title}" for each in specialties))
    if arguments.share and (state.settings is None or state.settings.swarm.my_answers != "yes"):
        raise EngineError("Answers of yours are not shared.", "`waggle set swarm.my_answers=yes` allows it.")
    number = secrets.randbelow(NUMBERS) if arguments.number is None else arguments.number
    if not 0 <= number < 1 << 31:
        raise EngineError(f"There is no question {number}.", "Write a number from 0 on.")
    dataset = _dataset_of(arguments.specialty, specialties)
    pose = commands.PoseQuestion(id=commands.new_id(), specialty=dataset, number=number, to_share=arguments.share)
    posed = next(event for event in ask(home, pose, ANSWER_SECONDS) if isinstance(event, QuestionPosed))
    if not arguments.json:
        say(f"Question {number}, {posed.title}:", *_indented(posed.question), "")
    answers = ask(
        home,
        commands.AskModel(
            id=commands.new_id(), specialty=dataset, number=number, mine=_own_answer(arguments)[:2000], epoch=posed.epoch
        ),
        ANSWER_SECONDS,
    )
    answered = next(event for event in answers if isinstance(event, QuestionAnswered))
    if arguments.json:
        return say_json({"question": posed.question, "specialty": posed.title, "number": number, "answers": answered.answers,
                         "mine": answered.mine, "shared": answered.shared, "truth": answered.truth})  # fmt: skip
    return say(*_lines(answered))


def _own_answer(arguments: argparse.Namespace) -> str:
    """The person's answer; at a terminal it may be typed."""
    if arguments.mine is not None or arguments.json or not sys.stdin.isatty():
        return arguments.mine or ""
    sys.stderr.write("Your answer (none: only the model answers): ")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _dataset_of(words: str, specialties: tuple[SpecialtyInfo, ...]) -> str:
    """The specialty of this dataset or title. Raises EngineError."""
    for each in specialties:
        if words in (each.dataset, each.title):
            return each.dataset
    raise EngineError("This swarm does not ask such questions.", f"There are {', '.join(each.dataset for each in specialties)}.")


def _lines(answered: QuestionAnswered) -> list[str]:
    lines: list[str] = []
    for answer in answered.answers:
        lines += [f"After {answer.rounds} rounds{_judged(answer.completion)}:", *_indented(answer.completion.text), ""]
    if answered.mine is not None:
        lines += [f"You{_judged(answered.mine)}{', shared' if answered.shared else ''}:", *_indented(answered.mine.text), ""]
    if answered.truth:
        lines += ["Right is:", *_indented(answered.truth)]
    return [*lines, *filter(None, [answered.not_now])]


def _judged(completion: ShownCompletion) -> str:
    return f" ({completion.reward:g}{f', {completion.reason}' if completion.reason else ''})" if completion.judged else ""


def _indented(words: str) -> list[str]:
    """Lines of a stranger or a model, without what a terminal would obey."""
    return [f"  {plain(line)}" for line in words.splitlines()] or ["  (nothing)"]
