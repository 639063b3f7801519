"""Events about the models on this computer, their training, and an export."""

from typing import Literal

import msgspec

from waggle.protocol.events import Count, Event

Kind = Literal["starter", "hub", "folder"]


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `bytes` are on this disk; `rounds` were trained here."""

    kind: Kind
    name: str = ""  # owner/name on the hub
    folder: str = ""
    bytes: Count = 0
    finished: bool = True  # False: a partial download, which continues when the model is chosen
    active: bool = False
    rounds: Count = 0
    fit: str = ""  # whether and how it fits this computer, in one sentence; empty: not known


class ModelList(Event, frozen=True, kw_only=True, tag="ModelsTold"):
    models: tuple[ModelDetails, ...]
    cache: str  # folder of the models of the hub
    free: Count = 0  # bytes on that disk


class ModelExported(Event, frozen=True, kw_only=True, tag=True):
    """A model was exported as a plain transformers folder, after so many rounds.

    `gguf` is the file in it for programs such as llama.cpp; without one, `no_gguf` says why, in one sentence.
    `not_now` says why these are the rounds of the newest saved state and not those of now; empty if they are those of now.
    """

    path: str
    rounds: Count
    gguf: str = ""
    no_gguf: str = ""
    not_now: str = ""


class ModelChanged(Event, frozen=True, kw_only=True, tag=True):
    """Where the trained model lay, other numbers or words lie. Nothing is trained until a person decides (DecideTraining).

    `fits`: the training of so many `rounds` can continue with these files: as the old model if its weights are saved whole, else
    added to the new ones.
    """

    model: str  # a name for people
    rounds: Count
    fits: bool
    is_whole: bool


ModelEvent = ModelList | ModelExported | ModelChanged
