"""Events about models: those on this computer, those of the hub, the choice of another one, and an export."""

from typing import Literal

import msgspec

from waggle.core.message import NOTHING, Message, unpacked_message
from waggle.protocol.events import Count, Event, SwarmSuggestion

Kind = Literal["starter", "hub", "folder"]
Stage = Literal["downloading", "converting", "checking", "failed", "ended"]


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `bytes` are on this disk; `rounds` were trained here."""

    kind: Kind
    name: str = ""  # owner/name on the hub
    folder: str = ""
    bytes: Count = 0
    finished: bool = True  # False: a partial download, which continues when the model is chosen
    active: bool = False
    rounds: Count = 0
    fit: Message = NOTHING  # whether and how it fits this computer, in one sentence; empty: not known


class ModelOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the hub that can be chosen. Numbers and texts are of strangers, except in Waggle's own suggestions.

    `weights` counts numbers, `bytes` those to download; 0: not known. `gated`: it needs an account of the hub. `fits`: None if
    that is not known yet; `fit` says how, in one sentence. `recommended`: it suits this computer best of the suggestions.
    `good_at` is a sentence of Waggle's. `swarm`: the swarm to begin in with it, where the default one suits it less.
    """

    name: str  # owner/name
    title: str = ""
    licence: str = ""
    gated: bool = False
    weights: Count = 0
    bytes: Count = 0
    good_at: Message = NOTHING
    downloads: Count = 0
    quantised: bool = False
    fits: bool | None = None
    fit: Message = NOTHING
    recommended: bool = False
    swarm: SwarmSuggestion | None = None


def read_first_model(line: bytes) -> ModelOffer | None:
    """The model that `waggle model first` offers in a line of JSON; None for null, and for what is no such line."""
    try:
        return msgspec.json.decode(line, type=ModelOffer | None, dec_hook=unpacked_message)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a warning of a library
        return None


class ModelList(Event, frozen=True, kw_only=True, tag="ModelsTold"):
    models: tuple[ModelDetails, ...]
    cache: str  # folder of the models of the hub
    free: Count = 0  # bytes on that disk
    suggested: tuple[ModelOffer, ...] = ()


class HubResults(Event, frozen=True, kw_only=True, tag=True):
    """What a search of the hub for these words brought, the most downloaded first."""

    words: str
    models: tuple[ModelOffer, ...]


class ModelChoice(Event, frozen=True, kw_only=True, tag=True):
    """How far the choice of another model is. The present one is trained meanwhile, and goes on if the choice fails.

    `name` or `folder` is the chosen model. "ended": it is chosen now, or the person cancelled it. `title` and `advice` say why it
    failed.
    """

    name: str = ""
    folder: str = ""
    stage: Stage
    done: Count = 0  # bytes that have arrived, or that are converted
    total: Count = 0  # 0: not known yet
    seconds_left: float | None = None
    title: Message = NOTHING
    advice: Message = NOTHING


class ModelExported(Event, frozen=True, kw_only=True, tag=True):
    """A model was exported as a plain transformers folder, after so many rounds.

    `gguf` is the file in it for programs such as llama.cpp; without one, `no_gguf` says why, in one sentence.
    `not_now` says why these are the rounds of the newest saved state and not those of now; empty if they are those of now.
    """

    path: str
    rounds: Count
    gguf: str = ""
    no_gguf: Message = NOTHING
    not_now: Message = NOTHING


class ModelChanged(Event, frozen=True, kw_only=True, tag=True):
    """Where the trained model lay, other numbers or words lie. Nothing is trained until a person decides (DecideTraining).

    `fits`: the training of so many `rounds` can continue with these files: as the old model if its weights are saved whole, else
    added to the new ones.
    """

    model: str  # a name for people
    rounds: Count
    fits: bool
    is_whole: bool


class ModelUnavailable(Event, frozen=True, kw_only=True, tag=True):
    """The chosen model cannot be had now, for the `reason`. It is looked for again and again. Nothing is trained until it is
    there, or until a person chooses another one (ChooseModel).
    """

    name: str = ""
    folder: str = ""
    reason: Message
    advice: Message = NOTHING


ModelEvent = ModelList | HubResults | ModelChoice | ModelExported | ModelChanged | ModelUnavailable
