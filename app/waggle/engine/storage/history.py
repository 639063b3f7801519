"""History: every round's figures in SQLite, so that charts survive a restart. Can be rebuilt from the event log.

Of bounded size: of the older half of very many rounds every second one is folded into the sums of its day, of as many
held-out scores every second one is forgotten.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from waggle.core.errors import UNREADABLE, HistoryDamaged, HistoryError
from waggle.protocol import events, events_identity

log = logging.getLogger(__name__)
Event = TypeVar("Event")
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)  # the latter: SQLite's own complaint names what is no text
READ_ERRORS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
NOT_DAMAGE = (
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
)  # fmt: skip
MAX_POINTS = 1000  # of a long chart
MAX_ROUNDS = 50_000  # rounds that are kept one by one: about 40 MB
THIN_EVERY = 1000  # rounds
SCHEMA = """
create table if not exists rounds (round integer primary key, summary blob not null) without rowid;
create table if not exists held_out (round integer primary key, score blob not null) without rowid;
create table if not exists ahas (dataset text primary key, aha blob not null) without rowid;
create table if not exists taught (dataset text primary key, origin blob not null) without rowid;
create table if not exists earlier (day text primary key, rounds integer, answers integer, solved real, learned integer,
  seconds real) without rowid;
"""
OLDER = """where round in (select round from (select round, row_number() over (order by round) as place from {table})
where place <= {half} and place % 2 = 1)"""
FOLD = """
insert into earlier {days} on conflict (day) do update set rounds = rounds + excluded.rounds,
  answers = answers + excluded.answers, solved = solved + excluded.solved, learned = learned + excluded.learned,
  seconds = seconds + excluded.seconds"""
DAYS = """
select date(json_extract(told, '$.at'), 'unixepoch', 'localtime') as day, count(*),
  coalesce(sum(json_extract(told, '$.completions')), 0),
  coalesce(sum(json_extract(told, '$.completions') * json_extract(told, '$.solved')), 0),
  coalesce(sum(json_extract(told, '$.external')), 0), coalesce(sum(json_extract(told, '$.seconds')), 0)
from (select cast(summary as text) as told from rounds {which}) where json_valid(told) and day is not null group by day
"""
ALL_DAYS = """
select day, sum(rounds), sum(answers), sum(solved), sum(learned), sum(seconds)
from (select * from earlier union all {days}) group by day order by day
"""


# Where there are too many, the first one of each of so many equal stretches, however many of them are folded.
EVENLY = f"""
with span as (select min(round) as first,
  case when count(*) > {MAX_POINTS} then (max(round) - min(round)) / {MAX_POINTS} + 1 else 1 end as step from {{table}})
select {{column}} from {{table}} where round in (select min(round) from {{table}}, span group by (round - first) / step)
order by round
"""


class History:
    """Open it and use it in one thread. A damaged row is left out; of a damaged file see `history_recovery.py`."""

    def __init__(self, path: Path) -> None:
        """Raises HistoryDamaged, and HistoryError where the disk says no."""
        try:
            self._database = _open(path)
        except DAMAGED as error:
            if not is_damage(error):
                raise HistoryError(
                    f"The history cannot be opened: {error}.", "Make room on the disk, or mend its rights."
                ) from error
            raise HistoryDamaged(f"The history {path} is damaged: {error}.", "It can be moved away.") from error

    def keep_round(self, summary: events.RoundSummary) -> None:
        """A round that was played again after a kill replaces its first try."""
        self._write("insert or replace into rounds values (?, ?)", summary.round, msgspec.json.encode(summary))
        if summary.round % THIN_EVERY == 0 and not self._database.in_transaction:
            self.thin()

    def thin(self, most: int = MAX_ROUNDS) -> None:
        """Where there are more rounds than so many, fold every second one of the older half into the sums of its day.

        Where there are as many held-out scores, forget every second one of the older half.
        """
        with self._told_of(), self._database as database:
            for table in ("rounds", "held_out"):
                if database.execute(f"select count(*) from {table}").fetchone()[0] <= most:
                    continue
                going = OLDER.format(table=table, half=most // 2)
                if table == "rounds":
                    database.execute(FOLD.format(days=DAYS.format(which=going)))
                database.execute(f"delete from {table} {going}")

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is written within is written together, or not at all."""
        with self._told_of():
            if self._database.in_transaction:  # within another
                yield
                return
            with self._database:
                self._database.execute("begin")
                yield

    def go_on_from(self, number: int) -> None:
        """From this round on. Where later ones are known, a model played them that is no more: they count in their days alone.

        One round ahead is what a kill leaves; played again, that one is replaced.
        """
        (newest,) = self._database.execute("select max(round) from rounds").fetchone()
        if newest is None or newest <= number:
            return
        with self.at_once():
            self._write(FOLD.format(days=DAYS.format(which="where round >= ?")), number)
            self._write("delete from rounds where round >= ?", number)
            self._write("delete from held_out where round > ?", number)  # this one's own is taken before it is played
            if number == 0:
                for table in ("held_out", "ahas", "taught"):
                    self._write(f"delete from {table}")

    def keep_score(self, score: events.HeldOutScore) -> None:
        self._write("insert or replace into held_out values (?, ?)", score.round, msgspec.json.encode(score))

    def keep_aha(self, dataset: str, aha: events.Aha) -> None:
        """Only the first one of a specialty is kept."""
        self._write("insert or ignore into ahas values (?, ?)", dataset, msgspec.json.encode(aha))

    def solved(self) -> tuple[str, ...]:
        """The datasets in which there was a right answer before."""
        return tuple(row[0] for row in self._database.execute("select dataset from ahas"))

    def keep_teacher(self, dataset: str, origin: bytes) -> None:
        """Whose right answer in a specialty was learned from last."""
        self._write("insert or replace into taught values (?, ?)", dataset, origin)

    def taught_by(self) -> dict[str, bytes]:
        """The last teacher of each specialty."""
        return dict(self._database.execute("select dataset, origin from taught"))

    def has_score(self, number: int) -> bool:
        """Whether the held-out score before this round was taken."""
        return self._database.execute("select 1 from held_out where round = ?", (number,)).fetchone() is not None

    def points(self) -> events.HistoryTold:
        """All rounds and all held-out scores, each thinned evenly to at most 1,000, and every aha."""
        rows = self._database.execute(EVENLY.format(column="summary", table="rounds"))
        scores = self._database.execute(EVENLY.format(column="score", table="held_out"))
        ahas = self._database.execute("select aha from ahas")
        return events.HistoryTold(
            rounds=tuple(_readable(rows, events.RoundSummary)),
            held_out=tuple(_readable(scores, events.HeldOutScore)),
            ahas=tuple(sorted(_readable(ahas, events.Aha), key=lambda aha: aha.round)),
        )

    def settle(self) -> None:
        """All of it into the one file, which can be moved once this is closed."""
        with self._told_of():
            self._database.execute("pragma journal_mode = delete")

    def close(self) -> None:
        self._database.close()

    def _write(self, statement: str, *values: int | str | bytes) -> None:
        with self.at_once():
            self._database.execute(statement, values)

    @contextmanager
    def _told_of(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise HistoryError(
                f"The history cannot be written: {error}.", "Make room on the disk, or mend its rights."
            ) from error


def days_of(path: Path) -> tuple[tuple[events_identity.Day, ...], tuple[int, float] | None]:
    """What was done on each day of this computer's calendar, oldest first, and the last round with its moment.

    The history is only looked at. One that cannot be read has none: it is mended where it is gone on with.
    """
    try:
        with open_read_only(path) as database:
            database.execute("begin")  # both of one moment: rounds end meanwhile
            rows = database.execute("select summary from rounds order by round desc limit 1")
            newest = next(_readable(rows, events.RoundSummary), None)
            return _days(database), None if newest is None else (newest.round, newest.at)
    except DAMAGED:
        return (), None


def open_read_only(path: Path) -> closing[sqlite3.Connection]:
    """A history that nothing is written to: an engine may be at work. Raises what is `DAMAGED`."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


def _days(database: sqlite3.Connection) -> tuple[events_identity.Day, ...]:
    rows = database.execute(ALL_DAYS.format(days=DAYS.format(which="")))
    return tuple(
        events_identity.Day(date=date, rounds=rounds, answers=answers, right=round(right), learned=learned, seconds=seconds)
        for date, rounds, answers, right, learned, seconds in rows
    )


def _readable(rows: sqlite3.Cursor, kind: type[Event]) -> Iterator[Event]:
    for (row,) in rows:
        try:
            yield msgspec.json.decode(row, type=kind)
        except (TypeError, *UNREADABLE) as error:  # damaged on the disk: one point of a chart is lost, not the engine
            log.debug("a damaged row of the history is left out: %s", error)


def _open(path: Path) -> sqlite3.Connection:
    """A database that is whole; raises what is `DAMAGED`."""
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.executescript(SCHEMA)
        _check(database)
    except DAMAGED:
        database.close()
        raise
    return database


def is_damage(error: Exception) -> bool:
    """Whether what is `DAMAGED` says so of the file. A full disk, a lock, rights do not: it is whole, and stays where it is."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF not in NOT_DAMAGE or code in READ_ERRORS


def _check(database: sqlite3.Connection) -> None:
    """Raise what is `DAMAGED` unless every page, every name and every teacher can be read."""
    for columns in ("round, summary from rounds", "round, score from held_out", "dataset, aha from ahas"):
        database.execute(f"select {columns} limit 1").fetchone()
    (verdict,) = database.execute("pragma quick_check(1)").fetchone()
    taught: list[tuple[Any, Any]] = database.execute("select dataset, origin from taught").fetchall()
    solved: list[tuple[Any]] = database.execute("select dataset from ahas").fetchall()
    names = [name for name, *_ in (*taught, *solved)]
    if verdict != "ok" or not all(isinstance(name, str) for name in names) or not all(isinstance(by, bytes) for _, by in taught):
        raise sqlite3.DatabaseError(f"damaged: {verdict}")
