"""What the engine tells about models: those that are on this computer, what was trained of them, and an export."""

from typing import Literal

import msgspec

from waggle.protocol.events import Count, Event

Kind = Literal["starter", "hub", "folder"]


class ModelShown(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `bytes` are on this disk; `rounds` were trained of it here and are kept."""

    kind: Kind
    name: str = ""  # owner/name on the hub
    folder: str = ""
    bytes: Count = 0
    finished: bool = True  # False: a download that goes on when it is chosen
    active: bool = False
    rounds: Count = 0
    fit: str = ""  # whether it fits this computer, in one sentence, and behind it how; empty: not known


class ModelsTold(Event, frozen=True, kw_only=True, tag=True):
    models: tuple[ModelShown, ...]
    cache: str  # where models of the hub lie
    free: Count = 0  # bytes on that disk


class ModelExported(Event, frozen=True, kw_only=True, tag=True):
    """A plain transformers folder, with what was learned until this round."""

    path: str
    rounds: Count


ModelEvent = ModelsTold | ModelExported
