"""Chooses a model to train: the running engine checks and downloads it; else the next engine does."""

import time
from collections.abc import Callable

from waggle.cli.shared.engine import ask, engine_runs, status
from waggle.core import paths, settings
from waggle.core.errors import ModelError
from waggle.core.settings import ModelSettings
from waggle.engine.runtime import model_source
from waggle.engine.services.swarms.better_swarm import better_swarm_for_choice
from waggle.engine.system.opening_note import OpeningNote
from waggle.protocol import commands
from waggle.protocol.events_models import ModelChoice
from waggle.protocol.state import State
from waggle.protocol.text.swarm_suggestion import command_line

POLL_SECONDS = 1.0


def choose(home: paths.Home, model: ModelSettings, report: Callable[[str], object]) -> None:
    """Choose a model; wait until a running engine has checked it, and report its progress. Raises EngineError and ModelError."""
    if not engine_runs(home):
        _require_possible(model)
        OpeningNote(home).forget_failure()
        settings.change(home.settings, {"model.name": model.name or None, "model.folder": model.folder or None})
        report(f"The next engine trains {model.name or model.folder or 'the starter'}.")
    else:
        _choose_in_engine(home, model, report)
    chosen = settings.read(home.settings)
    better = better_swarm_for_choice(home, chosen, model) if chosen.window.suggest_swarm else None
    if better is not None:
        report(command_line(better))


def _choose_in_engine(home: paths.Home, model: ModelSettings, report: Callable[[str], object]) -> None:
    ask(home, commands.ChooseModel(id=commands.new_id(), name=model.name, folder=model.folder))
    reported = ""
    while (choice := _under_way(status(home), model)) is not None:
        if choice.stage == "failed":
            raise ModelError(choice.title, choice.advice)
        if (words := _progress(choice)) != reported:
            reported = words
            report(words)
        time.sleep(POLL_SECONDS)
    now = settings.read(home.settings).model
    if (now.name, now.folder) != (model.name, model.folder):
        raise ModelError("The choice was cancelled, or another one took its place.", "What has arrived is kept.")
    report("Chosen. The engine starts again with it.")


def _require_possible(model: ModelSettings) -> None:
    """Raise ModelError if a folder has no model, or a name cannot be one."""
    if model.name:
        model_source.is_here(model.name)
    else:
        model_source.require_here(model)


def _under_way(state: State, model: ModelSettings) -> ModelChoice | None:
    choice = state.choice
    return choice if choice is not None and (choice.name, choice.folder) == (model.name, model.folder) else None


def _progress(choice: ModelChoice) -> str:
    if choice.stage == "checking":
        return "Checking it."
    if choice.stage == "converting":
        return f"Converting: {100 * choice.done // max(1, choice.total)}%"
    return f"Downloading: {100 * choice.done // choice.total}%" if choice.total else "Asking Hugging Face."
