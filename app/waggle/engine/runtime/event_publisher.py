"""Publishes events: numbers and dates them, folds them into the State, writes the record, and sends them to listeners."""

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from waggle.core.stored_data import RECORD
from waggle.protocol import events, json_lines
from waggle.protocol.state import AnyEvent, Snapshot, State, apply

FILE_BYTES = 64 * 1024 * 1024
MAX_OLD_BYTES, MAX_OLD_FILES = 5 * FILE_BYTES, 1000  # of the records before the present one
MAX_UNREAD_BYTES = 8 * 1024 * 1024  # bytes that a listener has not read

Sink = Callable[[bytes], None]
log = logging.getLogger(__name__)


@dataclass
class _Listener:
    """A listener that does not read for long misses events, and gets a snapshot of the State when it reads again."""

    sink: Sink
    waiting: Callable[[], int]
    behind: bool = False


class EventPublisher:
    """Make and use it on the engine's loop. The record is what crash reports, replays and the demo are made of."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time, *, service: bool = False) -> None:
        self._folder = folder
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[_Listener] = []
        self.state = State(service=service)
        self._gap = False  # events are missing in the record
        self._path: Path | None = None  # of the record that is written
        self._record = self._open()
        self._writing = self._open_writing()

    def attach(self, sink: Sink, waiting: Callable[[], int] = lambda: 0) -> Callable[[], None]:
        """Pass lines on to `sink`, until what is returned is called; `waiting` says how many bytes it has not passed on yet."""
        listener = _Listener(sink, waiting)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def now(self) -> float:
        """Unix seconds, by this engine's clock."""
        return self._clock()

    def stamp(self, event: AnyEvent) -> AnyEvent:
        """The event with its time, for an answer that only one listener gets."""
        return replace(event, seq=self.state.seq, at=self._clock())

    def tell(self, event: AnyEvent) -> None:
        """Number an event, fold it into the State, write it to the record, send it to listeners."""
        stamped = replace(event, seq=self.state.seq + 1, at=self._clock())
        self.state = apply(self.state, stamped)
        line = json_lines.line(stamped)
        _log(stamped)
        try:
            self._keep(stamped, line)
        except OSError as error:  # a full disk: listeners still get it, and the record continues with a snapshot
            if not self._gap:
                log.info("events are missing in the record: %s", error)
            self._gap = True
        self._send(line)

    def pass_on(self, event: AnyEvent) -> None:
        """Pass an event on to the listeners without keeping it, in memory or on file."""
        self._send(json_lines.line(self.stamp(event)))

    def _send(self, line: bytes) -> None:
        for listener in self._listeners:
            was_behind, listener.behind = listener.behind, listener.waiting() >= (1 if listener.behind else MAX_UNREAD_BYTES)
            if listener.behind != was_behind:
                log.debug("a listener %s", "reads too slowly: events are dropped" if listener.behind else "reads again")
            if not listener.behind:
                listener.sink(json_lines.line(self.stamp(Snapshot(state=self.state))) if was_behind else line)

    def tell_soon(self, event: AnyEvent) -> None:
        """Tell it, from any thread."""
        self._loop.call_soon_threadsafe(self.tell, event)

    def close(self) -> None:
        self._record.close()
        self._writing.close()

    def _keep(self, event: AnyEvent, line: bytes) -> None:
        """Completions while they are written are many: they are kept for the round in progress only."""
        if isinstance(event, events.QuestionsDrawn):
            self._writing.seek(0)
            self._writing.truncate()
        if isinstance(event, events.CompletionsGrew):
            if self._writing.tell() < FILE_BYTES:
                self._writing.write(line)
            return
        if self._gap:
            line = json_lines.line(self.stamp(Snapshot(state=self.state)))
        self._write(line)
        self._gap = False
        if self._record.tell() > FILE_BYTES:
            self._begin_another()

    def _begin_another(self) -> None:
        try:
            full, self._record = self._record, self._open()
        except OSError:  # the full one grows until another can be opened
            return
        full.close()
        self._write(json_lines.line(self.stamp(Snapshot(state=self.state))))

    def _write(self, line: bytes) -> None:
        """All of it or nothing: a disk that is nearly full takes a part. Raises OSError."""
        written = self._record.write(line)
        if written < len(line):
            self._record.truncate(self._record.tell() - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> IO[bytes]:
        total = 0
        for number, old in enumerate(reversed(self._oldest_first())):
            total += _bytes(old)
            if total > MAX_OLD_BYTES or number >= MAX_OLD_FILES:
                with suppress(OSError):  # somebody looks at it: it goes next time
                    old.unlink(missing_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock()))
        path = self._folder / f"{stamp}-{time.monotonic_ns() % 1_000_000:06d}.jsonl"
        opened = path.open("ab", buffering=0)
        self._path = path
        return opened

    def _oldest_first(self) -> list[Path]:
        """The records; the one that is being written is the newest."""
        return sorted(oldest_first(self._folder, self._clock()), key=lambda path: path == self._path)

    def _open_writing(self) -> IO[bytes]:
        return (self._folder / "writing.part").open("wb", buffering=0)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it went meanwhile
        return 0


def oldest_first(folder: Path, now: float) -> list[Path]:
    """The records there, by when each was written last. Those from the future are of a clock that was ahead."""

    def age(path: Path) -> tuple[bool, float, str]:
        written = _modified_at(path)
        return written <= now, written, path.name

    return sorted(folder.glob(RECORD), key=age)


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it went meanwhile
        return 0.0


def _log(event: AnyEvent) -> None:
    """What a person may look for later."""
    match event:
        case events.Ready():
            log.info("ready: round %d, %s on %s, %s", event.round, event.model, event.device, event.swarm)
        case events.PhaseChanged():
            log.info("%s, round %d", event.phase, event.round)
        case events.Warned():
            log.info("warned: %s %s", event.title, event.advice)
        case events.PartRestarted():
            log.info("%s restarted: %s", event.part, event.reason)
        case events.CheckpointSetAside():
            log.info("%s was set aside: %s", event.folder, event.reason)
        case events.EngineFailed():
            text = f"{event.title} {event.advice}\n{event.detail}".strip()
            log.error("failed: %s", text)  # also on stderr, which is all that the administrator of a service sees
        case events.EngineStopped():
            log.info("stopped after round %d", event.round)
        case _:
            return
