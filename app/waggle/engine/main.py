"""The engine's main: puts an engine together (its node in startup/), contributes until a stop, and restarts.

Without `--stdio` the engine is a service: commands come through the control socket and SIGTERM, and stdin is ignored. With it,
stdin belongs to a window, and its end ends the engine; if a service already has the home folder, the window follows that one.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock

from waggle.core import paths, settings
from waggle.core.errors import EngineError, MemoryShort, ModelMissing, SettingsError, Stopped, WaggleError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.engine import attached_windows
from waggle.engine.command_handler import EngineHandler, Services
from waggle.engine.computer_watch import SMALLER_PARTS_ADVICE, watch_computer
from waggle.engine.control import server, stdio
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime import model_fit, model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM, UndoLog
from waggle.engine.services.identity import IdentityService
from waggle.engine.services.models import models
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.services.own_questions import OwnQuestionsService
from waggle.engine.services.swarms import ended_swarms, reputation_recovery, swarm_recovery, swarms
from waggle.engine.services.training_figures import TrainingFigures
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.node import PreparedNode, prepare_node
from waggle.engine.storage.history import History
from waggle.engine.storage.history_recovery import fill_in, open_or_rebuild
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.storage.tracking.round_tracker import RoundTracker, tools_of
from waggle.engine.system import energy_meter, session_end
from waggle.engine.system.keep_awake import KeepAwake
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.engine.system.opening_note import OpeningNote
from waggle.engine.system.resource_limits import set_priority
from waggle.engine.training_loop import LoopCallbacks, TrainingLoop
from waggle.models.backend import release_memory
from waggle.protocol import events, json_lines
from waggle.protocol.events_swarms import StartedAgain
from waggle.tasks.sandbox import windows_job

MEASURE_SECONDS = 20.0  # to wait for the policy thread, which a pause may hold
HANDOVER_SECONDS = 60.0  # an engine that is still loading its model notices late that its window is gone
HANDOVER_POLL_SECONDS = 0.2
CRASH_CHARACTERS = 8000  # of a traceback, from its end: it goes into one event
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProcessResources:
    """What lives as long as the process, in which the engine may restart several times."""

    home: paths.Home
    live_settings: LiveSettings
    publisher: EventPublisher
    queue: CommandQueue
    backoff: MemoryBackoff
    pause_request: PauseRequest
    undo_log: UndoLog
    download: ChoiceDownload
    until_round: int | None = None  # the engine ends once the model has played so many; None: it plays until a stop


def run(arguments: argparse.Namespace, make_writer: Callable[[int], stdio.LineWriter] = stdio.Writer) -> int:
    """Run the engine to its end; return the exit code. `make_writer` takes the descriptor of what was stdout."""
    windows_job.end_children_with_this_process()
    writer = make_writer(stdio.claim_stdout())
    try:
        return asyncio.run(_run(arguments, writer))
    finally:
        writer.close()


async def _run(arguments: argparse.Namespace, writer: stdio.LineWriter) -> int:
    queue, undo_log = CommandQueue(), UndoLog()
    _listen(queue, writer if arguments.stdio else None)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(queue.stop)

    with session_end.stop_at_session_end(stop):
        return await _run_until_stopped(arguments, writer, queue, undo_log)


async def _run_until_stopped(
    arguments: argparse.Namespace, writer: stdio.LineWriter, queue: CommandQueue, undo_log: UndoLog
) -> int:
    try:
        home = _home(arguments.home)
        if arguments.stdio:
            lock = await _claim_or_follow(home, queue, writer, has_overrides=bool(arguments.set))
        else:
            lock = server.claim_home(home)
        if lock is None:
            return 0  # the window is gone, or it followed a service to its end
        publisher = EventPublisher(home.events, service=not arguments.stdio)
    except (SettingsError, EngineError) as error:  # there is no place for a record, or another engine has it
        return _report_failed_start(writer, error)
    except OSError as error:  # read-only, or full to the last byte
        fault = fault_of(error)
        failed = EngineError(Message("The folder %1 cannot be written: %2.", home.root, fault.reason), fault.advice)
        return _report_failed_start(writer, failed)
    publisher.attach(writer, writer.unwritten_bytes)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(lock.release)  # last of all: the next engine may write to the home as soon as it has the lock
        stack.callback(publisher.close)
        try:
            live_settings = LiveSettings(home.settings, tuple(arguments.set), publisher)
            pause_request = PauseRequest(home.root / "asked.json")
            if pause_request.aside is not None:
                publisher.publish(
                    events.Warned(
                        title=Message("Whether you had paused could not be read, so the engine is paused."),
                        advice=Message("Resume it when you like. The old file is kept as %1.", pause_request.aside),
                    )
                )
            backoff = MemoryBackoff(home)
            OpeningNote(home).start(retry=backoff.started_smaller)
            undo_log.add(models.undo_steps(home, live_settings.now.model, live_settings.change))
            _recover_swarms(home, live_settings.now, publisher)
            if (warned := reputation_recovery.recover(home)) is not None:
                publisher.publish(warned)
            if (warned := ended_swarms.leave_ended_swarms(home)) is not None:
                publisher.publish(warned)
                active = swarms.with_chosen_swarm(home, live_settings.now)
                ended_swarms.drop_other_specialties(active, live_settings.change)
            undo_log.add(swarms.undo_steps(home, live_settings.now))
            stack.callback(backoff.mark_orderly_exit)
            queue.call_on_stop(backoff.mark_orderly_exit)  # at once: a slow end may be cut short by a kill
            queue.call_on_stop(OpeningNote(home).end)
            if backoff.was_killed:
                advice = (
                    SMALLER_PARTS_ADVICE
                    if backoff.started_smaller
                    else Message("Choose a smaller model, or close other programs.")
                )
                publisher.publish(
                    events.Warned(title=Message("The engine ran out of memory and was ended by the system."), advice=advice)
                )
            set_priority(live_settings.now.computer.priority)  # before there are child processes, which inherit it
            follow = server.refuse_follower if arguments.stdio else attached_windows.follow_handler(publisher, queue)
            await stack.enter_async_context(server.serve(home, queue.obey, follow))
            download = ChoiceDownload(publisher, lambda: live_settings.now.computer.traffic_kb * 1e3)
            stack.callback(download.cancel)
            process = ProcessResources(
                home, live_settings, publisher, queue, backoff, pause_request, undo_log, download, arguments.until_round
            )
            restart_reason = await _contribute_or_undo(process, "")
            while restart_reason:
                restart_reason = await _contribute_or_undo(process, restart_reason)
        except WaggleError as error:
            publisher.publish(events.EngineFailed(title=error.title, advice=error.advice))
            return 1
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):  # somebody ends it: no crash
            raise
        except BaseException as error:  # noqa: BLE001 - the one place where a crash becomes an event that a person can send us
            # not Exception: a panic in a Rust extension is a BaseException
            publisher.publish(_crash_event(error, undo_log))
            return 1
    return 0


def _report_failed_start(writer: stdio.LineWriter, error: WaggleError) -> int:
    """Report a failure before there is a publisher: to the window, and on stderr for a service."""
    writer(json_lines.line(events.EngineFailed(seq=1, title=error.title, advice=error.advice, at=time.time())))
    log.error("failed: %s", error)
    return 1


def _crash_event(error: BaseException, undo_log: UndoLog) -> events.EngineFailed:
    """Undo the choices that may have led to the crash, so that the next start does not crash again; return the event."""
    with contextlib.suppress(WaggleError):  # the disk refuses: the crash is what matters
        undo_log.undo(type(error))
    detail = "".join(traceback.format_exception(error))[-CRASH_CHARACTERS:]
    title = Message("The engine met an unexpected error: %1.", type(error).__name__)
    return events.EngineFailed(title=title, advice=Message("Copy the report and send it to us."), detail=detail)


async def _claim_or_follow(
    home: paths.Home, queue: CommandQueue, writer: stdio.LineWriter, *, has_overrides: bool
) -> FileLock | None:
    """Lock the home for the engine of a window, and wait while the engine of a window that has just closed leaves it.

    Return None if the window closed meanwhile. If a service has the home, follow it until the window closes, and return None.
    Raises EngineError if the other engine does not leave, and OSError.
    """
    deadline, is_announced = time.monotonic() + HANDOVER_SECONDS, False
    while not queue.stopped:
        try:
            return server.claim_home(home)
        except EngineError:
            if await attached_windows.follow_service(home, queue, writer, has_overrides=has_overrides):
                return None
            if time.monotonic() > deadline:
                raise
        if not is_announced:
            part = Message("Waiting until another engine has left this folder")
            writer(json_lines.line(events.Preparing(part=part, done=0, parts=len(PARTS), seq=1, at=time.time())))
            is_announced = True
        await asyncio.sleep(HANDOVER_POLL_SECONDS)
    return None


def _home(folder: Path | None) -> paths.Home:
    home = paths.home_in(folder)
    try:
        return home.prepare()
    except OSError as error:
        reason = fault_of(error).reason
        raise SettingsError(
            Message("The folder %1 cannot be used: %2.", home.root, reason), "Choose another with --home."
        ) from error


async def _contribute_or_undo(process: ProcessResources, restart_reason: str) -> str:
    """Contribute. After a failure, undo the choices that may have caused it, or use less memory, and restart.

    Takes the reason of this restart and returns that of the next one; empty: none. Raises WaggleError where neither helps.
    """
    publisher = process.publisher
    try:
        return await _contribute(process, restart_reason)
    except WaggleError as error:
        if steps := process.undo_log.undo(type(error)):
            publisher.publish(events.Warned(title=error.title, advice=steps[0].advice(error)))
            return "Going back."
        if not isinstance(error, MemoryShort) or process.queue.stopped or not process.backoff.back_off():
            raise
        publisher.publish(events.Warned(title=error.title, advice=SMALLER_PARTS_ADVICE))
        return "Memory is short."


async def _contribute(process: ProcessResources, restart_reason: str) -> str:
    """Prepare a node and play rounds until a stop; return why the engine restarts, empty if it ends. Raises WaggleError."""
    live_settings, publisher, queue, backoff = process.live_settings, process.publisher, process.queue, process.backoff
    _recover_swarms(process.home, live_settings.now, publisher)
    await swarms.retry_direct_connection(process.home, live_settings.now)
    chosen = swarms.with_chosen_swarm(process.home, live_settings.begin())
    release_memory()
    backoff.use_model(chosen.model.name or chosen.model.folder)
    loop = asyncio.get_running_loop()
    policy_thread = ThreadPoolExecutor(1, thread_name_prefix="policy")
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(policy_thread.shutdown)
        home = (await asyncio.to_thread(model_source.home_of, process.home, chosen.model)).prepare()
        history = await _open_history(home, chosen, publisher)
        stack.callback(history.close)
        lifecycle = Lifecycle(publisher, chosen.when, process.pause_request)
        live_settings.call_on_change(lambda now: lifecycle.apply_rules(now.when))
        live_settings.call_on_change(partial(_end_question, lifecycle, publisher))
        live_settings.apply(_apply_priority)
        stack.callback(lifecycle.stop)  # also after a failure: its timer must not end the pause of the next lifecycle
        _track_rounds(chosen.tracking, publisher, stack)
        if restart_reason:
            publisher.publish(StartedAgain(reason=restart_reason))
        preparation = asyncio.ensure_future(
            prepare_node(
                home, chosen, NodeHost(
                    publisher, policy_thread, lifecycle.gate, lifecycle.stopped,
                    TrainingFigures(lambda: publisher.state, history),
                ),
                LiveChoices(lambda: live_settings.now.computer, live_settings.may_share),
                ModelOpening(
                    backoff.parts_for, lifecycle.restart,
                    patient=not (restart_reason and process.undo_log.suspects(ModelMissing)),
                ),
                stack,
            )
        )  # fmt: skip
        stack.push_async_callback(_cancel, preparation)
        node = partial(_node_if_ready, preparation)
        services = Services(
            identity=IdentityService(home, lifecycle.restart),
            models=models.ModelService(
                home, chosen, live_settings.change, partial(lifecycle.restart, unrelated=NOT_CAUSED_BY_MODEL), process.download,
                models.Measured(
                    lambda: prepared.machine if (prepared := node()) else None,
                    lambda: policy_thread.submit(model_fit.measure_machine, chosen).result(MEASURE_SECONDS),
                ),
                lambda: prepared.current if (prepared := node()) else None,
            ),
            swarms=swarms.SwarmService(
                home, chosen, partial(lifecycle.restart, unrelated=NOT_CAUSED_BY_SWARM), live_settings.change,
                lambda: live_settings.now.swarm.light, lambda: prepared.current_swarm if (prepared := node()) else None,
            ),
            questions=OwnQuestionsService(lambda: prepared.services.playground if (prepared := node()) else None),
            change_settings=live_settings.change,
        )  # fmt: skip
        handler = EngineHandler(
            lifecycle, publisher, history, home, services, lambda: prepared.services if (prepared := node()) else None
        )
        queue.attach(handler)
        stack.callback(queue.detach)
        process.download.attach(services.models)
        stack.callback(process.download.detach)
        awake = KeepAwake()
        stack.callback(awake.close)
        computer_watch = asyncio.ensure_future(
            watch_computer(
                lifecycle,
                live_settings,
                publisher,
                backoff,
                services.identity.days,
                home.root / energy_meter.NAME,
                node,
                awake,
            )
        )
        computer_watch.add_done_callback(lambda done: lifecycle.stop() if _has_failed(done) else None)
        stack.push_async_callback(_cancel, computer_watch)
        try:
            prepared = await preparation
        except (Stopped, WaggleError) as error:
            _raise_failures(computer_watch)
            if isinstance(error, WaggleError) and not lifecycle.restart_reason:
                raise
            # stopped in a download, which keeps what has come; or a person chose something else than what cannot start
            return _end(process, lifecycle, publisher.state.round)
        first_round_ended = partial(
            loop.call_soon_threadsafe, _accept_choices, process.undo_log, services.swarms.mark_played, services.models.mark_played
        )
        await _fill_history(history, home, chosen, publisher, prepared.progress.round)
        training_loop = _training_loop(prepared, history, lifecycle, publisher, first_round_ended)
        live_settings.apply(
            lambda now: prepared.limits.apply(now.computer),
            prepared.apply_settings,
            lambda now: backoff.apply_limit(now.computer.memory_gb),
        )
        await services.swarms.store_port(prepared.current_swarm)
        lifecycle.start_contributing()
        swarm_watch = asyncio.ensure_future(prepared.watch_swarm())
        swarm_watch.add_done_callback(lambda done: lifecycle.stop() if _has_failed(done) else None)
        # the only thing to wait for: a stop, and so each failure above, opens the gate for good and ends the loop
        await loop.run_in_executor(policy_thread, training_loop.run, process.until_round)
        _raise_failures(swarm_watch, computer_watch)
        await _cancel(swarm_watch)
    return _end(process, lifecycle, training_loop.round)


def _track_rounds(chosen: settings.TrackingSettings, publisher: EventPublisher, stack: contextlib.AsyncExitStack) -> None:
    """Hand the figures of rounds to the tools of research that the settings name."""
    if tools := tools_of(chosen, publisher.publish):
        tracker = RoundTracker(tools, publisher.publish_soon)
        stack.callback(tracker.close)
        stack.callback(publisher.attach(tracker))


def _recover_swarms(home: paths.Home, chosen: settings.Settings, publisher: EventPublisher) -> None:
    """Rebuild a list of swarms that was lost. Raises SwarmError."""
    if chosen.swarm.charter and not home.swarms.exists():  # whoever names the swarm in the settings needs no list
        return
    if (warned := swarm_recovery.recover(home)) is not None:
        publisher.publish(warned)


def _end_question(lifecycle: Lifecycle, publisher: EventPublisher, now: settings.Settings) -> tuple[str, ...]:
    """Restart if a person lets the model train alone while the engine asks for a swarm."""
    if publisher.state.undecided is not None and now.swarm.solo:
        lifecycle.restart("Training alone.")
    return ()


def _apply_priority(now: settings.Settings) -> tuple[str, ...]:
    """Return the setting's name where this system lets it change only at the next start."""
    return () if set_priority(now.computer.priority) else ("computer.priority",)


async def _open_history(home: paths.Home, chosen: settings.Settings, publisher: EventPublisher) -> History:
    """Open the history, and rebuild it if it is damaged. Raises HistoryError."""
    history, rebuilt = await asyncio.to_thread(open_or_rebuild, home.model.history, home.events, chosen.model)
    if rebuilt:
        publisher.publish(
            events.Warned(
                title=Message("The history was damaged; %1 rounds of it were rebuilt from the record of events.", rebuilt.rounds),
                advice=Message("The damaged file is kept as %1.", rebuilt.aside),
            )
        )
    return history


async def _fill_history(
    history: History, home: paths.Home, chosen: settings.Settings, publisher: EventPublisher, number: int
) -> None:
    """Add the rounds that the model has and the history does not, as far as the record has them. Raises HistoryError."""
    added = await asyncio.to_thread(fill_in, history, home.model.history, home.events, chosen.model, number)
    if added:
        publisher.publish(
            events.Warned(
                title=Message("The history was older than the model. Restored rounds: %1.", added),
            )
        )


def _accept_choices(undo_log: UndoLog, *mark_played: Callable[[], None]) -> None:
    """A round was played with the chosen model and swarm: no later failure undoes these choices."""
    undo_log.clear()
    for mark in mark_played:
        mark()


def _end(process: ProcessResources, lifecycle: Lifecycle, number: int) -> str:
    """Hand the choices of this run to the next one; return why the engine restarts, empty if it ends."""
    restart_reason = "" if process.queue.stopped else lifecycle.restart_reason
    process.undo_log.add(lifecycle.undo_steps)
    if not restart_reason:
        process.publisher.publish(events.EngineStopped(round=number))
    return restart_reason


async def _cancel(task: asyncio.Future[None] | asyncio.Future[PreparedNode]) -> None:
    """Cancel a task and wait until it has ended, so that what it refers to can be freed."""
    task.cancel()
    await asyncio.wait([task])


def _node_if_ready(preparation: asyncio.Future[PreparedNode]) -> PreparedNode | None:
    """The node, or None while the engine starts and after a failed start."""
    is_ready = preparation.done() and not preparation.cancelled() and preparation.exception() is None
    return preparation.result() if is_ready else None


def _raise_failures(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        if _has_failed(task):
            task.result()


def _has_failed(task: asyncio.Future[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _training_loop(
    prepared: PreparedNode, history: History, lifecycle: Lifecycle, publisher: EventPublisher,
    first_round_ended: Callable[[], object],
) -> TrainingLoop:  # fmt: skip
    callbacks = LoopCallbacks(
        publish=publisher.publish_soon,
        save=prepared.saver.save,
        flush=prepared.saver.flush,
        report_blocker=lifecycle.report_blocker,
        round_ended=lifecycle.handle_round_end,
        before_round=prepared.limits.before_round,
        first_round_ended=first_round_ended,
        take_exam=prepared.take_exam,
        review_length=prepared.answer_limit.review,
    )
    return TrainingLoop(prepared.node, prepared.plan, prepared.progress, history, lifecycle.gate, callbacks)


def _listen(queue: CommandQueue, writer: stdio.LineWriter | None) -> None:
    """Take commands from stdin, where a window writes them, and stop signals."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows has no signals on the loop: see engine/system/session_end.py
            loop.add_signal_handler(name, queue.stop)
    if writer is None:
        return
    answering: set[asyncio.Task[None]] = set()

    async def answer(line: bytes) -> None:
        for event in await server.answer_line(line, queue.obey):
            writer(json_lines.line(event))

    def on_line(line: bytes) -> None:
        task = loop.create_task(answer(line))
        answering.add(task)
        task.add_done_callback(answering.discard)

    stdio.read_lines(loop, on_line, queue.stop)
