"""Finds the chosen model: a folder, a model of the hub, which may need a download, or the starter."""

import asyncio
import hashlib
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from waggle.core import hub_token, paths
from waggle.core.errors import UNREADABLE, HubUnavailable, ModelError, ModelMissing, Stopped
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime import trainings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.gguf import conversion
from waggle.models.shared import model_files
from waggle.models.storage import checkpoint, hub_download, ownership, starters
from waggle.protocol import events
from waggle.protocol.events_models import ModelUnavailable

Report = Callable[[int, int, float | None], None]  # of a download: bytes that are here, all bytes, seconds that remain
log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0  # between two reports of a download, which also come at every hundredth of it
MAX_PIECE_SECONDS = 60.0  # of one piece that count for the pace: after a longer time the hub was away, or the computer asleep
MAX_REST_SECONDS = 1.0  # between two looks at the traffic limit, which may change
MAX_AWAY_SECONDS = 60  # between two attempts to reach the hub
AWAY_REPORT_EVERY = 10  # attempts
# One a model. A restart stops waiting for a download at once, but its thread ends only after the piece that is under way.
DOWNLOAD_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class NotHereYetError(ModelError):
    """A model that the next engine downloads or converts: nothing is wrong with it."""


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`models.json`: the model whose training is stored in the home itself, and `before`, which played a round last."""

    folder: str
    name: str
    before: ModelSettings | None = None


async def find_model(
    chosen: ModelSettings, publisher: EventPublisher, gate: PauseGate, stopped: asyncio.Event,
    examine: Callable[[Path], None] = lambda folder: None,
    *, checkpoints: Path | None = None, limit: Callable[[], float] = lambda: 0.0, patient: bool = False, commit: str = "",
    report: Report | None = None,
) -> Path:  # fmt: skip
    """Find the model's folder, and download or convert the model first if necessary.

    Raises ModelMissing, and Stopped once `stopped` is set.

    For `checkpoints` see `folder_of`. `examine` may refuse a model when only its configuration is here. `limit` returns the bytes
    a second that are allowed now (0: no limit); `commit` is the revision to download (see `hub_download.fetch`). `report` gets
    the progress in the working thread; without it, the engine's start shows it. A closed gate suspends the download. If the
    hub is away in the middle of a download, wait for it; before the first byte, wait only if `patient`, and let a person choose.
    """
    try:
        if (file := unconverted(chosen)) is not None:
            show = report or partial(_report_conversion, publisher, file.name)
            show(0, 0, None)
            return await _unless_stopped(partial(conversion.convert, file, _ConversionProgress(show, gate), examine), stopped)
        if not chosen.name or is_here(chosen.name):
            return folder_of(chosen, checkpoints)
        return await _download(
            chosen, publisher, gate, stopped, examine, limit=limit, patient=patient, commit=commit, report=report
        )
    except ModelError as error:
        raise ModelMissing(error.title, error.advice) from error
    except OSError as error:  # such as of a disk that was unplugged while it is mounted
        fault = fault_of(error)
        raise ModelMissing(
            Message("The model in %1 cannot be read: %2.", chosen.folder or chosen.name, fault.reason), fault.advice
        ) from error


def unavailable(chosen: ModelSettings, error: ModelError) -> ModelUnavailable:
    """The question what to train instead of a model that cannot be had now."""
    return ModelUnavailable(name=chosen.name, folder=chosen.folder, reason=error.title, advice=error.advice)


async def _download(
    chosen: ModelSettings, publisher: EventPublisher, gate: PauseGate, stopped: asyncio.Event, examine: Callable[[Path], None],
    *, limit: Callable[[], float], patient: bool, commit: str, report: Report | None,
) -> Path:  # fmt: skip
    progress = _Progress(report or partial(report_start, publisher, chosen.name), gate, limit)
    warn = partial(_warn, publisher)
    fetch = partial(
        hub_download.fetch, chosen.name, paths.models(), progress, warn=warn, token=hub_token.stored_token, examine=examine,
        commit=commit,
    )  # fmt: skip
    away = partial(_report_away, chosen, publisher, patient)
    return await _unless_stopped(partial(_fetch_with_retries, chosen.name, gate, fetch, away), stopped)


async def _unless_stopped(work: Callable[[], Path], stopped: asyncio.Event) -> Path:
    """The result of work in a thread. Raises what it raises, and Stopped once `stopped` is set."""
    finished = _start_thread(work)
    stopping = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((finished, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set():
        raise Stopped
    stopping.cancel()
    return finished.result()


def folder_of(chosen: ModelSettings, checkpoints: Path | None = None) -> Path:
    """The folder of a model that is on this computer. Raises ModelError if it is not.

    The starter is the one that the newest of these checkpoints began from.
    """
    if chosen.name and not is_here(chosen.name):
        raise NotHereYetError(Message("%1 is not on this computer yet.", chosen.name), "`waggle engine` downloads it.")
    if chosen.name:
        return hub_download.model_of(chosen.name, paths.models()).folder
    if chosen.folder:
        folder = Path(os.path.expanduser(chosen.folder))
    else:
        folder = starters.starter_of(checkpoints) if checkpoints else paths.starter()
    if (file := _gguf_in(folder)) is not None:
        known = conversion.converted(file)
        if known is None:
            raise NotHereYetError(Message("%1 was not converted yet.", file.name), "`waggle engine` converts it.")
        return known
    if not folder.exists():
        raise ModelError(Message("There is no model in %1.", folder), "Check its path, and whether its disk is connected.")
    for name in hub_download.missing({path.name for path in folder.iterdir()} if folder.is_dir() else set()):
        raise ModelError(
            Message("There is no model in %1: %2 is missing.", folder, name), "Put its files back, or choose another model."
        )
    model_files.require_files(folder)
    return folder


def unconverted(chosen: ModelSettings) -> Path | None:
    """The chosen model's GGUF file if it has to be converted first. Raises ModelError if it cannot be read."""
    file = _gguf_in(Path(os.path.expanduser(chosen.folder))) if chosen.folder and not chosen.name else None
    return file if file is not None and conversion.converted(file) is None else None


def _gguf_in(folder: Path) -> Path | None:
    """The GGUF file that a path is of, or that a folder has instead of a model in another form."""
    return folder if conversion.is_gguf(folder) else conversion.file_in(folder)


def require_here(chosen: ModelSettings) -> None:
    """Raise ModelError if a model is not on this computer. A GGUF file may have to be converted yet."""
    if unconverted(chosen) is None:
        folder_of(chosen)


def home_of(home: paths.Home, chosen: ModelSettings) -> paths.Home:
    """The home with the folder for this model's training: the one that has it, however the model's path is spelled now, or else
    the one that its name or path stands for."""
    place = _place_of(home, chosen)
    try:
        return replace(home, model_root=trainings.root_for(home, place.model_root, folder_of(chosen, place.model.checkpoints)))
    except (ModelError, OSError):  # it is not here, or broken, which opening it will report
        return place


def _place_of(home: paths.Home, chosen: ModelSettings) -> paths.Home:
    """The home itself for its first model, a folder of their own for others, named after their name or path."""
    was, top = read_record(home), replace(home, model_root=None)
    if _may_be_of(top.model.checkpoints, chosen) if was is None else (was.folder, was.name) == (chosen.folder, chosen.name):
        return top
    name = chosen.name.replace("/", "--")
    if chosen.folder:
        name = hashlib.sha256(chosen.folder.encode()).hexdigest()[:16]
    return replace(home, model_root=home.root / "models" / (name or "starter"))


def read_record(home: paths.Home) -> ModelRecord | None:
    """Read `models.json`; None if there is none."""
    try:
        return msgspec.json.decode((home.root / "models.json").read_bytes(), type=ModelRecord)
    except (OSError, *UNREADABLE):  # no file yet, or a damaged one: then the checkpoints say which model they are of
        return None


def _may_be_of(checkpoints: Path, chosen: ModelSettings) -> bool:
    """Whether the newest checkpoint may be this model's. For a model that is not here: that it is not the starter's."""
    if checkpoint.read_unverified(checkpoints) is None:
        return True
    try:
        return ownership.is_training_of(checkpoints, folder_of(chosen, checkpoints))
    except (ModelError, OSError):  # opening it will report what is wrong
        return not ownership.is_training_of(checkpoints, folder_of(ModelSettings(), checkpoints))


def is_here(name: str) -> bool:
    """Whether a model of the hub is complete on this computer. Raises ModelError if `name` cannot be one."""
    return hub_download.model_of(name, paths.models()).folder.is_dir()


def _start_thread(work: Callable[[], Path]) -> asyncio.Future[Path]:
    """Work in a daemon thread, which cannot keep the process alive while it waits for the network."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Path] = loop.create_future()
    done.add_done_callback(
        lambda ended: ended.cancelled() or ended.exception()
    )  # after a stop nobody reads the error; asyncio would log it

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def run() -> None:
        try:
            folder = work()
        except BaseException as error:  # noqa: BLE001 - raised in the task that waits, or it would wait for ever
            outcome = partial(done.set_exception, error)
        else:
            outcome = partial(done.set_result, folder)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, name="find model", daemon=True).start()
    return done


def _fetch_with_retries(name: str, gate: PauseGate, fetch: Callable[[], Path], away: Callable[[HubUnavailable], None]) -> Path:
    """Download once the thread of an earlier download of this model has ended. Raises Stopped.

    If the hub is away, try again after ever longer waits. `away` is called now and then, and may raise the error instead.
    """
    seconds, attempts = 1, 0
    with DOWNLOAD_LOCKS[name]:
        gate.sleep(0.0)  # raise Stopped; a pause suspends it from the first piece on, but may ask whether there is such a model
        while True:
            try:
                return fetch()
            except HubUnavailable as error:
                gate.sleep(0.0)  # raise Stopped: a thread that was left behind reports nothing
                if attempts % AWAY_REPORT_EVERY == 0:
                    away(error)
                log.debug("the hub is away, retry of %s in %d s: %s", name, seconds, error)
            for _ in range(seconds):
                gate.sleep(MAX_REST_SECONDS)
                gate.wait_until_open()
            attempts += 1
            seconds = min(MAX_AWAY_SECONDS, 2 * seconds)


def _report_away(chosen: ModelSettings, publisher: EventPublisher, patient: bool, error: HubUnavailable) -> None:
    """Report that the hub is away. Raise the error instead if no byte has come, and a person who has just chosen waits for it."""
    if patient:
        publisher.publish_soon(unavailable(chosen, HubUnavailable(error.title)))  # it is tried again by itself
    elif hub_download.is_begun(chosen.name, paths.models()):
        publisher.publish_soon(events.Warned(title=error.title, advice=Message("It is tried again by itself.")))
    else:
        raise error


class _Progress:
    """Reports the progress of a download and the time that remains, at its pace so far; keeps it under the traffic limit."""

    def __init__(
        self,
        report: Report,
        gate: PauseGate,
        limit: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._clock = clock
        self._gate = gate
        self._limit = limit
        self._here: int | None = None
        self._owed, self._paid_at = 0.0, clock()  # bytes beyond the limit, as of that time
        self._began: tuple[float, int] | None = None
        self._came_at = clock()
        self._reported = (0.0, 0)

    def __call__(self, here: int, total: int) -> None:
        """Called in the downloading thread after each piece. Waits during a pause; raises Stopped."""
        self._gate.sleep(0.0)  # raise Stopped: a thread that was left behind reports nothing
        now = self._clock()
        if self._began is None:
            self._began = (now, here)
        elif (missed := now - self._came_at) > MAX_PIECE_SECONDS:
            self._leave_out(missed)
        if now - self._reported[0] >= REPORT_SECONDS or (here - self._reported[1]) * 100 >= total:
            self._reported = (now, here)
            remaining = seconds_left(now - self._began[0], here - self._began[1], total - here)
            self._report(here, total, remaining)
        self._hold()
        self._owed += max(0, here - (here if self._here is None else self._here))
        self._here = here
        while (seconds := self._rest()) > 0:
            self._gate.sleep(seconds)
            self._hold()
        self._came_at = self._clock()

    def _hold(self) -> None:
        """Wait during a pause, and leave it out of the pace."""
        before = self._clock()
        self._gate.wait_until_open()
        self._leave_out(self._clock() - before)

    def _leave_out(self, seconds: float) -> None:
        if self._began is not None:
            since, here = self._began
            self._began = (since + seconds, here)

    def _rest(self) -> float:
        """The seconds to wait for the traffic limit, at most `MAX_REST_SECONDS`; the limit may change until then."""
        now, limit = self._clock(), self._limit()
        self._owed = max(0.0, self._owed - limit * (now - self._paid_at)) if limit else 0.0
        self._paid_at = now
        return min(MAX_REST_SECONDS, self._owed / limit) if self._owed else 0.0


def _report_conversion(publisher: EventPublisher, name: str, done: int, total: int, _remaining: float | None) -> None:
    """Publish the progress of a conversion that the engine's start waits for."""
    now = publisher.state.preparing
    part = Message("Converting %1: %2%", name, 100 * done // max(1, total))
    place = (now.done, now.parts) if now is not None else (0, 1)
    publisher.publish_soon(events.Preparing(part=part, done=place[0], parts=place[1], long=True))


class _ConversionProgress:
    """Reports each hundredth of a conversion."""

    def __init__(self, report: Report, gate: PauseGate) -> None:
        self._report, self._gate, self._reported = report, gate, -1

    def __call__(self, done: int, total: int) -> None:
        """Called in the converting thread after each piece. Raises Stopped."""
        self._gate.sleep(0.0)
        if (percent := 100 * done // total) != self._reported:
            self._reported = percent
            self._report(done, total, None)


def report_start(publisher: EventPublisher, name: str, here: int, total: int, remaining: float | None) -> None:
    """Publish the progress of a download that the engine's start waits for."""
    publisher.publish_soon(events.Downloading(model=name, done=here, total=total, seconds_left=remaining))


def seconds_left(elapsed: float, came: int, missing: int) -> float | None:
    """The seconds until a download ends; None before its first hundredth, and once nothing is missing: then it is checked."""
    return missing * elapsed / came if missing > 0 and came * 100 > came + missing else None


def _warn(publisher: EventPublisher, what: Message) -> None:
    publisher.publish_soon(events.Warned(title=what, advice=Message("It is downloaded again.")))
