"""Contributes: one run of the engine from its node's start to a stop, of which a process may have several.

Around the node: the lifecycle, services that obey commands, the watch over the computer, and the training loop.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from waggle.core import paths, settings
from waggle.core.errors import MemoryShort, ModelMissing, Stopped, WaggleError
from waggle.core.message import Message
from waggle.engine.command_handler import EngineHandler, Services
from waggle.engine.computer_watch import SMALLER_PARTS_ADVICE, watch_computer
from waggle.engine.control.command_queue import CommandQueue
from waggle.engine.lifecycle import Lifecycle
from waggle.engine.runtime import model_fit, model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.live_settings import LiveSettings
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_MODEL, NOT_CAUSED_BY_SWARM, UndoLog
from waggle.engine.services.identity import IdentityService
from waggle.engine.services.models import models
from waggle.engine.services.models.choice_download import ChoiceDownload
from waggle.engine.services.own_questions import OwnQuestionsService
from waggle.engine.services.swarms import swarm_recovery, swarms
from waggle.engine.services.training_figures import TrainingFigures
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.node import PreparedNode, prepare_node
from waggle.engine.storage.history import History
from waggle.engine.storage.history_recovery import fill_in, open_or_rebuild
from waggle.engine.storage.pause_request import PauseRequest
from waggle.engine.storage.tracking.round_tracker import RoundTracker, tools_of
from waggle.engine.system import energy_meter
from waggle.engine.system.keep_awake import KeepAwake
from waggle.engine.system.memory_backoff import MemoryBackoff
from waggle.engine.system.resource_limits import set_priority
from waggle.engine.training_loop import LoopCallbacks, TrainingLoop
from waggle.models.backend import release_memory
from waggle.protocol import events
from waggle.protocol.events_swarms import StartedAgain

MEASURE_SECONDS = 20.0  # to wait for the policy thread, which a pause may hold


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


def recover_swarms(home: paths.Home, chosen: settings.Settings, publisher: EventPublisher) -> None:
    """Rebuild a list of swarms that was lost. Raises SwarmError."""
    if chosen.swarm.charter and not home.swarms.exists():  # a swarm that the settings name needs no list
        return
    if (warned := swarm_recovery.recover(home)) is not None:
        publisher.publish(warned)


async def contribute(process: ProcessResources, restart_reason: str) -> str:
    """Contribute until a stop or a restart; return why the engine restarts, empty if it ends.

    `restart_reason` is what the run before returned. After a failure, undo the choices that may have caused it, or use less
    memory, and restart. Raises WaggleError if neither helps.
    """
    publisher = process.publisher
    try:
        return await _play_until_stopped(process, restart_reason)
    except WaggleError as error:
        if steps := process.undo_log.undo(type(error)):
            publisher.publish(events.Warned(title=error.title, advice=steps[0].advice(error)))
            return "Going back."
        if not isinstance(error, MemoryShort) or process.queue.stopped or not process.backoff.back_off():
            raise
        publisher.publish(events.Warned(title=error.title, advice=SMALLER_PARTS_ADVICE))
        return "Memory is short."


async def _play_until_stopped(process: ProcessResources, restart_reason: str) -> str:
    """Prepare a node and play rounds until a stop; return why the engine restarts, empty if it ends. Raises WaggleError."""
    live_settings, publisher, backoff = process.live_settings, process.publisher, process.backoff
    recover_swarms(process.home, live_settings.now, publisher)
    await swarms.retry_direct_connection(process.home, live_settings.now)
    chosen = swarms.with_chosen_swarm(process.home, live_settings.begin())
    release_memory()
    backoff.use_model(chosen.model.name or chosen.model.folder)
    policy_thread = ThreadPoolExecutor(1, thread_name_prefix="policy")
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(policy_thread.shutdown)
        home = (await asyncio.to_thread(model_source.home_of, process.home, chosen.model)).prepare()
        history = await _open_history(home, chosen, publisher)
        stack.callback(history.close)
        lifecycle = _start_lifecycle(process, chosen, stack)
        _track_rounds(chosen.tracking, publisher, stack)
        if restart_reason:
            publisher.publish(StartedAgain(reason=restart_reason))
        figures = TrainingFigures(lambda: publisher.state, history)
        host = NodeHost(publisher, policy_thread, lifecycle.gate, lifecycle.stopped, figures)
        live = LiveChoices(lambda: live_settings.now.computer, live_settings.may_share)
        is_patient = not (restart_reason and process.undo_log.suspects(ModelMissing))
        opening = ModelOpening(backoff.parts_for, lifecycle.restart, patient=is_patient)
        preparation = asyncio.ensure_future(prepare_node(home, chosen, host, live, opening, stack))
        stack.push_async_callback(_cancel, preparation)
        node = partial(_node_if_ready, preparation)
        services = _services(process, home, chosen, lifecycle, policy_thread, node)
        _obey_commands(process, home, history, lifecycle, services, node, stack)
        computer_watch = _watch_computer(process, home, lifecycle, services.identity, node, stack)
        try:
            prepared = await preparation
        except (Stopped, WaggleError) as error:
            _raise_failures(computer_watch)
            if isinstance(error, WaggleError) and not lifecycle.restart_reason:
                raise
            # stopped in a download, which keeps what has come; or a person chose something else than what cannot start
            return _end(process, lifecycle, publisher.state.round)
        await _fill_history(history, home, chosen, publisher, prepared.progress.round)
        accept = partial(_accept_choices, process.undo_log, services.swarms.mark_played, services.models.mark_played)
        training_loop = _training_loop(prepared, history, lifecycle, publisher, accept)
        live_settings.apply(prepared.apply_settings, lambda now: backoff.apply_limit(now.computer.memory_gb))
        await services.swarms.store_port(prepared.current_swarm)
        lifecycle.start_contributing()
        swarm_watch = asyncio.ensure_future(prepared.swarm.run())
        swarm_watch.add_done_callback(partial(_stop_if_failed, lifecycle))
        # the only thing to wait for: a stop, and so each failure above, opens the gate for good and ends the loop
        await asyncio.get_running_loop().run_in_executor(policy_thread, training_loop.run, process.until_round)
        _raise_failures(swarm_watch, computer_watch)
        await _cancel(swarm_watch)
    return _end(process, lifecycle, training_loop.round)


def _start_lifecycle(process: ProcessResources, chosen: settings.Settings, stack: contextlib.AsyncExitStack) -> Lifecycle:
    lifecycle = Lifecycle(process.publisher, chosen.when, process.pause_request)
    process.live_settings.call_on_change(lambda now: lifecycle.apply_rules(now.when))
    process.live_settings.call_on_change(partial(_end_question, lifecycle, process.publisher))
    process.live_settings.apply(_apply_priority)
    stack.callback(lifecycle.stop)  # also after a failure: its timer must not end the pause of the next lifecycle
    return lifecycle


def _services(
    process: ProcessResources, home: paths.Home, chosen: settings.Settings, lifecycle: Lifecycle,
    policy_thread: ThreadPoolExecutor, node: Callable[[], PreparedNode | None],
) -> Services:  # fmt: skip
    """What a person may ask for besides training. It answers while the node is prepared, too, as far as it can."""
    live_settings = process.live_settings
    measured = models.Measured(
        lambda: prepared.model.machine if (prepared := node()) else None,
        lambda: policy_thread.submit(model_fit.measure_machine, chosen).result(MEASURE_SECONDS),
    )
    return Services(
        identity=IdentityService(home, lifecycle.restart),
        models=models.ModelService(
            home, chosen, live_settings.change, partial(lifecycle.restart, unrelated=NOT_CAUSED_BY_MODEL), process.download,
            measured, lambda: prepared.current if (prepared := node()) else None,
        ),
        swarms=swarms.SwarmService(
            home, chosen, partial(lifecycle.restart, unrelated=NOT_CAUSED_BY_SWARM), live_settings.change,
            lambda: live_settings.now.swarm.light, lambda: prepared.current_swarm if (prepared := node()) else None,
        ),
        questions=OwnQuestionsService(lambda: prepared.services.playground if (prepared := node()) else None),
        change_settings=live_settings.change,
    )  # fmt: skip


def _obey_commands(
    process: ProcessResources, home: paths.Home, history: History, lifecycle: Lifecycle, services: Services,
    node: Callable[[], PreparedNode | None], stack: contextlib.AsyncExitStack,
) -> None:  # fmt: skip
    """Carry out the commands that waited, and all that come, until the stack closes."""
    handler = EngineHandler(
        lifecycle, process.publisher, history, home, services, lambda: prepared.services if (prepared := node()) else None
    )
    process.queue.attach(handler)
    stack.callback(process.queue.detach)
    process.download.attach(services.models)
    stack.callback(process.download.detach)


def _watch_computer(
    process: ProcessResources, home: paths.Home, lifecycle: Lifecycle, identity: IdentityService,
    node: Callable[[], PreparedNode | None], stack: contextlib.AsyncExitStack,
) -> asyncio.Future[None]:  # fmt: skip
    """Watch the computer until the stack closes. If that fails, the engine stops."""
    awake = KeepAwake()
    stack.callback(awake.close)
    watch = asyncio.ensure_future(
        watch_computer(
            lifecycle, process.live_settings, process.publisher, process.backoff, identity.days,
            home.root / energy_meter.NAME, node, awake,
        )
    )  # fmt: skip
    watch.add_done_callback(partial(_stop_if_failed, lifecycle))
    stack.push_async_callback(_cancel, watch)
    return watch


def _track_rounds(chosen: settings.TrackingSettings, publisher: EventPublisher, stack: contextlib.AsyncExitStack) -> None:
    """Hand the figures of rounds to the tools of research that the settings name."""
    if tools := tools_of(chosen, publisher.publish):
        tracker = RoundTracker(tools, publisher.publish_soon)
        stack.callback(tracker.close)
        stack.callback(publisher.attach(tracker))


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


def _stop_if_failed(lifecycle: Lifecycle, task: asyncio.Future[None]) -> None:
    if _has_failed(task):
        lifecycle.stop()


def _raise_failures(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        if _has_failed(task):
            task.result()


def _has_failed(task: asyncio.Future[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _training_loop(
    prepared: PreparedNode, history: History, lifecycle: Lifecycle, publisher: EventPublisher, accept: Callable[[], object]
) -> TrainingLoop:
    """`accept` is called in this thread when the first round has ended."""
    callbacks = LoopCallbacks(
        publish=publisher.publish_soon,
        save=prepared.saver.save,
        flush=prepared.saver.flush,
        report_blocker=lifecycle.report_blocker,
        round_ended=lifecycle.handle_round_end,
        before_round=prepared.limits.before_round,
        first_round_ended=partial(asyncio.get_running_loop().call_soon_threadsafe, accept),
        take_exam=prepared.take_exam,
        review_length=prepared.answer_limit.review,
    )
    return TrainingLoop(prepared.node, prepared.plan, prepared.progress, history, lifecycle.gate, callbacks)
