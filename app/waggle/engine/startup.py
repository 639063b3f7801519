"""Prepares an engine: charter, model, verifier, last checkpoint, swarm; each told as it comes, so that a window can show it."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import waggle
from waggle.core import paths
from waggle.core.peer_id import text_of
from waggle.core.settings import ComputerSettings, Settings
from waggle.engine.runtime import model_fit, model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.services import swarm_connection, swarms
from waggle.engine.services.chat import ChatService
from waggle.engine.services.leaderboard_exam import LeaderboardExam
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.snapshots import Snapshots
from waggle.engine.storage import round_saver, snapshot_archive
from waggle.engine.system.resource_limits import ResourceLimits, make_room, share_of_time
from waggle.models.backend import Opened, open_policy, threads_for
from waggle.models.memory_fit import Fit, Machine
from waggle.models.shared import model_config
from waggle.models.shared.model_config import Configuration
from waggle.models.shared.training_mode import Method, Training
from waggle.models.storage import checkpoint, hub_cache, hub_download
from waggle.network.identity import keys
from waggle.network.limits.reputation import Choice
from waggle.network.node import SwarmNode
from waggle.network.transport.solo import SoloNode
from waggle.protocol import PROTOCOL, events
from waggle.protocol.events_outbox import SentMessage
from waggle.rl import update_rules
from waggle.rl.batch import nothing
from waggle.sapo import sharing
from waggle.sapo.stages import Node, Rules
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier

First = TypeVar("First")
Second = TypeVar("Second")
STARTER_NOTE = "The starter knows many answers but hardly ever writes them in the answer tag. It learns that first."


@dataclass(frozen=True)
class PreparedNode:
    """A node that can play from `round` on."""

    node: Node
    watch_swarm: Callable[[], Awaitable[None]]  # ends with the swarm, or with a fault of ours in its background work
    choose_peer: Callable[[str, Choice], None]
    addresses: swarms.Addresses
    sent: Callable[[], tuple[SentMessage, ...]]
    rules: Rules
    sit: Callable[[int, int], None]
    follow: Callable[[Settings], tuple[str, ...]]  # what of changed settings is the swarm's
    opened: Opened
    keeper: round_saver.RoundSaver
    limits: ResourceLimits
    trying: PlaygroundService
    talking: ChatService
    base: str
    hub: str
    round: int
    completions: int
    learned: int
    held_out: tuple[Question, ...]
    fits: Callable[[Path], str]  # whether the model in a folder fits this computer, in a sentence


async def prepare(
    home: paths.Home, chosen: Settings, publisher: EventPublisher, policy_thread: ThreadPoolExecutor, stack: AsyncExitStack,
    *, gate: PauseGate, stopped: asyncio.Event, divided: Callable[[int], int] = int,
    computer: Callable[[], ComputerSettings] = ComputerSettings, may_share: Callable[[], bool] = lambda: False,
    patient: bool = False,
) -> PreparedNode:  # fmt: skip
    """Make everything a round needs; `stack` closes it again. Raises WaggleError, and Stopped in the middle of a download."""
    _tell_part(publisher, 0)
    charter = await swarm_connection.charter_of(home, chosen)
    specialties = swarm_connection.specialties(chosen, charter)
    myself = keys.load_or_create(home.identity)
    examine, traffic = partial(_examine, policy_thread, chosen), lambda: computer().traffic_kb * 1000.0
    commit = checkpoint.commit_of(home.model.checkpoints, chosen.model.name)
    folder = await model_source.find(
        chosen.model, publisher, gate, stopped, examine, limit=traffic, patient=patient, commit=commit
    )
    _lock_model(folder, stack)

    _tell_part(publisher, 1)
    (verifier, held_out), (machine, fit, opened) = await _side_by_side(
        _start_verifier(charter, chosen, publisher, stack), _open_fitted(home, folder, chosen, publisher, policy_thread, divided)
    )

    _tell_part(publisher, 3)
    base = checkpoint.base_of(folder)
    saved, checkpointed = await _restored(home, opened, base, policy_thread, publisher, gate, computer)

    _tell_part(publisher, 4)
    swarm = await swarm_connection.join(home, chosen, charter, myself, verifier, publisher, stack, is_paused=lambda: gate.closed)
    remembering = round_saver.RecordingPolicy(opened.policy)
    node = Node(
        policy=remembering, tokenizer=opened.tokenizer, swarm=swarm, verifier=verifier, charter=charter, origin=myself.peer_id,
        seed=_seed(myself.peer_id), model=_model_name(folder, opened.policy.parameters),
        sharing=sharing.strategy(chosen.learning.sharing).make(), specialties=specialties,
    )  # fmt: skip
    keeper = _keeper(home, opened, remembering, (saved, checkpointed), partial(_make_room, home, computer, folder), publisher)
    played = _rules(chosen, charter, model_config.read(folder), fit.training.method)
    moments = await asyncio.get_running_loop().run_in_executor(
        policy_thread, _snapshots, home, folder, opened, stopped.is_set, computer
    )
    prepared = PreparedNode(
        node=node,
        watch_swarm=swarm.run,
        choose_peer=partial(swarm_connection.choose, swarm),
        addresses=swarm.addresses,
        sent=partial(swarm_connection.sent, swarm),
        rules=played,
        sit=_exam_of(node, played, swarm, gate),
        follow=partial(_apply_settings, swarm),
        opened=opened,
        keeper=keeper,
        limits=ResourceLimits(gate, opened, swarm.limit, keeper.leave),
        trying=PlaygroundService(moments, node, played, may_share, lambda: publisher.state.round),
        talking=ChatService(moments, charter.prompt_for, played.max_new, publisher.pass_on),
        base=base,
        hub=hub_download.named(chosen.model.name, paths.models()) if chosen.model.name else "",
        round=saved.round if saved else 0,
        completions=saved.completions if saved else 0,
        learned=saved.learned if saved else 0,
        held_out=held_out,
        fits=partial(model_fit.fit_sentence, machine, chosen),
    )
    publisher.tell(_ready(prepared, myself, charter, STARTER_NOTE if folder == paths.starter() else fit.sentence))
    return prepared


async def _side_by_side(task: Awaitable[First], other_task: Awaitable[Second]) -> tuple[First, Second]:
    """What they give, side by side: the checker starts in a process of its own. Each ends before anything is raised."""
    first, second = await asyncio.gather(task, other_task, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second


async def _start_verifier(
    charter: Charter, chosen: Settings, publisher: EventPublisher, stack: AsyncExitStack
) -> tuple[Verifier, tuple[Question, ...]]:
    verifier = await asyncio.to_thread(Verifier, charter, restarted=partial(_tell_restarted, publisher))
    stack.callback(verifier.close)
    held_out = await asyncio.to_thread(_check_and_reserve, verifier, charter, chosen.learning.held_out_questions)
    _tell_part(publisher, 2)  # which is what is waited for now, if anything
    return verifier, held_out


async def _open_fitted(
    home: paths.Home, folder: Path, chosen: Settings, publisher: EventPublisher, policy_thread: ThreadPoolExecutor,
    divided: Callable[[int], int],
) -> tuple[Machine, Fit, Opened]:  # fmt: skip
    loop = asyncio.get_running_loop()
    machine = await loop.run_in_executor(policy_thread, model_fit.measure_machine, chosen)
    fit = model_fit.fit_model(machine, model_config.read(folder), chosen, checkpoint.method_of(home.model.checkpoints), divided)
    return machine, fit, await loop.run_in_executor(policy_thread, partial(_open, folder, chosen, fit.training, publisher))


def _lock_model(folder: Path, stack: AsyncExitStack) -> None:
    """Keep engines of other homes from removing the model."""
    if folder.is_relative_to(paths.models()):
        with suppress(OSError):  # it has just been removed: loading it will report that
            stack.callback(hub_cache.hold(folder).close)


def _keeper(
    home: paths.Home, opened: Opened, remembering: round_saver.RecordingPolicy,
    restored: tuple[checkpoint.Saved | None, int | None],
    make_room_here: Callable[[EventPublisher], None], publisher: EventPublisher,
) -> round_saver.RoundSaver:  # fmt: skip
    saved, checkpointed = restored
    refused, room = partial(_tell_refused, publisher), partial(make_room_here, publisher)
    return round_saver.RoundSaver(home.model.checkpoints, opened.policy, remembering, checkpointed, room, refused, restored=saved)


def _apply_settings(swarm: SwarmNode | SoloNode, now: Settings) -> tuple[str, ...]:
    swarm.compare(on=now.swarm.leaderboard)
    return ()


def _exam_of(node: Node, rules: Rules, swarm: SwarmNode | SoloNode, gate: PauseGate) -> Callable[[int, int], None]:
    return nothing if isinstance(swarm, SoloNode) else LeaderboardExam(node, rules, swarm, gate)


def _tell_restarted(publisher: EventPublisher, reason: str) -> None:
    publisher.tell_soon(events.PartRestarted(part="verifier", reason=reason))


def _snapshots(
    home: paths.Home, folder: Path, opened: Opened, leaving: Callable[[], bool], computer: Callable[[], ComputerSettings]
) -> Snapshots:
    """Where there is a choice, the processor answers: the accelerator is busy. What does not learn needs no moments."""
    way, torch = opened.policy.training, opened.backend == "torch"
    training = Training("lean", way.precision) if torch and way.method != "lora" else way
    device = "cpu" if torch else "mlx"
    moments = Snapshots(home, folder, device, computer, (training,), leaving)
    return moments.on_the_processor() if torch and opened.device != "cpu" else moments


def _examine(policy_thread: ThreadPoolExecutor, chosen: Settings, folder: Path) -> None:
    """Refuse what does not fit while it is being downloaded; asked in the one thread that uses the device."""
    policy_thread.submit(model_fit.require_fit, folder, chosen).result()


def _open(folder: Path, chosen: Settings, training: Training, publisher: EventPublisher) -> Opened:
    return open_policy(
        folder,
        device=chosen.computer.device,
        threads=threads_for(chosen.computer.threads),
        training=training,
        short=partial(_tell_short, publisher),
    )


async def _restored(
    home: paths.Home, opened: Opened, base: str, policy_thread: ThreadPoolExecutor, publisher: EventPublisher, gate: PauseGate,
    computer: Callable[[], ComputerSettings],
) -> tuple[checkpoint.Saved | None, int | None]:  # fmt: skip
    """The state to go on from, and the round of the checkpoint that it was restored from. A pause holds it; raises Stopped."""

    def share() -> int:
        return share_of_time(computer(), opened.device)

    def pause_point() -> None:
        """Replaying a journal may take hours, so the current share of the time applies."""
        gate.percent = share()
        gate()

    gate.percent = share()
    report = partial(_tell_replay, publisher)
    load = partial(
        round_saver.restore, home.model.checkpoints, opened.policy, opened.policy, base, pause_point=pause_point, report=report
    )
    saved, checkpointed, aside = await asyncio.get_running_loop().run_in_executor(policy_thread, load)
    snapshot_archive.set_aside_after(home.model.snapshots, saved.round if saved else 0)
    for folder in aside:
        publisher.tell(events.CheckpointSetAside(folder=folder.folder.name, reason=folder.reason))
    if saved and saved.optimiser != opened.policy.training.optimiser:
        publisher.tell(events.Warned(title="The model is trained another way than before: its optimiser begins anew."))
    return saved, checkpointed


def _make_room(home: paths.Home, computer: Callable[[], ComputerSettings], folder: Path, publisher: EventPublisher) -> None:
    cap_gb = computer().disk_gb
    snapshot_archive.keep(home.model.checkpoints, home.model.snapshots)
    try:
        removed = make_room(home, cap_gb, folder)
    except OSError:  # files that another program moves or removes meanwhile: room is made after the next checkpoint
        return
    if removed:
        warning = events.Warned(title=f"Removed to keep to {cap_gb:g} GB: {', '.join(removed)}.", advice="See computer.disk_gb.")
        publisher.tell_soon(warning)


def _check_and_reserve(verifier: Verifier, charter: Charter, count: int) -> tuple[Question, ...]:
    verifier.check_charter()
    return tuple(
        question for specialty in charter.specialties for question in verifier.held_out(specialty.dataset, "test", count)
    )


def _model_name(folder: Path, parameters: int) -> str:
    size = f"{parameters / 1e6:.1f}M" if parameters < 1e9 else f"{parameters / 1e9:.1f}B"
    return f"Starter {size}" if folder == paths.starter() else f"{folder.name[:40]} {size}"


def _seed(peer_id: bytes) -> int:
    """Every node draws and samples differently, and the same again after a restart."""
    return int.from_bytes(hashlib.sha256(b"waggle/noise/1" + peer_id).digest()[:8], "big")


def _rules(chosen: Settings, charter: Charter, model: Configuration, method: Method) -> Rules:
    learning = chosen.learning
    return Rules(
        questions=learning.questions,
        local=learning.local,
        external=learning.external,
        group_size=learning.group_size,
        max_new=model_fit.answer_limit(chosen, model),
        context=model.max_position_embeddings,
        temperature=learning.temperature,
        top_p=learning.top_p,
        learning_rate=model_fit.learning_rate(chosen, model, method),
        warmup_steps=learning.warmup_steps,
        rule=update_rules.rule(learning.rule),
    ).under(charter)


def _ready(prepared: PreparedNode, myself: keys.Identity, charter: Charter, note: str) -> events.Ready:
    opened = prepared.opened
    return events.Ready(
        protocol=PROTOCOL,
        version=waggle.__version__,
        node=text_of(myself.peer_id),
        name=keys.name_of(myself.peer_id),
        swarm=charter.name,
        charter=charter.digest.hex(),
        specialties=tuple(
            events.SpecialtyInfo(dataset=specialty.dataset, title=specialty.title) for specialty in charter.specialties
        ),
        model=prepared.node.model,
        base=prepared.base,
        model_note=note,
        backend=opened.backend,
        device=opened.device,
        device_reason=opened.reason,
        threads=opened.threads,
        cores=os.cpu_count() or 1,
        round=prepared.round,
        completions=prepared.completions,
        group_size=prepared.rules.group_size,
        parameters=opened.policy.parameters,
    )


def _tell_refused(publisher: EventPublisher) -> None:
    publisher.tell_soon(
        events.Warned(
            title="The disk did not take a checkpoint.",
            advice="The journal has every round since the last one. Make room on the disk.",
        )
    )


def _tell_short(publisher: EventPublisher, what: str) -> None:
    publisher.tell_soon(events.Warned(title=what, advice="Nothing was lost. Closing other programs makes room."))


def _tell_replay(publisher: EventPublisher, done: int, total: int) -> None:
    part = f"Learning again what came after the last checkpoint: {done} of {total} rounds"
    publisher.tell_soon(events.Preparing(part=part, done=3, parts=len(PARTS), long=True))


def _tell_part(publisher: EventPublisher, number: int) -> None:
    publisher.tell(events.Preparing(part=PARTS[number], done=number, parts=len(PARTS)))
