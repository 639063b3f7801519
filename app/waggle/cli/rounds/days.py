"""`waggle days`: what this computer contributed, day by day."""

import argparse
import asyncio

from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths, settings
from waggle.engine.runtime import model_source
from waggle.engine.services.identity import IdentityService
from waggle.protocol import commands
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.figures import daily_totals
from waggle.protocol.state import State, apply


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the days, oldest first, and their total. Raises EngineError."""
    home = paths.home_in(arguments.home)
    command = commands.QueryDays(id=commands.new_id())
    if engine_runs(home):
        answers = ask(home, command)
    else:
        service = IdentityService(model_source.home_of(home, settings.read(home.settings).model), lambda reason: None)
        answers = list(asyncio.run(service.obey(command)))
    answer = next(answer for answer in answers if isinstance(answer, DailyTotals))
    totals = daily_totals.totals(apply(status(home) if engine_runs(home) else State(), answer))
    if arguments.json:
        return say_json({"days": totals.days, "all": totals.all, "groups_pulled": totals.groups_pulled,
                         "used_by": totals.used_by, "met": totals.met})  # fmt: skip
    if not totals.all.rounds:
        return say("Nothing was contributed here yet.")
    peers = f"{totals.used_by} peer{'' if totals.used_by == 1 else 's'} fetched {totals.groups_pulled:,} groups from here."
    return say(*(_line(day.date, day) for day in totals.days), _line("all", totals.all), peers)


def _line(name: str, day: Day) -> str:
    return (
        f"{name:<10}  {day.rounds:>6,} rounds  {day.answers:>8,} answers, {day.right:,} right  "
        f"{day.learned:>6,} groups of peers  {day.seconds / 3600:>6.1f} h"
    )
