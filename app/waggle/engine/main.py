"""The engine's main: prepares everything, contributes until told to stop, and turns any crash into one event.

Without `--stdio` it is a service: commands come through the control socket and SIGTERM, and stdin is ignored. With it,
stdin belongs to a window, and its end means leave; where a service has the folder, that one is followed.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from filelock import FileLock
from msgspec import structs

from waggle.core import paths, settings
from waggle.core.errors import EngineError, MemoryShort, ModelMissing, SettingsError, Stopped, WaggleError
from waggle.engine import attached_windows
from waggle.engine.command_handler import EngineHandler, NodeServices, Services
from waggle.engine.control import server, stdio
from waggle.engine.control.command_queue import NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM, CommandQueue
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.services import models, swarms
from waggle.engine.services.identity import IdentityService
from waggle.engine.startup import PreparedNode, prepare
from waggle.engine.storage.history import History
from waggle.engine.storage.history_recovery import open_or_rebuild
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.system.energy_meter import EnergyMeter
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.engine.system.resource_limits import GB, memory_used, set_priority
from waggle.engine.system.sensors import SensorReader
from waggle.engine.training_loop import TrainingLoop, TrainingPlan
from waggle.models.backend import let_go
from waggle.protocol import events, json_lines
from waggle.protocol.events_identity import Day
from waggle.protocol.events_swarms import StartedAgain

SENSOR_SECONDS = 2.0
HANDOVER_SECONDS, HANDOVER_POLL_SECONDS = (
    60.0,
    0.2,
)  # an engine that is still loading its model hears late that its window is gone
SMALLER_PARTS_ADVICE = "It goes on in smaller parts, which take less memory."
log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Run the engine to its end; the exit code."""
    events_descriptor = stdio.claim_stdout()
    writer = stdio.Writer(events_descriptor)
    try:
        return asyncio.run(_run(arguments, writer))
    finally:
        writer.close()


async def _run(arguments: argparse.Namespace, writer: stdio.Writer) -> int:
    queue = CommandQueue()
    _listen(queue, writer if arguments.stdio else None)
    try:
        home = _home(arguments.home)
        claimed = await _claimed(home, queue, writer, overruled=bool(arguments.set)) if arguments.stdio else server.claim(home)
        if claimed is None:
            return 0  # its window is gone, or followed an engine that was here already
        publisher = EventPublisher(home.events, service=not arguments.stdio)
    except (SettingsError, EngineError) as error:  # there is no place for a record, or it is another engine's
        return _not_begun(writer, error)
    except OSError as error:  # read-only, or full to the last byte
        title = f"The folder {home.root} cannot be written: {error.strerror}."
        return _not_begun(writer, EngineError(title, "Mend its rights, make room, or choose another."))
    publisher.attach(writer, writer.waiting)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(claimed.release)
        stack.callback(publisher.close)
        try:
            choices = LiveSettings(home.settings, tuple(arguments.set), publisher)
            queue.pause_request = PauseRequest(home.root / "asked.json")
            queue.back += models.undo_steps(home, choices.now.model, choices.change)
            queue.back += swarms.undo_steps(home, choices.now)
            backoff = MemoryBackoff(home)
            stack.callback(backoff.end)
            queue.leaving = backoff.end
            if queue.stopped:
                backoff.end()
            if backoff.was_killed:
                advice = SMALLER_PARTS_ADVICE if backoff.smaller else "Choose a smaller model, or close other programs."
                publisher.tell(events.Warned(title="The engine ran out of memory and was ended by the system.", advice=advice))
            set_priority(choices.now.computer.priority)  # before there are children
            follow = server.refuse_follower if arguments.stdio else attached_windows.follower(publisher, queue)
            await stack.enter_async_context(server.serving(home, queue.obey, follow))
            while await _contribute_or_go_back(home, choices, publisher, queue, backoff):
                pass
        except WaggleError as error:
            publisher.tell(events.EngineFailed(title=error.title, advice=error.advice))
            return 1
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):  # somebody ends it: no crash
            raise
        except BaseException as error:  # noqa: BLE001 - the one place where any crash becomes an event that a person can send us
            # a panic of what is written in Rust is no Exception
            publisher.tell(_crashed(error, queue))
            return 1
    return 0


def _not_begun(writer: stdio.Writer, error: WaggleError) -> int:
    """Report a failure before the event publisher exists: to the window, and on stderr for a service."""
    writer(json_lines.line(events.EngineFailed(seq=1, title=error.title, advice=error.advice, at=time.time())))
    log.error("failed: %s", error)
    return 1


def _crashed(error: BaseException, queue: CommandQueue) -> events.EngineFailed:
    """What was chosen and led here is taken back, so that the next start is no crash."""
    with contextlib.suppress(WaggleError):  # the disk says no: the crash is what is told
        queue.go_back(type(error))
    detail = "".join(traceback.format_exception(error))[-8000:]
    title = f"The engine met an unexpected error: {type(error).__name__}."
    return events.EngineFailed(title=title, advice="Copy the report and send it to us.", detail=detail)


async def _claimed(home: paths.Home, queue: CommandQueue, writer: stdio.Writer, *, overruled: bool) -> FileLock | None:
    """The folder, once an engine whose window has just gone has left it; None where this one's window is gone before that.

    An engine that no window started is followed for as long as the window likes, and then too the answer is None.

    Raises EngineError when that does not leave, OSError.
    """
    ends, announced = time.monotonic() + HANDOVER_SECONDS, False
    while not queue.stopped:
        try:
            return server.claim(home)
        except EngineError:
            if await attached_windows.follow(home, queue, writer, overruled=overruled):
                return None
            if time.monotonic() > ends:
                raise
        if not announced:
            part = "Waiting until another engine has left this folder"
            writer(json_lines.line(events.Preparing(part=part, done=0, parts=len(PARTS), seq=1, at=time.time())))
            announced = True
        await asyncio.sleep(HANDOVER_POLL_SECONDS)
    return None


def _home(chosen: Path | None) -> paths.Home:
    home = paths.home_in(chosen)
    try:
        return home.prepare()
    except OSError as error:
        raise SettingsError(f"The folder {home.root} cannot be used: {error.strerror}.", "Choose another with --home.") from error


async def _contribute_or_go_back(
    home: paths.Home, choices: LiveSettings, publisher: EventPublisher, queue: CommandQueue, backoff: MemoryBackoff
) -> bool:
    """A swarm that cannot be joined, or a model that cannot be had, must not be chosen for good. Raises WaggleError."""
    try:
        return await _contribute(home, choices, publisher, queue, backoff)
    except WaggleError as error:
        if undone := queue.go_back(type(error)):
            queue.reason = "Going back."
            publisher.tell(events.Warned(title=error.title, advice=undone[0].advice(error)))
            return True
        if not isinstance(error, MemoryShort) or queue.stopped or not backoff.more():
            raise
        publisher.tell(events.Warned(title=error.title, advice=SMALLER_PARTS_ADVICE))
        queue.reason = "Memory is short."
        return True


async def _contribute(
    home: paths.Home, choices: LiveSettings, publisher: EventPublisher, queue: CommandQueue, backoff: MemoryBackoff
) -> bool:
    """Prepare and play until stopped; whether to do so again, by what was chosen meanwhile. Raises WaggleError."""
    await swarms.retry_direct_connection(home, choices.now)
    chosen = swarms.with_chosen_swarm(home, choices.begin())
    let_go()
    backoff.begin(chosen.model.name or chosen.model.folder)
    loop = asyncio.get_running_loop()
    policy_thread = ThreadPoolExecutor(1, thread_name_prefix="policy")
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(policy_thread.shutdown)
        home = model_source.home_of(home, chosen.model).prepare()
        history = await _history(home, chosen, publisher)
        stack.callback(history.close)
        lifecycle = Lifecycle(publisher, chosen.when, queue.pause_request)
        choices.applied.append(lambda now: lifecycle.follow(now.when))
        choices.apply_to(_prioritise)
        stack.callback(lifecycle.stop)  # also where this fails: a pause of it that ends later is not the next one's
        if queue.reason:
            publisher.tell(StartedAgain(reason=queue.reason))
        fits: Future[models.Fits] = Future()
        services = Services(
            identity=IdentityService(home, lifecycle.start_again),
            models=models.ModelService(
                home, chosen, choices.change, partial(lifecycle.start_again, innocent=NOT_CAUSED_BY_MODEL), fits
            ),
            swarms=swarms.SwarmService(
                home, chosen, partial(lifecycle.start_again, innocent=NOT_CAUSED_BY_SWARM), choices.change,
                lambda: choices.now.swarm.light,
            ),
            change_settings=choices.change,
        )  # fmt: skip
        handler = EngineHandler(lifecycle, publisher, history, services)
        queue.sit(handler)
        stack.callback(queue.rise)
        looking = asyncio.ensure_future(_look_around(lifecycle, choices, publisher, backoff, services.identity.days))
        looking.add_done_callback(lambda done: lifecycle.stop() if _failed(done) else None)
        stack.push_async_callback(_end, looking)
        try:
            prepared = await prepare(
                home, chosen, publisher, policy_thread, stack, gate=lifecycle.gate, stopped=lifecycle.stopped,
                divided=backoff.divided, computer=lambda: choices.now.computer, may_share=choices.may_share,
                patient=not (queue.reason and queue.to_blame(ModelMissing)),
            )  # fmt: skip
        except (Stopped, WaggleError) as error:
            _raise_faults(looking)
            if isinstance(error, WaggleError) and not lifecycle.restart_reason:
                raise
            # in the middle of a download, which keeps what has come; or something else was chosen than what cannot begin
            return _ended(lifecycle, publisher, queue, publisher.state.round)
        first_round_ended = partial(loop.call_soon_threadsafe, _has_begun, queue, services.swarms.begun, services.models.begun)
        contribution = _contribution(chosen, prepared, history, lifecycle, publisher, first_round_ended)
        node = NodeServices(
            choose_peer=prepared.choose_peer, sent=prepared.sent, playground=prepared.trying, chat=prepared.talking
        )
        choices.apply_to(
            lambda now: prepared.limits.hold(now.computer), prepared.follow, lambda now: backoff.allow(now.computer.memory_gb)
        )
        await services.swarms.joined(prepared.node.charter, prepared.addresses)
        fits.set_result(prepared.fits)
        queue.sit(replace(handler, node=node))
        lifecycle.begin()
        watching = asyncio.ensure_future(prepared.watch_swarm())
        watching.add_done_callback(lambda done: lifecycle.stop() if _failed(done) else None)
        # a stop opens the gate for good, so that this is the only thing to wait for
        await loop.run_in_executor(policy_thread, contribution.run)
        _raise_faults(watching, looking)
        await _end(watching)
    return _ended(lifecycle, publisher, queue, contribution.round)


def _prioritise(now: settings.Settings) -> tuple[str, ...]:
    """Named where this system lets it change only at the next start."""
    return () if set_priority(now.computer.priority) else ("computer.priority",)


async def _history(home: paths.Home, chosen: settings.Settings, publisher: EventPublisher) -> History:
    """Opened, and rebuilt where it was damaged; raises HistoryError."""
    history, rebuilt = await asyncio.to_thread(open_or_rebuild, home.model.history, home.events, chosen.model)
    if rebuilt:
        publisher.tell(
            events.Warned(
                title=f"The history was damaged; {rebuilt.rounds} rounds of it were rebuilt from the record of events.",
                advice=f"The damaged file is kept as {rebuilt.aside}.",
            )
        )
    return history


def _has_begun(queue: CommandQueue, *begun: Callable[[], None]) -> None:
    queue.back.clear()
    for each in begun:
        each()


def _ended(lifecycle: Lifecycle, publisher: EventPublisher, queue: CommandQueue, number: int) -> bool:
    """Whether this end is the beginning of something else."""
    queue.reason = "" if queue.stopped else lifecycle.restart_reason
    queue.back += lifecycle.back
    if not queue.reason:
        publisher.tell(events.EngineStopped(round=number))
    return bool(queue.reason)


def _spare_memory(lifecycle: Lifecycle, publisher: EventPublisher, backoff: MemoryBackoff, cap_gb: float) -> bool:
    """More memory is used than the person allows: begin again in smaller parts; False where there are none."""
    words = f"The engine used more than the {cap_gb:g} GB of memory that you allow"
    if not backoff.more():
        lifecycle.hindered(MemoryShort(f"{words}, also in its smallest parts.", "Allow more: computer.memory_gb."))
        return False
    publisher.tell(events.Warned(title=f"{words}.", advice=SMALLER_PARTS_ADVICE))
    lifecycle.start_again("Memory is short.")
    return True


async def _look_around(
    lifecycle: Lifecycle, choices: LiveSettings, publisher: EventPublisher, backoff: MemoryBackoff,
    days: Callable[[], Iterable[Day]] = tuple,
) -> None:  # fmt: skip
    """See what the rules ask about, again and again."""
    read, short, meter = SensorReader(), False, EnergyMeter(await asyncio.to_thread(days))
    while True:
        readings = await asyncio.to_thread(read, choices.now.when, until_away=lifecycle.until_away)
        used = meter.read(lifecycle.gate.seconds, publisher.state, choices.now.computer, publisher.now())
        lifecycle.consider(structs.replace(readings, kwh_today=used))
        cap = choices.now.computer.memory_gb
        playing = publisher.state.phase in ("contributing", "finishing", "waiting") and not lifecycle.restart_reason
        if cap and playing and await asyncio.to_thread(memory_used) > cap * GB:
            short = not _spare_memory(lifecycle, publisher, backoff, cap)
        elif short:
            short = False
            lifecycle.hindered(None)
        elif publisher.state.phase == "contributing":
            backoff.sufficed(SENSOR_SECONDS)
        await asyncio.sleep(SENSOR_SECONDS)


async def _end(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait until it is gone, and with it the model that it held."""
    task.cancel()
    await asyncio.wait([task])


def _raise_faults(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        if _failed(task):
            task.result()


def _failed(task: asyncio.Future[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _contribution(
    chosen: settings.Settings, prepared: PreparedNode, history: History, lifecycle: Lifecycle, publisher: EventPublisher,
    first_round_ended: Callable[[], object],
) -> TrainingLoop:  # fmt: skip
    policy = prepared.opened.policy
    plan = TrainingPlan(
        base=prepared.base,
        hub=prepared.hub,
        held_out=prepared.held_out,
        held_out_every=chosen.learning.held_out_every,
    )
    return TrainingLoop(
        node=prepared.node,
        rules=prepared.rules,
        plan=plan,
        history=history,
        gate=lifecycle.gate,
        tell=publisher.tell_soon,
        round=prepared.round,
        completions=prepared.completions,
        learned=prepared.learned,
        sit=prepared.sit,
        steps=lambda: policy.steps,
        save=prepared.keeper.keep,
        leave=prepared.keeper.leave,
        hindered=lifecycle.hindered,
        before_round=prepared.limits.before_round,
        round_ended=lifecycle.round_ended,
        first_round_ended=first_round_ended,
    )


def _listen(queue: CommandQueue, writer: stdio.Writer | None) -> None:
    """Take commands from stdin (where a window writes them) and stop signals."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows has no signals on the loop: stdin's end and ctl remain
            loop.add_signal_handler(name, queue.stop)
    if writer is None:
        return
    answering: set[asyncio.Task[None]] = set()

    async def answer(line: bytes) -> None:
        for event in await server.answers_to(line, queue.obey):
            writer(json_lines.line(event))

    def got(line: bytes) -> None:
        task = loop.create_task(answer(line))
        answering.add(task)
        task.add_done_callback(answering.discard)

    stdio.read_lines(loop, got, queue.stop)
