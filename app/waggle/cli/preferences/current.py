"""The settings in force."""

from waggle.cli.shared.engine import engine_runs, status
from waggle.core import paths, settings
from waggle.core.settings import Settings


def current_settings(home: paths.Home) -> Settings:
    """The settings in force: those of the running engine, or else those of the file. Raises SettingsError, EngineError."""
    in_force = status(home).settings if engine_runs(home) else None
    return in_force if in_force is not None else settings.read(home.settings)
