"""What the engine can be asked to do: one JSON line each, in the imperative. Every command is answered by its `id`."""

from typing import Annotated

import msgspec

from waggle.protocol.events import Choice


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    id: str


class Pause(Command, frozen=True, kw_only=True, tag=True):
    """Stop between two steps, at once, or `after_round`; until somebody resumes, or until a moment (unix seconds)."""

    until: float | None = None
    after_round: bool = False


class Resume(Command, frozen=True, kw_only=True, tag=True):
    """Go on from where the round was left."""


class Stop(Command, frozen=True, kw_only=True, tag=True):
    """Finish the step, keep everything, end the engine."""


class Status(Command, frozen=True, kw_only=True, tag=True):
    """Answered by a Snapshot before the CommandDone."""


class QueryHistory(Command, frozen=True, kw_only=True, tag=True):
    """Answered by HistoryTold before the CommandDone."""


class ChoosePeer(Command, frozen=True, kw_only=True, tag=True):
    """Mute a peer (nothing of it is learned here), block it (it gets nothing from here either), or take that back (empty)."""

    peer: Annotated[str, msgspec.Meta(max_length=64)]
    choice: Choice


AnyCommand = ChoosePeer | Pause | Resume | Stop | Status | QueryHistory
