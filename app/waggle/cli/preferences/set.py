"""`waggle set`: change settings. What needs a new start of the engine gets one."""

import argparse
from collections.abc import Sequence

from waggle.cli.models.choosing import choose
from waggle.cli.preferences.changing import change_settings, report
from waggle.cli.preferences.current import current_settings
from waggle.cli.preferences.types import setting_type, value_text
from waggle.cli.shared.engine import engine_runs, status
from waggle.cli.shared.model_argument import model_of
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import login_start, paths, settings
from waggle.core.errors import SettingsError
from waggle.core.settings import ModelSettings, Value

AT_LOGIN = "window.at_login"  # which the system has to be told, too
MODEL = ("model.name", "model.folder")  # the engine checks a model before it trains it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument(
        "assignments", nargs="+", type=text, metavar="SECTION.NAME=VALUE",
        help="no VALUE: the default. `waggle settings` lists all settings",
    )  # fmt: skip
    parser.add_argument("--no-restart", action="store_true", help="leave what needs a new start of the engine for its next start")


def run(arguments: argparse.Namespace) -> int:
    """Change all of these settings or none. Raises SettingsError, EngineError and ModelError."""
    home, values = paths.home_in(arguments.home), values_of(arguments.assignments)
    runs = engine_runs(home)
    model = {key: value for key, value in values.items() if key in MODEL}
    others = {key: value for key, value in values.items() if key not in MODEL}
    if model.get("model.name") and model.get("model.folder"):
        raise SettingsError("model.folder and model.name are both set.", "Remove the one that should not be used.")
    if others:
        change_settings(home, others, runs=runs, restart=not (arguments.no_restart or model))
    if AT_LOGIN in others and (trouble := login_start.choose(current_settings(home).window.at_login, home)):
        report(f"It starts at the next login: {trouble}")
    if model:
        chosen = next((model_of(str(value)) for value in model.values() if value), ModelSettings())
        choose(home, chosen, report=report)
    now = current_settings(home)
    if arguments.json:
        waiting = status(home).after_restart if runs else ()
        return say_json({"values": {key: settings.value_of(now, key) for key in values}, "after_restart": waiting})
    return say(*(f"{key} = {value_text(settings.value_of(now, key))}" for key in values))


def values_of(assignments: Sequence[str]) -> dict[str, Value]:
    """The values of `section.name=value` words, checked by type and range. Raises SettingsError."""
    values: dict[str, Value] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise SettingsError(f"{assignment} is not of the form section.name=value.", "For example: swarm.port=4001")
        values[key.strip()] = setting_type(key.strip()).parse(value.strip())
    return values
