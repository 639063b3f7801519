"""`waggle get`: the current values of settings."""

import argparse

from waggle.cli.preferences.current import current_settings
from waggle.cli.preferences.types import setting_type, value_text
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths, settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("keys", nargs="+", type=text, metavar="SECTION.NAME", help="such as computer.cpu_percent")


def run(arguments: argparse.Namespace) -> int:
    """Print the value of one setting, or a line for each of several. Raises SettingsError for an unknown one."""
    keys = [setting_type(key).key for key in arguments.keys]
    now = current_settings(paths.home_in(arguments.home))
    values = {key: settings.value_of(now, key) for key in keys}
    if arguments.json:
        return say_json(values)
    if len(values) == 1:
        return say(value_text(values[keys[0]]))
    return say(*(f"{key}={value_text(value)}" for key, value in values.items()))
