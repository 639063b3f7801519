"""`waggle settings`: every setting with its type, range, default, current value and meaning."""

import argparse

from waggle.cli.preferences.current import current_settings
from waggle.cli.preferences.types import SettingType, setting_types, value_text
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths, settings
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("section", nargs="?", type=text, default="", metavar="SECTION", help="only this section, such as swarm")


def run(arguments: argparse.Namespace) -> int:
    """Print the reference. Raises SettingsError for an unknown section."""
    now, every = current_settings(paths.home_in(arguments.home)), list(setting_types())
    rows = [setting for setting in every if setting.key.startswith(f"{arguments.section}." if arguments.section else "")]
    if not rows:
        sections = dict.fromkeys(setting.key.partition(".")[0] for setting in every)
        raise SettingsError(f"There is no section {arguments.section}.", f"There are {', '.join(sections)}.")
    if arguments.json:
        return say_json([_facts(setting, now) for setting in rows])
    return say("\n\n".join(_described(setting, now) for setting in rows))


def _described(setting: SettingType, now: Settings) -> str:
    value = settings.value_of(now, setting.key)
    default = "the default" if value == setting.default else f"default {value_text(setting.default)}"
    when = "at once" if setting.at_once else "at a new start"
    head = f"{setting.key} = {value_text(value)} ({default})"
    return f"{head}\n  {setting.meaning}\n  It is {setting.values}. A change applies {when}."


def _facts(setting: SettingType, now: Settings) -> dict[str, object]:
    return {
        "name": setting.key, "type": setting.values, "default": setting.default, "value": settings.value_of(now, setting.key),
        "at_once": setting.at_once, "meaning": setting.meaning,
    }  # fmt: skip
