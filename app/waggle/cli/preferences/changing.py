"""Changes settings: those of the running engine, which starts again where that is needed, or else those of the file."""

import sys
from collections.abc import Mapping

from waggle.cli.preferences.types import setting_type
from waggle.cli.shared.engine import ask, status
from waggle.cli.shared.waiting import wait_for_start
from waggle.core import paths, settings
from waggle.core.settings import Value
from waggle.protocol import commands
from waggle.protocol.events_swarms import StartedAgain


def change_settings(home: paths.Home, values: Mapping[str, Value], *, runs: bool, restart: bool = True) -> None:
    """Change all of these settings or none, and say on stderr when they apply; wait for a new start of the engine.

    `runs`: an engine runs for this home. Raises SettingsError, and EngineError if the engine went back to the settings of before.
    """
    if not runs:
        settings.change(home.settings, values)
        return report("No engine is running: the next one has these settings.")
    since = status(home).at
    answers = ask(home, commands.ChangeSettings(id=commands.new_id(), values=dict(values), restart=restart))
    if any(isinstance(answer, StartedAgain) for answer in answers):
        waiting = [key for key in values if not setting_type(key).at_once]
        report(f"A new start is needed for {', '.join(waiting)}: the engine starts again.")
        wait_for_start(home, since)
        return report("It has started with these settings.")
    waiting = [key for key in status(home).after_restart if key in values]
    return report(f"At the engine's next start: {', '.join(waiting)}." if waiting else "In force now.")


def report(words: str) -> None:
    """Say on stderr what happens."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
