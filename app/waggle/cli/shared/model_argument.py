"""A model as a person names it on the command line: as the window reads it, or a folder by a relative path."""

import os

from waggle.core import model_reference
from waggle.core.settings import ModelSettings


def model_of(words: str) -> ModelSettings:
    """The model that the words name, its folder by its whole path. Raises ModelError."""
    if os.path.isdir(os.path.expanduser(words)):
        return ModelSettings(folder=os.path.abspath(os.path.expanduser(words)))
    model = model_reference.parse(words)
    return ModelSettings(folder=os.path.abspath(os.path.expanduser(model.folder))) if model.folder else model
