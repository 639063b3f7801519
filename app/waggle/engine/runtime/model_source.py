"""Finds the model that was chosen: a folder, a model of the hub, which is downloaded where it is not here, or the starter."""

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
from waggle.core.settings import ModelSettings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.models.storage import checkpoint, hub_download
from waggle.protocol import events

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0  # seconds; and every hundredth of it
MAX_PIECE_SECONDS = 60.0  # seconds that one may take: in a longer time the hub was away, or the computer asleep
MAX_REST_SECONDS = 1.0  # seconds between two looks how much traffic is allowed
MAX_AWAY_SECONDS = 60  # seconds until a hub that is away is asked again
AWAY_REPORT_EVERY = 10  # times that it is asked, until that is told once more
DOWNLOAD_LOCKS: defaultdict[str, threading.Lock] = defaultdict(
    threading.Lock
)  # a stopped download may have a while to go to its end


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`models.json`: the model whose training lies in the home itself, and the one that a round was played with last."""

    folder: str
    name: str
    before: ModelSettings | None = None


async def find(
    chosen: ModelSettings, publisher: EventPublisher, gate: PauseGate, stopped: asyncio.Event,
    examine: Callable[[Path], None] = lambda folder: None,
    *, limit: Callable[[], float] = lambda: 0.0, patient: bool = False, commit: str = "",
) -> Path:  # fmt: skip
    """The folder of the model. A pause holds a download, and `stopped` ends it at once: raises Stopped, or ModelMissing.

    `examine` may refuse a model of which only the configuration has come; `limit` is how many bytes a second may come now
    (0: however many there are), `commit` what to download (see hub.fetch). A hub that is away is waited for: in the middle of a
    download, and before it where `patient`.
    """
    try:
        if not chosen.name or is_here(chosen.name):
            return folder_of(chosen)
        return await _downloaded(chosen, publisher, gate, stopped, examine, limit=limit, patient=patient, commit=commit)
    except ModelError as error:
        raise ModelMissing(error.title, error.advice) from error


async def _downloaded(
    chosen: ModelSettings, publisher: EventPublisher, gate: PauseGate, stopped: asyncio.Event, examine: Callable[[Path], None],
    *, limit: Callable[[], float], patient: bool, commit: str,
) -> Path:  # fmt: skip
    tell = _Progress(chosen.name, publisher, gate, limit)
    warn = partial(_warn, publisher)
    fetch = partial(
        hub_download.fetch, chosen.name, paths.models(), tell, warn=warn, token=hub_token.stored, examine=examine, commit=commit
    )  # fmt: skip
    away = partial(_tell_away, chosen.name, publisher, patient)
    fetched = _start_thread(partial(_fetch_with_retries, chosen.name, gate, fetch, away))
    stopping = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((fetched, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set():
        raise Stopped
    stopping.cancel()
    return fetched.result()


def folder_of(chosen: ModelSettings) -> Path:
    """The folder of a model that must be here already; raises ModelError."""
    if chosen.name and not is_here(chosen.name):
        raise ModelError(f"{chosen.name} is not on this computer yet.", "`waggle engine` downloads it.")
    if chosen.name:
        return hub_download.model_of(chosen.name, paths.models()).folder
    folder = Path(os.path.expanduser(chosen.folder)) if chosen.folder else paths.starter()
    for name in hub_download.NEEDED:
        if not (folder / name).is_file():
            raise ModelError(
                f"There is no model in {folder}: {name} is missing.",
                "Check model.folder in the settings, or remove that line to use the starter.",
            )
    return folder


def home_of(home: paths.Home, chosen: ModelSettings) -> paths.Home:
    """The home, with the place where what is trained of this model is kept: its own, where another model was here first."""
    was, top = read_record(home), replace(home, model_root=None)
    if _may_be_of(top.model.checkpoints, chosen) if was is None else (was.folder, was.name) == (chosen.folder, chosen.name):
        return top
    name = chosen.name.replace("/", "--")
    if chosen.folder:
        name = hashlib.sha256(chosen.folder.encode()).hexdigest()[:16]
    return replace(home, model_root=home.root / "models" / (name or "starter"))


def read_record(home: paths.Home) -> ModelRecord | None:
    """None where it was never written down."""
    try:
        return msgspec.json.decode((home.root / "models.json").read_bytes(), type=ModelRecord)
    except (OSError, *UNREADABLE):  # never written, or damaged: then the checkpoints themselves say whose they are
        return None


def _may_be_of(checkpoints: Path, chosen: ModelSettings) -> bool:
    """Whether nothing there is known to be of another model: of one that is not here, all but what the starter has learned."""
    saved, base = checkpoint.glanced(checkpoints), _base(chosen)
    return saved is None or (checkpoint.is_of(saved, base) if base else not checkpoint.is_of(saved, _base(ModelSettings())))


def _base(chosen: ModelSettings) -> str:
    """Empty for a model that is not on this computer."""
    try:
        return checkpoint.base_of(folder_of(chosen))
    except (ModelError, OSError):  # opening it will report what is wrong
        return ""


def is_here(name: str) -> bool:
    """Whether a model of the hub is complete on this computer; raises ModelError for what is no name."""
    return hub_download.model_of(name, paths.models()).folder.is_dir()


def _start_thread(work: Callable[[], Path]) -> asyncio.Future[Path]:
    """Do it in a thread that may be left behind in the middle of waiting for the network: it never keeps the engine alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Path] = loop.create_future()
    done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody asks for it after a stop

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def run() -> None:
        try:
            folder = work()
        except BaseException as error:  # noqa: BLE001 - raised in the waiting task, which would otherwise wait for ever
            outcome = partial(done.set_exception, error)
        else:
            outcome = partial(done.set_result, folder)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, name="download", daemon=True).start()
    return done


def _fetch_with_retries(name: str, gate: PauseGate, fetch: Callable[[], Path], away: Callable[[HubUnavailable], None]) -> Path:
    """Once the download of before, of an engine that started again in this process, has left the model alone; raises Stopped.

    A hub that is away is asked again, ever less often, unless `away` raises its error; it hears of it now and then.
    """
    seconds, rested = 1, 0
    with DOWNLOAD_LOCKS[name]:
        gate.rest(0.0)  # a pause holds it from the first piece on: whether there is such a model can be asked before
        while True:
            try:
                return fetch()
            except HubUnavailable as error:
                gate.rest(0.0)  # who was left meanwhile tells nothing more
                if rested % AWAY_REPORT_EVERY == 0:
                    away(error)
                log.debug("the hub is away, retry of %s in %d s: %s", name, seconds, error)
            for _ in range(seconds):
                gate.rest(MAX_REST_SECONDS)
                gate.hold()
            rested += 1
            seconds = min(MAX_AWAY_SECONDS, 2 * seconds)


def _tell_away(name: str, publisher: EventPublisher, patient: bool, error: HubUnavailable) -> None:
    """Raises it where nobody knows whether there is such a model, and who has just chosen it is there to hear of it."""
    if not (patient or hub_download.is_begun(name, paths.models())):
        raise error
    publisher.tell_soon(events.Warned(title=error.title, advice="It is tried again by itself."))


class _Progress:
    """Tells how far a download is, and how long the rest takes at the pace since it began here; holds it to its limit."""

    def __init__(
        self,
        name: str,
        publisher: EventPublisher,
        gate: PauseGate,
        limit: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._clock = clock
        self._publisher = publisher
        self._gate = gate
        self._limit = limit
        self._here: int | None = None
        self._owed, self._paid_at = 0.0, clock()  # bytes that came and were not rested off, when that was looked at
        self._began: tuple[float, int] | None = None
        self._came_at = clock()
        self._reported = (0.0, 0)

    def __call__(self, here: int, total: int) -> None:
        """Called by the downloading thread after every piece; waits while paused, raises Stopped when the engine ends."""
        self._gate.rest(0.0)  # who was left meanwhile tells nothing more
        now = self._clock()
        if self._began is None:
            self._began = (now, here)
        elif (missed := now - self._came_at) > MAX_PIECE_SECONDS:
            self._leave_out(missed)
        if now - self._reported[0] >= REPORT_SECONDS or (here - self._reported[1]) * 100 >= total:
            self._reported = (now, here)
            remaining = seconds_left(now - self._began[0], here - self._began[1], total - here)
            self._publisher.tell_soon(events.Downloading(model=self._name, done=here, total=total, seconds_left=remaining))
        self._hold()
        self._owed += max(0, here - (here if self._here is None else self._here))
        self._here = here
        while (seconds := self._rest()) > 0:
            self._gate.rest(seconds)
            self._hold()
        self._came_at = self._clock()

    def _hold(self) -> None:
        """A pause is no part of the pace."""
        before = self._clock()
        self._gate.hold()
        self._leave_out(self._clock() - before)

    def _leave_out(self, seconds: float) -> None:
        if self._began is not None:
            since, here = self._began
            self._began = (since + seconds, here)

    def _rest(self) -> float:
        """For how long nothing more may come, as far as can be said now."""
        now, limit = self._clock(), self._limit()
        self._owed = max(0.0, self._owed - limit * (now - self._paid_at)) if limit else 0.0
        self._paid_at = now
        return min(MAX_REST_SECONDS, self._owed / limit) if self._owed else 0.0


def seconds_left(elapsed: float, came: int, missing: int) -> float | None:
    """None while too little has come to say so."""
    return missing * elapsed / came if came * 100 > came + missing else None


def _warn(publisher: EventPublisher, what: str) -> None:
    publisher.tell_soon(events.Warned(title=what, advice="It is downloaded again."))
