"""History: every round's figures in SQLite, so that charts survive a restart. It can be rebuilt from the record of events.

Its size is bounded: when there are too many rounds, every second one of the older half is folded into the totals of its day;
when there are too many held-out scores, every second one of the older half is deleted.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from waggle.core.errors import UNREADABLE, HistoryDamaged, HistoryError
from waggle.core.message import Message
from waggle.protocol import events, events_identity

log = logging.getLogger(__name__)
Event = TypeVar("Event")
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)  # the latter: SQLite's message can quote bytes that are no text
READ_ERRORS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
NOT_DAMAGE = (
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
)  # fmt: skip
MAX_CHART_POINTS = 1000  # more than a chart has pixels to show
ROUNDS_AT_ONCE = 500  # in one answer: a few hundred kilobytes
MAX_ROUNDS = 50_000  # rounds that are stored one by one: about 40 MB
THIN_EVERY_ROUNDS = 1000  # counting the rows takes a while
SCHEMA_SQL = """
create table if not exists rounds (round integer primary key, summary blob not null) without rowid;
create table if not exists held_out (round integer primary key, score blob not null) without rowid;
create table if not exists ahas (dataset text primary key, aha blob not null) without rowid;
create table if not exists taught (dataset text primary key, origin blob not null) without rowid;
create table if not exists earlier (day text primary key, rounds integer, answers integer, solved real, learned integer,
  seconds real) without rowid;
"""
EVERY_SECOND_OF_OLDER_HALF_SQL = """
where round in (select round from (select round, row_number() over (order by round) as place from {table})
where place <= {half} and place % 2 = 1)"""
FOLD_INTO_DAYS_SQL = """
insert into earlier {days} on conflict (day) do update set rounds = rounds + excluded.rounds,
  answers = answers + excluded.answers, solved = solved + excluded.solved, learned = learned + excluded.learned,
  seconds = seconds + excluded.seconds"""
DAYS_SQL = """
select date(json_extract(round_summary, '$.at'), 'unixepoch', 'localtime') as day, count(*),
  coalesce(sum(json_extract(round_summary, '$.completions')), 0),
  coalesce(sum(json_extract(round_summary, '$.completions') * json_extract(round_summary, '$.solved')), 0),
  coalesce(sum(json_extract(round_summary, '$.external')), 0), coalesce(sum(json_extract(round_summary, '$.seconds')), 0)
from (select cast(summary as text) as round_summary from rounds {which})
where json_valid(round_summary) and day is not null group by day
"""
ALL_DAYS_SQL = """
select day, sum(rounds), sum(answers), sum(solved), sum(learned), sum(seconds)
from (select * from earlier union all {days}) group by day order by day
"""


# If there are too many rows: the first of each of MAX_CHART_POINTS equal ranges of rounds.
EVENLY_THINNED_SQL = f"""
with span as (select min(round) as first,
  case when count(*) > {MAX_CHART_POINTS} then (max(round) - min(round)) / {MAX_CHART_POINTS} + 1 else 1 end as step
  from {{table}})
select {{column}} from {{table}} where round in (select min(round) from {{table}}, span group by (round - first) / step)
order by round
"""


class SuccessRecord:
    """The first right answer of each specialty, and who taught it there last. Part of a history, in its transactions."""

    def __init__(self, database: sqlite3.Connection, write: Callable[..., None]) -> None:
        self._database, self._write = database, write

    def save(self, dataset: str, aha: events.Aha) -> None:
        """Add a first success, unless the specialty has one."""
        self._write("insert or ignore into ahas values (?, ?)", dataset, msgspec.json.encode(aha))

    def datasets(self) -> tuple[str, ...]:
        """The datasets in which this model has answered a question right."""
        return tuple(row[0] for row in self._database.execute("select dataset from ahas"))

    def save_teacher(self, dataset: str, origin: bytes) -> None:
        """Remember the node whose right answer in a specialty was learned from last."""
        self._write("insert or replace into taught values (?, ?)", dataset, origin)

    def teachers(self) -> dict[str, bytes]:
        """The last teacher of each specialty."""
        return dict(self._database.execute("select dataset, origin from taught"))


class History:
    """The history of one model. Open it and use it in one thread.

    Damaged rows are skipped; `history_recovery.py` repairs a damaged file.
    """

    def __init__(self, path: Path) -> None:
        """Raises HistoryDamaged, and HistoryError where the disk refuses."""
        try:
            self._database = _open(path)
        except DAMAGED as error:
            if not is_damage(error):
                raise HistoryError(
                    Message("The history cannot be opened: %1.", error), "Make room on the disk, or mend its rights."
                ) from error
            raise HistoryDamaged(f"The history {path} is damaged: {error}.", "It can be moved away.") from error
        self.successes = SuccessRecord(self._database, self._write)

    def save_round(self, summary: events.RoundSummary) -> None:
        """Add a round. One that is played again after a kill replaces its first try."""
        self._write("insert or replace into rounds values (?, ?)", summary.round, msgspec.json.encode(summary))
        if summary.round % THIN_EVERY_ROUNDS == 0 and not self._database.in_transaction:
            self.thin_out()

    def thin_out(self, most: int = MAX_ROUNDS) -> None:
        """If there are more than `most` rounds, fold every second one of the older half into the totals of its day.

        Do the same with held-out scores, which are deleted instead.
        """
        with _as_history_error(), self._database as database:
            for table in ("rounds", "held_out"):
                if database.execute(f"select count(*) from {table}").fetchone()[0] <= most:
                    continue
                older_rows = EVERY_SECOND_OF_OLDER_HALF_SQL.format(table=table, half=most // 2)
                if table == "rounds":
                    database.execute(FOLD_INTO_DAYS_SQL.format(days=DAYS_SQL.format(which=older_rows)))
                database.execute(f"delete from {table} {older_rows}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside together, or nothing of it."""
        with _as_history_error():
            if self._database.in_transaction:  # inside another transaction
                yield
                return
            with self._database:
                self._database.execute("begin")
                yield

    def rewind_to(self, number: int) -> None:
        """Prepare to continue with this round.

        Later rounds are of a state of the model that is lost, so they are folded into the totals of their days. A kill between
        the history and the checkpoint leaves one such round, which is then played again.
        """
        (newest,) = self._database.execute("select max(round) from rounds").fetchone()
        if newest is None or newest <= number:
            return
        with self.transaction():
            self._write(FOLD_INTO_DAYS_SQL.format(days=DAYS_SQL.format(which="where round >= ?")), number)
            self._write("delete from rounds where round >= ?", number)
            self._write("delete from held_out where round > ?", number)  # the score of a round is measured before the round
            if number == 0:
                for table in ("held_out", "ahas", "taught"):
                    self._write(f"delete from {table}")

    def save_score(self, score: events.HeldOutScore) -> None:
        self._write("insert or replace into held_out values (?, ?)", score.round, msgspec.json.encode(score))

    def has_score(self, number: int) -> bool:
        """Whether the held-out score before this round was measured."""
        return self._database.execute("select 1 from held_out where round = ?", (number,)).fetchone() is not None

    def chart_points(self) -> events.TrainingHistory:
        """All rounds and all held-out scores, each thinned evenly to at most `MAX_CHART_POINTS`, and every first success."""
        rows = self._database.execute(EVENLY_THINNED_SQL.format(column="summary", table="rounds"))
        scores = self._database.execute(EVENLY_THINNED_SQL.format(column="score", table="held_out"))
        ahas = self._database.execute("select aha from ahas")
        return events.TrainingHistory(
            rounds=tuple(_readable(rows, events.RoundSummary)),
            held_out=tuple(_readable(scores, events.HeldOutScore)),
            ahas=tuple(sorted(_readable(ahas, events.Aha), key=lambda aha: aha.round)),
        )

    def rounds_after(self, number: int, most: int = ROUNDS_AT_ONCE) -> events.RoundsRead:
        """The stored rounds after this one, oldest first, with the scores of their span, and whether there are more.

        A score belongs to the round before it, and the very first to the first round.
        """
        rows = self._database.execute(
            "select round, summary from rounds where round > ? order by round limit ?", (number, most + 1)
        ).fetchall()
        page = rows[:most]
        last = page[-1][0] if page else number
        scored = number + 1 if number >= 0 else -1
        scores = self._database.execute(
            "select score from held_out where round > ? and round <= ? order by round", (scored, last + 1)
        )
        return events.RoundsRead(
            after=number,
            last=last,
            rounds=tuple(_readable(((summary,) for _, summary in page), events.RoundSummary)),
            held_out=tuple(_readable(scores, events.HeldOutScore)),
            more=len(rows) > most,
        )

    def close(self) -> None:
        self._database.close()

    def _write(self, statement: str, *values: int | str | bytes) -> None:
        with self.transaction():
            self._database.execute(statement, values)


def latest_rounds(history: History, count: int) -> tuple[events.RoundSummary, ...]:
    """The last rounds, oldest first."""
    rows = history._database.execute("select summary from rounds order by round desc limit ?", (count,))
    return tuple(_readable(rows, events.RoundSummary))[::-1]


def held_out_scores(history: History) -> tuple[events.HeldOutScore, ...]:
    """All scores that are stored, oldest first."""
    rows = history._database.execute("select score from held_out order by round")
    return tuple(_readable(rows, events.HeldOutScore))


def merge_side_files(path: Path) -> None:
    """Merge SQLite's write-ahead log into the file of a closed history, so that the one file can be moved.

    Raises HistoryError.
    """
    with _as_history_error(), closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = delete")


@contextmanager
def _as_history_error() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise HistoryError(
            Message("The history cannot be written: %1.", error), "Make room on the disk, or mend its rights."
        ) from error


def read_days(path: Path) -> tuple[tuple[events_identity.Day, ...], tuple[int, float] | None]:
    """The totals of each day of this computer's calendar, oldest first, and the newest round with its unix time.

    Reads only. A damaged history gives nothing; it is repaired when its model is trained again.
    """
    try:
        with open_read_only(path) as database:
            database.execute("begin")  # one state for both queries: the engine may write in between
            rows = database.execute("select summary from rounds order by round desc limit 1")
            newest = next(_readable(rows, events.RoundSummary), None)
            return _days(database), None if newest is None else (newest.round, newest.at)
    except DAMAGED:
        return (), None


def rounds_played(path: Path) -> int:
    """The number of the newest stored round, plus one; 0 without one. Reads only."""
    try:
        with open_read_only(path) as database:
            (newest,) = database.execute("select max(round) from rounds").fetchone()
    except DAMAGED:  # there is none, or it is repaired when its model is trained again
        return 0
    return 0 if newest is None else int(newest) + 1


def read_scores(path: Path) -> tuple[list[events.HeldOutScore], events.RoundSummary | None]:
    """The held-out scores, oldest first, and the newest round. Reads only. Raises `DAMAGED`."""
    with open_read_only(path) as database:
        database.execute("begin")  # one state for both queries
        scores = list(_readable(database.execute("select score from held_out order by round"), events.HeldOutScore))
        newest = database.execute("select summary from rounds order by round desc limit 1")
        return scores, next(_readable(newest, events.RoundSummary), None)


def read_all(path: Path) -> tuple[list[events.RoundSummary], list[events.HeldOutScore]]:
    """All stored rounds and held-out scores, oldest first. Reads only. Raises `DAMAGED`."""
    with open_read_only(path) as database:
        database.execute("begin")  # one state for both queries: the engine may write in between
        rounds = list(_readable(database.execute("select summary from rounds order by round"), events.RoundSummary))
        return rounds, list(_readable(database.execute("select score from held_out order by round"), events.HeldOutScore))


def open_read_only(path: Path) -> closing[sqlite3.Connection]:
    """Open a history for reading, beside an engine that writes to it. Raises `DAMAGED`."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


def _days(database: sqlite3.Connection) -> tuple[events_identity.Day, ...]:
    rows = database.execute(ALL_DAYS_SQL.format(days=DAYS_SQL.format(which="")))
    return tuple(
        events_identity.Day(date=date, rounds=rounds, answers=answers, right=round(right), learned=learned, seconds=seconds)
        for date, rounds, answers, right, learned, seconds in rows
    )


def _readable(rows: Iterable[Any], kind: type[Event]) -> Iterator[Event]:
    for (row,) in rows:
        try:
            yield msgspec.json.decode(row, type=kind)
        except (TypeError, *UNREADABLE) as error:  # damaged on the disk: a chart loses one point, the engine continues
            log.debug("skip a damaged row of the history: %s", error)


def _open(path: Path) -> sqlite3.Connection:
    """Open or create a database, and check that it is whole. Raises `DAMAGED`."""
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")  # a power cut may cost the last rows, never the file
        database.executescript(SCHEMA_SQL)
        _check(database)
    except DAMAGED:
        database.close()
        raise
    return database


def is_damage(error: Exception) -> bool:
    """Whether one of `DAMAGED` means a damaged file. A full disk, a lock or missing rights do not: such a file stays in place."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF not in NOT_DAMAGE or code in READ_ERRORS


def _check(database: sqlite3.Connection) -> None:
    """Raise one of `DAMAGED` unless every page, every dataset name and every teacher can be read."""
    for columns in ("round, summary from rounds", "round, score from held_out", "dataset, aha from ahas"):
        database.execute(f"select {columns} limit 1").fetchone()
    (verdict,) = database.execute("pragma quick_check(1)").fetchone()
    taught: list[tuple[Any, Any]] = database.execute("select dataset, origin from taught").fetchall()
    solved: list[tuple[Any]] = database.execute("select dataset from ahas").fetchall()
    names = [name for name, *_ in (*taught, *solved)]
    if verdict != "ok" or not all(isinstance(name, str) for name in names) or not all(isinstance(by, bytes) for _, by in taught):
        raise sqlite3.DatabaseError(Message("damaged: %1", verdict))
