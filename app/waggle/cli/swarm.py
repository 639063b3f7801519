"""`waggle swarm`: list, create and join swarms, preview your own file of questions for a swarm, and invite others.

A running engine obeys. Listing, creating and previewing work without one, too.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import get_args

from waggle.cli.ctl import ask, status
from waggle.cli.shared.joining import wait_for_swarm
from waggle.cli.shared.options import add_home, text
from waggle.core import paths, settings
from waggle.core.errors import EngineError, QuestionFileError
from waggle.core.hide_arguments import hide
from waggle.engine.control import server
from waggle.engine.services.own_questions import preview_file
from waggle.engine.services.swarm_recovery import recover
from waggle.engine.services.swarms import SwarmService, with_chosen_swarm
from waggle.protocol import commands
from waggle.protocol.events import Difficulty
from waggle.protocol.events_questions import ModelTrial, QuestionsPreviewed
from waggle.protocol.events_swarms import InviteRead, InviteWritten, KnownSwarms, SwarmCreated, SwarmDetails
from waggle.protocol.state import AnyEvent
from waggle.tasks.graders import grader_names
from waggle.tasks.shipped_swarms import shipped_swarm_called, shipped_swarms

SHIPPED = tuple(f'"{charter.name}"' for charter in shipped_swarms())
TRIAL_SECONDS = 1800.0  # five answers of a large model on the CPU
CREATE_SECONDS = 300.0  # the judging process starts, and unpacks the files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=argparse.ArgumentParser)
    create = verbs.add_parser("create", help="create a swarm; prints its charter's hash")
    create.add_argument("--name", required=True, type=text, help="others see it before they join")
    create.add_argument(
        "--questions", action="append", default=[], type=text, metavar="FILE",
        help="your own questions with answers, as JSON lines or CSV; may be repeated",
    )  # fmt: skip
    create.add_argument(
        "--specialty", action="append", default=[], type=text, metavar="DATASET:LEVEL,...",
        help="specialties that come with Waggle, such as bf:easy; may be repeated",
    )  # fmt: skip
    create.add_argument("--private", action="store_true", help="only those who have an invite may join")
    preview = verbs.add_parser("preview", help="say what a file of questions contains, and what is wrong with it")
    preview.add_argument("file", type=text, metavar="FILE")
    preview.add_argument(
        "--try-model", action="store_true", help="let the model of the running engine answer five of the questions"
    )
    for verb in (create, preview):
        every = " Counts for every --questions." if verb is create else ""
        verb.add_argument(
            "--grader", default="", type=text, metavar="NAME",
            help=f"how answers are graded: {', '.join(grader_names())} (default: guessed from the answers).{every}",
        )  # fmt: skip
        verb.add_argument(
            "--tolerance", default=0.0, type=float, metavar="NUMBER",
            help=f"with the grader number: how far off is still right.{every}",
        )  # fmt: skip
    join = verbs.add_parser("join", help="let the running engine join a swarm; waits until it has")
    join.add_argument(
        "swarm", type=text, metavar="SWARM",
        help=f"an invite, the hash of a swarm that you created, or a swarm that comes with Waggle: {' or '.join(SHIPPED)}",
    )  # fmt: skip
    listed = verbs.add_parser("list", help="list the swarms that you know, with their hashes")
    invite = verbs.add_parser("invite", help="print an invite to the swarm of the running engine")
    for verb in (create, preview, join, listed, invite):
        add_home(verb)


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says and print the result. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    match arguments.verb:
        case "create":
            return _create(home, arguments)
        case "preview":
            return _preview(home, arguments)
        case "join":
            hide(arguments.swarm)  # it may be an invite with a key, and joining takes minutes
            return _join(home, arguments.swarm)
        case "list":
            command = commands.ListSwarms(id=commands.new_id())
            answers = ask(home, command) if _engine_runs(home) else _obey_here(home, command)
            (known,) = (event for event in answers if isinstance(event, KnownSwarms))
            return _print("\n\n".join(map(_listed, known.swarms)))
        case _:
            answers = ask(home, commands.WriteInvite(id=commands.new_id()))
            (invite,) = (event for event in answers if isinstance(event, InviteWritten))
            sys.stderr.write(f"{invite.reach}\n")
            return _print(invite.link)


def specialties_of(choices: list[str]) -> tuple[tuple[str, Difficulty], ...]:
    """The specialties of `--specialty`. Raises EngineError."""
    levels: tuple[Difficulty, ...] = get_args(Difficulty)
    pairs: list[tuple[str, Difficulty]] = []
    for choice in filter(None, ",".join(choices).split(",")):
        dataset, _, name = choice.strip().partition(":")
        level = next((level for level in levels if level == name), None)
        if not dataset or level is None:
            raise EngineError(f"{choice[:80]!r} is no specialty.", f"Write DATASET:LEVEL; levels are {', '.join(levels)}.")
        pairs.append((dataset, level))
    return tuple(pairs)


def _create(home: paths.Home, arguments: argparse.Namespace) -> int:
    command = commands.CreateSwarm(
        id=commands.new_id(), name=arguments.name, specialties=specialties_of(arguments.specialty), private=arguments.private,
        files=tuple(
            commands.NewQuestionFile(path=_absolute(file), grader=arguments.grader, tolerance=arguments.tolerance)
            for file in arguments.questions
        ),
    )  # fmt: skip
    if not command.specialties and not command.files:
        raise EngineError("The swarm needs questions.", "Name a file with --questions, or specialties with --specialty.")
    answers = ask(home, command, CREATE_SECONDS) if _engine_runs(home) else _obey_here(home, command)
    (created,) = (event for event in answers if isinstance(event, SwarmCreated))
    sys.stderr.write(
        f"{_described(created.swarm)}\nJoin it with `waggle swarm join {created.swarm.charter}`, then invite others with "
        "`waggle swarm invite`.\n"
    )
    return _print(created.swarm.charter)


def _obey_here(home: paths.Home, command: commands.CreateSwarm | commands.ListSwarms) -> tuple[AnyEvent, ...]:
    """Create or list swarms while no engine runs."""
    lock = server.claim_home(home.prepare())
    try:
        if (warned := recover(home)) is not None:
            sys.stderr.write(f"{warned.title} {warned.advice}".strip() + "\n")
        chosen = with_chosen_swarm(home, settings.read(home.settings, ()))
        service = SwarmService(home, chosen, restart=lambda reason, back: None, change=lambda values: lambda: None)
        return asyncio.run(service.obey(command))
    finally:
        lock.release()


def _preview(home: paths.Home, arguments: argparse.Namespace) -> int:
    """Raises QuestionFileError if no swarm can be created from the file."""
    path = _absolute(arguments.file)
    if arguments.try_model:
        command = commands.PreviewQuestions(
            id=commands.new_id(), path=path, grader=arguments.grader, tolerance=arguments.tolerance
        )
        (previewed,) = (event for event in ask(home, command, TRIAL_SECONDS) if isinstance(event, QuestionsPreviewed))
    else:
        previewed, _ = preview_file(path, arguments.grader, arguments.tolerance)
    if previewed.questions:
        _print("\n".join(_lines(previewed)))
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


def _join(home: paths.Home, swarm: str) -> int:
    shipped = shipped_swarm_called(swarm)
    charter = swarm if shipped is None else shipped.digest.hex()
    if shipped is None and not (len(swarm) == 64 and set(swarm) <= set("0123456789abcdef")):
        answers = ask(home, commands.ReadInvite(id=commands.new_id(), link=swarm), CREATE_SECONDS)
        (read,) = (event for event in answers if isinstance(event, InviteRead))
        charter = read.swarm.charter
        _print(_described(read.swarm))
    before = status(home)
    answers = ask(home, commands.ChooseSwarm(id=commands.new_id(), charter=charter), CREATE_SECONDS)
    if any(isinstance(event, KnownSwarms) for event in answers):  # the engine does not restart
        return _print("The engine is in this swarm already.")
    return _print(f"The engine has joined {wait_for_swarm(home, charter, before.at)}.")


def _listed(swarm: SwarmDetails) -> str:
    """A swarm in a list: what it is, and the hash by which it is joined."""
    active = ["The engine is in it."] if swarm.active else []
    return "\n  ".join([_described(swarm), *active, swarm.charter])


def _described(swarm: SwarmDetails) -> str:
    """A swarm's name and specialties, on one line each, with the first question of each file."""
    lines = [f"{swarm.name}{' (private)' if swarm.private else ''}"]
    for specialty in swarm.specialties:
        if specialty.questions:
            lines.append(f"  {specialty.title}: {specialty.questions} own questions, {specialty.grader_title}")
            lines += [f"    {' '.join(sample.split())}" for sample in specialty.samples]
        else:
            lines.append(f"  {specialty.title}: {', '.join(specialty.levels)}")
    return "\n".join(lines)


def _engine_runs(home: paths.Home) -> bool:
    try:
        return server.is_running(home)
    except OSError as error:
        raise EngineError(f"The engine of {home.root} cannot be asked: {error.strerror or error}.") from error


def _absolute(file: str) -> str:
    """The path of a file for an engine, whose current folder is another."""
    return str(paths.expand_user(Path(file)).absolute())


def _print(words: str) -> int:
    sys.stdout.write(words + "\n")
    return 0
