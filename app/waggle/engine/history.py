"""History: every round's figures in SQLite, so that charts survive a restart. Can be rebuilt from the event log."""

import sqlite3
from pathlib import Path

import msgspec

from waggle.protocol import events

POINTS = 1000  # of a long chart
SCHEMA = """
create table if not exists rounds (round integer primary key, summary blob not null) without rowid;
create table if not exists held_out (round integer primary key, score blob not null) without rowid;
create table if not exists ahas (dataset text primary key, aha blob not null) without rowid;
create table if not exists taught (dataset text primary key, origin blob not null) without rowid;
"""


class History:
    """Open it and use it in one thread. A file that is no database is set aside, never fatal."""

    def __init__(self, path: Path) -> None:
        self.set_aside: Path | None = None
        try:
            self._database = _open(path)
        except sqlite3.DatabaseError:  # damaged: keep it for whoever wants to look, and begin anew
            self.set_aside = path.with_suffix(".damaged")
            path.replace(self.set_aside)
            self._database = _open(path)

    def keep_round(self, summary: events.RoundSummary) -> None:
        """A round that was played again after a kill replaces its first try."""
        self._write("insert or replace into rounds values (?, ?)", summary.round, msgspec.json.encode(summary))

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

    def told(self) -> events.HistoryTold:
        """All rounds thinned evenly to at most 1,000, every held-out score and every aha."""
        count = self._database.execute("select count(*) from rounds").fetchone()[0]
        step = max(1, -(-count // POINTS))
        rows = self._database.execute("select summary from rounds where round % ? = 0 order by round", (step,))
        rounds = tuple(msgspec.json.decode(row[0], type=events.RoundSummary) for row in rows)
        scores = self._database.execute("select score from held_out order by round")
        ahas = (msgspec.json.decode(row[0], type=events.Aha) for row in self._database.execute("select aha from ahas"))
        return events.HistoryTold(
            rounds=rounds,
            held_out=tuple(msgspec.json.decode(row[0], type=events.HeldOutScore) for row in scores),
            ahas=tuple(sorted(ahas, key=lambda aha: aha.round)),
        )

    def close(self) -> None:
        self._database.close()

    def _write(self, statement: str, *values: int | str | bytes) -> None:
        with self._database:
            self._database.execute(statement, values)


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = normal")
    database.executescript(SCHEMA)
    return database
