"""Answers the question of an engine that met other numbers where the trained model lay: begin anew, or keep the old training."""

from waggle.cli.shared.engine import ask, engine_runs
from waggle.cli.shared.printing import say
from waggle.core import paths, settings
from waggle.core.settings import ModelSettings
from waggle.engine.control import server
from waggle.engine.services.models import training_choice
from waggle.protocol import commands
from waggle.protocol.commands import TrainingChoice


def decide(home: paths.Home, choice: TrainingChoice) -> int:
    """Begin anew with a changed model, or keep the old training. Raises EngineError if there is nothing to decide."""
    if engine_runs(home):
        ask(home, commands.DecideTraining(id=commands.new_id(), choice=choice))
        return say("The engine is restarting. `waggle status` shows its progress.")
    lock = server.claim_home(home.prepare())
    try:
        training_choice.note(home, _without_training_mode(settings.read(home.settings).model), choice)
    finally:
        lock.release()
    return say("The next engine begins anew." if choice == "anew" else "The next engine keeps the old training.")


def _without_training_mode(chosen: ModelSettings) -> ModelSettings:
    return ModelSettings(name=chosen.name, folder=chosen.folder)
