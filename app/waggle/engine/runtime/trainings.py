"""The trainings of a home: which folder has the training of a model, by who the model is and not by where it lies.

The first training of a home lies in its root, all others below `models/`. What each of them is of stands in its checkpoints, so
that there is no list that could be lost or wrong.
"""

from pathlib import Path

from waggle.core import paths
from waggle.models.storage import checkpoint, identity, ownership


def root_for(home: paths.Home, place: Path | None, model: Path) -> Path | None:
    """The folder of this model's training, None for the home itself: `place`, unless another one has it. Raises ModelError."""
    if ownership.is_training_of(_checkpoints(home, place), model):
        return place
    below = sorted(path for path in (home.root / "models").glob("*") if path.is_dir())
    others = [root for root in (None, *below) if root != place and ownership.is_training_of(_checkpoints(home, root), model)]
    return max(others, key=lambda root: checkpoint.rounds(_checkpoints(home, root)), default=place)


def root_anew(home: paths.Home, model: Path) -> Path:
    """The folder for a new training of this model, if another model's training has its place. Raises ModelError."""
    who = identity.read(model)
    return home.root / "models" / f"{who.numbers[:16]}-{who.words[:8]}"


def _checkpoints(home: paths.Home, root: Path | None) -> Path:
    return paths.ModelFiles(root or home.root).checkpoints
