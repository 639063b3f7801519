"""A person's answer when other numbers lie where the trained model lay: begin anew with them, or keep the old training."""

from pathlib import Path

from waggle.core import paths
from waggle.core.errors import EngineError, ModelError
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime import model_source, trainings
from waggle.models.storage import ownership
from waggle.protocol.commands import TrainingChoice


class NothingToDecideError(EngineError):
    """The chosen model is the one that was trained here."""


def note(home: paths.Home, chosen: ModelSettings, choice: TrainingChoice) -> Path:
    """Write the answer down for the next start; return the file, without which the question is open again.

    The old training stays where it is, with its figures. Raises EngineError if there is no question, or if the old training
    cannot continue with these files, and ModelError.
    """
    checkpoints = model_source.home_of(home, chosen).model.checkpoints
    model = model_source.folder_of(chosen, checkpoints)
    other = ownership.other_model(checkpoints, model)
    if other is None:
        raise NothingToDecideError("There is nothing to decide.", "The chosen model is the one that was trained here.")
    if choice == "keep" and not other.fits:
        raise EngineError("The old training cannot continue with these files.", "Start over, or choose another model.")
    try:
        anew = paths.ModelFiles(trainings.root_anew(home, model)).checkpoints
        return ownership.answer(checkpoints if choice == "keep" else anew, model)
    except OSError as error:
        raise ModelError(Message("The answer cannot be stored: %1.", fault_of(error).reason), fault_of(error).advice) from error
