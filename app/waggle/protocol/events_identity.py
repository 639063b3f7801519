"""Events about the person behind this node: contributions by day, and backups of the identity."""

from typing import Annotated

import msgspec

from waggle.protocol.events import Count, Event


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The contributions of one day of this computer's calendar. `date` is in the form 2026-03-09."""

    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]
    rounds: Count
    answers: Count
    right: Count = 0
    learned: Count = 0  # external groups in training
    seconds: float = 0.0


class DailyTotals(Event, frozen=True, kw_only=True, tag="DaysTold"):
    """The days of the last year with a contribution, oldest first, and the total of all days.

    `newest`: the newest round of the current model that they include, and its time (unix seconds).
    """

    days: tuple[Day, ...]
    all: Day  # the total; its date is the first day
    used_by: Count = 0  # known peers that pulled groups of this node
    groups_pulled: Count = msgspec.field(default=0, name="taken")  # groups that they pulled
    met: Count = 0  # known peers that gave or pulled groups
    newest: tuple[Count, float] | None = None
    utc_offset: Annotated[int, msgspec.Meta(ge=-86_400, le=86_400)] | None = (
        None  # seconds of the calendar of these days, east of UTC; None: from an earlier version
    )


class BackupWritten(Event, frozen=True, kw_only=True, tag=True):
    """A backup was written, and read again as a check."""

    path: str


class BackupRead(Event, frozen=True, kw_only=True, tag=True):
    """Whose identity a backup contains."""

    path: str
    node: str
    name: str
    mine: bool  # the current identity


PersonEvent = DailyTotals | BackupWritten | BackupRead
