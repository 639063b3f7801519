"""What the engine tells about the person behind this node: what was contributed day by day, and backups of the identity."""

from typing import Annotated

import msgspec

from waggle.protocol.events import Count, Event


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """One day of this computer's calendar, as `date` in the form 2026-03-09."""

    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]
    rounds: Count
    answers: Count
    right: Count = 0
    learned: Count = 0  # groups of peers
    seconds: float = 0.0


class DaysTold(Event, frozen=True, kw_only=True, tag=True):
    """The days of the last year on which something was contributed, oldest first; and what they and all before add up to.

    `newest`: the last round of the model of now that is in them, and its moment.
    """

    days: tuple[Day, ...]
    all: Day  # since the beginning; its date is the first day
    used_by: Count = 0  # peers that took groups of this node, as far as they are remembered
    groups_pulled: Count = msgspec.field(default=0, name="taken")  # groups they took
    met: Count = 0  # peers that groups went to or came from, as far as they are remembered
    newest: tuple[Count, float] | None = None


class BackupWritten(Event, frozen=True, kw_only=True, tag=True):
    """It was read again, and opens."""

    path: str


class BackupRead(Event, frozen=True, kw_only=True, tag=True):
    """Whose identity a backup holds; nothing was changed."""

    path: str
    node: str
    name: str
    mine: bool  # it is the identity of now


PersonEvent = DaysTold | BackupWritten | BackupRead
