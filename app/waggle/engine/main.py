"""The engine's main: claims the home folder, mends what the last run left, contributes until a stop, and restarts.

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
from pathlib import Path

from filelock import FileLock

from waggle.core import paths
from waggle.core.errors import EngineError, SettingsError, WaggleError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.engine import attached_windows
from waggle.engine.computer_watch import SMALLER_PARTS_ADVICE
from waggle.engine.contribution import ProcessResources, contribute, recover_swarms
from waggle.engine.control import server, stdio
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.runtime.undo_log import UndoLog
from waggle.engine.services.models import models
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.services.swarms import ended_swarms, reputation_recovery, swarms
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.system import session_end
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.engine.system.opening_note import OpeningNote
from waggle.engine.system.resource_limits import set_priority
from waggle.protocol import events, json_lines
from waggle.tasks.sandbox import windows_job

HANDOVER_SECONDS = 60.0  # an engine that is still loading its model notices late that its window is gone
HANDOVER_POLL_SECONDS = 0.2
CRASH_CHARACTERS = 8000  # of a traceback, from its end: it goes into one event
log = logging.getLogger(__name__)


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
            process = _open_process(home, arguments, publisher, queue, undo_log, stack)
            follow = server.refuse_follower if arguments.stdio else attached_windows.follow_handler(publisher, queue)
            await stack.enter_async_context(server.serve(home, queue.obey, follow))
            restart_reason = await contribute(process, "")
            while restart_reason:
                restart_reason = await contribute(process, restart_reason)
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


def _open_process(
    home: paths.Home, arguments: argparse.Namespace, publisher: EventPublisher, queue: CommandQueue, undo_log: UndoLog,
    stack: contextlib.AsyncExitStack,
) -> ProcessResources:  # fmt: skip
    """Read what the last run left, mend what it left damaged, and publish what was lost. Raises SettingsError and SwarmError."""
    live_settings = LiveSettings(home.settings, tuple(arguments.set), publisher)
    pause_request = PauseRequest(home.root / "asked.json")
    if pause_request.aside is not None:
        publisher.publish(
            events.Warned(
                title=Message("Whether you had paused could not be read, so training is paused."),
                advice=Message("Resume it when you like. The old file is kept as %1.", pause_request.aside),
            )
        )
    backoff = MemoryBackoff(home)
    OpeningNote(home).start(retry=backoff.started_smaller)
    undo_log.add(models.undo_steps(home, live_settings.now.model, live_settings.change))
    _recover_swarms(home, live_settings, publisher)
    undo_log.add(swarms.undo_steps(home, live_settings.now))
    stack.callback(backoff.mark_orderly_exit)
    queue.call_on_stop(backoff.mark_orderly_exit)  # at once: a slow end may be cut short by a kill
    queue.call_on_stop(OpeningNote(home).end)
    if backoff.was_killed:
        smaller = Message("Choose a smaller model, or close other programs.")
        advice = SMALLER_PARTS_ADVICE if backoff.started_smaller else smaller
        publisher.publish(events.Warned(title=Message("Training ran out of memory, and the system ended it."), advice=advice))
    set_priority(live_settings.now.computer.priority)  # before there are child processes, which inherit it
    download = ChoiceDownload(publisher, lambda: live_settings.now.computer.traffic_kb * 1e3)
    stack.callback(download.cancel)
    return ProcessResources(
        home, live_settings, publisher, queue, backoff, pause_request, undo_log, download, arguments.until_round
    )


def _recover_swarms(home: paths.Home, live_settings: LiveSettings, publisher: EventPublisher) -> None:
    """Rebuild what is damaged of the swarms and the reputation of their peers, and leave swarms that have ended."""
    recover_swarms(home, live_settings.now, publisher)
    if (warned := reputation_recovery.recover(home)) is not None:
        publisher.publish(warned)
    if (warned := ended_swarms.leave_ended_swarms(home)) is not None:
        publisher.publish(warned)
        ended_swarms.drop_other_specialties(swarms.with_chosen_swarm(home, live_settings.now), live_settings.change)


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
