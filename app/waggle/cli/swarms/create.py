"""`waggle create`: create a swarm from your own questions, or from specialties that come with Waggle."""

import argparse
import sys
from typing import get_args

from waggle.cli.shared.confirming import REFUSED, add_yes, is_confirmed
from waggle.cli.shared.engine import engine_runs
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.cli.swarms import entering
from waggle.cli.swarms.described import class_words, described
from waggle.cli.swarms.join import add_member_name
from waggle.cli.swarms.obeying import swarm_commands
from waggle.cli.swarms.question_options import absolute, add_grading
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.protocol import commands
from waggle.protocol.events import Difficulty
from waggle.protocol.events_swarms import SwarmCreated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("--name", required=True, type=text, help="others see it before they join")
    parser.add_argument(
        "--questions", action="append", default=[], type=text, metavar="FILE",
        help="your own questions with answers, as JSON lines or CSV; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--specialty", action="append", default=[], type=text, metavar="DATASET:LEVEL,...",
        help="specialties that come with Waggle, such as bf:easy; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--preset", choices=get_args(commands.Preset)[1:], default="",
        help="classroom: a private swarm for a class, with easy questions and a page for the projector, which is joined at once",
    )  # fmt: skip
    add_yes(parser)
    add_member_name(parser)
    parser.add_argument("--private", action="store_true", help="only those who have an invite may join")
    parser.add_argument("--meant-for", default="", type=text, metavar="WORDS", help="the models that it is meant for, in words")
    add_grading(parser, every=" Counts for every --questions.")


def run(arguments: argparse.Namespace) -> int:
    """Create the swarm, and print its charter's hash. A swarm of a preset is joined at once. Raises WaggleError."""
    home = paths.home_in(arguments.home)
    if arguments.preset:
        sys.stderr.write(f"{class_words()}\n")
        if not is_confirmed(f"Create {arguments.name}, and go there?", yes=arguments.yes):
            return REFUSED
    command = commands.CreateSwarm(
        id=commands.new_id(), name=arguments.name, specialties=specialties_of(arguments.specialty), private=arguments.private,
        model_hint=arguments.meant_for, preset=arguments.preset,
        files=tuple(
            commands.NewQuestionFile(path=absolute(file), grader=arguments.grader, tolerance=arguments.tolerance)
            for file in arguments.questions
        ),
    )  # fmt: skip
    if not command.specialties and not command.files and not command.preset:
        raise EngineError("The swarm needs questions.", "Name a file with --questions, or specialties with --specialty.")
    with swarm_commands(home) as obey:
        (created,) = (event for event in obey(command) if isinstance(event, SwarmCreated))
        since = entering.choose(home, obey, created.swarm.charter, arguments.member_name) if arguments.preset else None
    if arguments.preset:
        entering.wait(home, created.swarm.charter, since)
    if arguments.json:
        return say_json(created.swarm)
    if arguments.preset:
        runs = engine_runs(home)
        there = "This computer is in it." if runs else "This computer joins it at its next start."
        sys.stderr.write(
            f"{described(created.swarm)}\n{there} `waggle invite` prints the invite, and the addresses of its pages.\n"
        )
        return say(created.swarm.charter)
    sys.stderr.write(
        f"{described(created.swarm)}\nJoin it with `waggle join {created.swarm.charter}`, then invite others with "
        "`waggle invite`.\n"
    )
    return say(created.swarm.charter)


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
