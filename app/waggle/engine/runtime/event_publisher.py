"""Publishes events: gives them a number and a time, folds them into the State, records them, and sends them to listeners."""

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
from waggle.core.system import file_moves
from waggle.core.text.round_number import round_number
from waggle.protocol import events, events_models, events_swarms, json_lines
from waggle.protocol.state import AnyEvent, Snapshot, State, apply
from waggle.protocol.text.status_text import unavailable_model_sentence, undecided_swarm_sentence

FILE_BYTES = 64 * 1024 * 1024
MAX_OLD_BYTES, MAX_OLD_FILES = 5 * FILE_BYTES, 1000  # of the records before the current one
MAX_UNREAD_BYTES = 8 * 1024 * 1024  # of one listener; then it misses events, as a window that hangs must not cost memory

Send = Callable[[bytes], None]
log = logging.getLogger(__name__)


@dataclass
class _Listener:
    """A listener that reads too slowly misses events, and gets a Snapshot once it has read everything before."""

    send: Send
    unread_bytes: Callable[[], int]
    behind: bool = False


class EventPublisher:
    """Create and use it on the engine's loop. Crash reports, replays and the demo are made from its record."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time, *, service: bool = False) -> None:
        self._folder = folder
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[_Listener] = []
        self.state = State(service=service)
        self._record_has_gap = False  # the disk refused events
        self._path: Path | None = None  # of the current record
        self._record = self._open()
        self._partial_file = self._open_partial_file()  # completions of the round in progress

    def attach(self, send: Send, unread_bytes: Callable[[], int] = lambda: 0) -> Callable[[], None]:
        """Send lines to a listener from now on; return a function that ends this.

        `unread_bytes` returns how many bytes the listener has not passed on yet.
        """
        listener = _Listener(send, unread_bytes)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def now(self) -> float:
        """Unix seconds, by this engine's clock."""
        return self._clock()

    def stamp(self, event: AnyEvent) -> AnyEvent:
        """Give an event its time, for an answer that only one client gets."""
        return replace(event, seq=self.state.seq, at=self._clock())

    def publish(self, event: AnyEvent) -> None:
        """Number an event, fold it into the State, record it, and send it to all listeners."""
        stamped = replace(event, seq=self.state.seq + 1, at=self._clock())
        self.state = apply(self.state, stamped)
        line = json_lines.line(stamped)
        _log_event(stamped)
        try:
            self._record_event(stamped, line)
        except OSError as error:  # a full disk: listeners still get it, and the record continues with a Snapshot later
            if not self._record_has_gap:
                log.info("the record misses events: %s", error)
            self._record_has_gap = True
        self._send(line)

    def broadcast(self, event: AnyEvent) -> None:
        """Send an event to all listeners without storing it, in memory or on disk."""
        self._send(json_lines.line(self.stamp(event)))

    def _send(self, line: bytes) -> None:
        for listener in self._listeners:
            was_behind, listener.behind = listener.behind, listener.unread_bytes() >= (1 if listener.behind else MAX_UNREAD_BYTES)
            if listener.behind != was_behind:
                log.debug("a listener %s", "reads too slowly: events are dropped" if listener.behind else "reads again")
            if not listener.behind:
                listener.send(json_lines.line(self.stamp(Snapshot(state=self.state))) if was_behind else line)

    @property
    def record_has_gap(self) -> bool:
        """Whether the disk refused events, and takes none yet."""
        return self._record_has_gap

    def publish_soon(self, event: AnyEvent) -> None:
        """Publish from any thread."""
        self._loop.call_soon_threadsafe(self.publish, event)

    def close(self) -> None:
        self._record.close()
        self._partial_file.close()

    def _record_event(self, event: AnyEvent, line: bytes) -> None:
        """Write an event to the record. Those of progress are many: they go to a file for the round in progress only."""
        if isinstance(event, events.QuestionsDrawn):
            self._partial_file.seek(0)
            self._partial_file.truncate()
        if isinstance(event, events.CompletionsProgress | events.HeldOutProgress):
            if self._partial_file.tell() < FILE_BYTES:
                self._partial_file.write(line)
            return
        if self._record_has_gap:
            line = json_lines.line(self.stamp(Snapshot(state=self.state)))
        self._write(line)
        self._record_has_gap = False
        if self._record.tell() > FILE_BYTES:
            self._start_next_record()

    def _start_next_record(self) -> None:
        try:
            full, self._record = self._record, self._open()
        except OSError:  # the full one keeps growing until a new one can be opened
            return
        full.close()
        self._write(json_lines.line(self.stamp(Snapshot(state=self.state))))

    def _write(self, line: bytes) -> None:
        """Write the whole line or nothing, as a disk that is nearly full takes a part of it. Raises OSError."""
        written = self._record.write(line)
        if written < len(line):
            self._record.truncate(self._record.tell() - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> IO[bytes]:
        total = 0
        for number, old in enumerate(reversed(self._oldest_first())):
            total += _file_size(old)
            if total > MAX_OLD_BYTES or number >= MAX_OLD_FILES:
                with suppress(OSError):  # Windows, while another program has it open: next time
                    file_moves.unlink(old, missing_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock()))
        path = self._folder / f"{stamp}-{time.perf_counter_ns() % 1_000_000:06d}.jsonl"
        opened = path.open("ab", buffering=0)
        self._path = path
        return opened

    def _oldest_first(self) -> list[Path]:
        """All records; the current one counts as the newest."""
        return sorted(oldest_first(self._folder, self._clock()), key=lambda path: path == self._path)

    def _open_partial_file(self) -> IO[bytes]:
        return (self._folder / "writing.part").open("wb", buffering=0)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed meanwhile
        return 0


def oldest_first(folder: Path, now: float) -> list[Path]:
    """The records in a folder by the time of their last change. A time in the future is of a clock that was ahead: such a record
    counts as old."""

    def age(path: Path) -> tuple[bool, float, str]:
        written = _modified_at(path)
        return written <= now, written, path.name

    return sorted(folder.glob(RECORD), key=age)


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0


def _log_event(event: AnyEvent) -> None:
    """Log the events that a person may look for later."""
    match event:
        case events.Ready():
            log.info("ready: round %d, %s on %s, %s", round_number(event.round), event.model, event.device, event.swarm)
        case events.PhaseChanged():
            log.info("%s, round %d", event.phase, round_number(event.round))
        case events.Warned():
            log.info("warned: %s %s", event.title, event.advice)
        case events_swarms.SwarmUndecided():  # also on stderr: an engine without a window waits until somebody reads this
            says = undecided_swarm_sentence(event)
            log.warning("%s %s `waggle swarm join` chooses one; here are %s.", says.says, says.detail, "; ".join(event.known))
        case events_models.ModelUnavailable():
            says = unavailable_model_sentence(event)
            log.warning("%s %s `waggle model choose` chooses another.", says.says, says.detail)
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
