"""Prepares a node, part by part: charter, model, verifier, checkpoint, swarm. Each part is published for the window."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

import waggle
from waggle.core import paths
from waggle.core.errors import ModelError, ModelMissing, Stopped
from waggle.core.message import Message, counted, in_turn, plain
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.core.settings import ComputerSettings, ModelSettings, Settings
from waggle.core.system import file_moves
from waggle.core.system.machine import usable_cores
from waggle.engine.command_handler import NodeServices
from waggle.engine.runtime import form_choice, model_fit, model_source
from waggle.engine.runtime.answer_limit import AnswerLimit, answer_length
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.held_out_schedule import USUAL_ROUNDS, HeldOutPlan
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.services.chat import ChatService
from waggle.engine.services.leaderboard_exam import LeaderboardExam
from waggle.engine.services.models import model_question
from waggle.engine.services.models.current_weights import CurrentWeights
from waggle.engine.services.models.snapshots import Snapshots
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.swarms import swarm_connection, swarm_question, swarms
from waggle.engine.services.swarms.better_swarm import better_swarm
from waggle.engine.services.swarms.invites import link_of_invite
from waggle.engine.services.swarms.swarm_connection import SwarmConnection
from waggle.engine.storage import noise_salt, round_saver, snapshot_archive
from waggle.engine.storage.tracking.figures import run_name
from waggle.engine.system.opening_note import OpeningNote
from waggle.engine.system.resource_limits import ResourceLimits, Room, make_room, share_of_time
from waggle.engine.training_loop import Progress, TrainingPlan
from waggle.models.backend import OpenedPolicy, open_policy, threads_for
from waggle.models.inspection import inspector
from waggle.models.memory_fit import DeviceCapacity, MemoryFit
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.pulse import has_pulse
from waggle.models.shared.training_mode import Method, TrainingMode
from waggle.models.storage import checkpoint, hub_cache, hub_download, ownership, starters
from waggle.models.storage import identity as identity_of_model
from waggle.models.storage.identity import ModelIdentity
from waggle.network import joined_swarms
from waggle.network.identity import keys
from waggle.network.web.training_status import TrainingStatus
from waggle.protocol import PROTOCOL, events
from waggle.protocol.events_models import ModelChanged
from waggle.rl import update_rules
from waggle.rl.batch import nothing
from waggle.sapo import sharing
from waggle.sapo.evaluation import few_of
from waggle.sapo.question_mix import QuestionMix
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.charter import Charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.questions import Question
from waggle.tasks.sandbox.verifier import Verifier

First = TypeVar("First")
Second = TypeVar("Second")
SLOW_SECONDS = 20.0  # of the judging process, which starts in two here
SLOW_PART = Message("Starting the answer checker. It gets on slowly, because this computer is busy or its disk is slow")
FORM_PAY = 0.25  # a little above the span of rewards that counts as crumbs
STARTER_NOTE = Message("The starter knows many answers but hardly ever writes them in the answer tag. It learns that first.")


@dataclass(frozen=True)
class NodeHost:
    """What the engine offers its node: where it publishes, computes, waits and stops, and what its status page shows of it."""

    publisher: EventPublisher
    policy_thread: ThreadPoolExecutor
    gate: PauseGate
    stopped: asyncio.Event
    training: Callable[[], TrainingStatus | None] = lambda: None


@dataclass(frozen=True)
class LiveChoices:
    """The settings that a node follows while it runs, as they are at each call."""

    computer: Callable[[], ComputerSettings] = ComputerSettings
    may_share: Callable[[], bool] = lambda: False  # whether a person's own answers may leave this computer


@dataclass(frozen=True)
class ModelOpening:
    """How to find and open the model."""

    parts_for: Callable[[int], int] = int  # see model_fit.fit_model
    restart: Callable[[str], None] = nothing  # takes the reason
    patient: bool = False  # if the model cannot be had, ask a person, and wait for it; otherwise fail


@dataclass(frozen=True)
class PreparedNode:
    """A node that can play rounds, and everything around it."""

    node: Node
    watch_swarm: Callable[[], Awaitable[None]]  # ends with the swarm, or raises what failed in its background work
    current_swarm: swarms.CurrentSwarm
    services: NodeServices
    plan: TrainingPlan
    progress: Progress  # where training continues
    take_exam: Callable[[int, int], None]  # of (round, groups of peers learned); see LeaderboardExam
    answer_limit: AnswerLimit
    apply_settings: Callable[[Settings], tuple[str, ...]]  # of the swarm
    opened: OpenedPolicy
    saver: round_saver.RoundSaver
    current: CurrentWeights
    limits: ResourceLimits
    machine: DeviceCapacity
    is_limited: Callable[[], bool]  # something had to wait for the limit of traffic just now
    is_away: Callable[[], bool]  # the network process ended and has not started again
    disk: "DiskLimit"


async def prepare_node(
    home: paths.Home, chosen: Settings, host: NodeHost, live: LiveChoices, opening: ModelOpening, stack: AsyncExitStack
) -> PreparedNode:
    """Create everything that a round needs; `stack` closes it. Raises WaggleError, and Stopped during a download or a replay."""
    publisher, policy_thread, gate, computer = host.publisher, host.policy_thread, host.gate, live.computer
    _publish_part(publisher, 0)
    swarm_chosen = await swarm_question.swarm_or_question(home, chosen, publisher, host.stopped, opening.restart)
    charter = swarm_chosen.charter
    specialties = () if swarm_chosen.is_stand_in else swarm_connection.chosen_specialties(chosen, charter)
    identity = keys.load_or_create(home.identity)
    await _download_questions(home, chosen, charter, identity, host, computer().traffic_kb * 1e3 or None)
    examine, traffic = partial(_examine, policy_thread, chosen), lambda: computer().traffic_kb * 1e3
    commit = checkpoint.commit_of(home.model.checkpoints, chosen.model.name)
    find = partial(
        model_source.find_model, chosen.model, publisher, gate, host.stopped, examine, checkpoints=home.model.checkpoints,
        limit=traffic, patient=opening.patient, commit=commit,
    )  # fmt: skip
    folder = await (model_question.model_or_question(chosen.model, find, publisher, host.stopped) if opening.patient else find())
    if host.stopped.is_set():  # a person chose another swarm or model meanwhile: do not open this one
        raise Stopped
    _lock_model(folder, stack)
    await _require_own_training(home, folder, chosen.model, host, opening.restart)

    _publish_part(publisher, 1)
    (verifier, held_out), (machine, fit, opened) = await _run_both(
        _start_verifier(charter, home, chosen, host, stack),
        _fit_and_open(home, folder, chosen, publisher, policy_thread, opening.parts_for),
    )

    _publish_part(publisher, 3)
    base = await asyncio.to_thread(ownership.base_of, home.model.checkpoints, folder)
    who = await asyncio.to_thread(identity_of_model.read, folder)  # before a replay, which may take long
    saved, checkpoint_round = await _restore(home, opened, base, policy_thread, publisher, gate, computer)
    _report_other_speech(home, saved, who, publisher)

    _publish_part(publisher, 4)
    member_name = joined_swarms.member_name_in(home.swarms, charter.digest.hex())
    swarm = await swarm_connection.join(
        home, chosen, charter, identity, verifier, publisher, stack, is_paused=lambda: gate.is_closed, training=host.training,
        invite=partial(link_of_invite, home, chosen, charter),
        member_name=member_name,
    )  # fmt: skip
    recording_policy = round_saver.RecordingPolicy(opened.policy, lambda: gate.worked_seconds)
    origin, seed = _randomness(home, chosen, identity, publisher)
    node = Node(
        policy=recording_policy, tokenizer=opened.tokenizer, swarm=swarm, verifier=verifier, charter=charter,
        origin=origin, seed=seed,
        model=_model_name(folder, opened.policy.parameters),
        sharing=sharing.strategy(chosen.learning.sharing).make(), specialties=specialties,
        mix=QuestionMix(saved.mix if saved and saved.charter == charter.digest.hex() else None),
    )  # fmt: skip
    disk = DiskLimit(home, computer, folder)
    saver = _round_saver(home, opened, recording_policy, (saved, checkpoint_round), disk.make_room, publisher)
    is_starter, model = starters.is_starter(folder), generic_config.read_any(folder)
    rules = _round_settings(chosen, charter, model, fit.training.method, is_starter=is_starter)
    form = form_choice.settled_form(chosen.model.prompt_form, is_starter, node, home.model.prompt_form)
    if form is None:
        form = await asyncio.get_running_loop().run_in_executor(
            policy_thread,
            lambda: form_choice.try_form(
                node, rules, _trial_questions(verifier, charter), home.model.prompt_form, gate,
                partial(_publish_trial, publisher),
            ),
        )  # fmt: skip
    node = replace(node, form=form_choice.form_of(form))
    longest = rules.max_new  # what memory was calculated for
    limit = AnswerLimit(
        answer_length(chosen.learning.max_new_tokens, longest, form, home.model.prompt_form), longest, home.model.prompt_form
    )
    questions = model_fit.questions_a_round(chosen, model, machine, fit.training, limit.length.tokens)
    share = questions / rules.questions
    rules = replace(
        rules, max_new=limit.length.tokens, external_max=longest, questions=questions,
        local=round(share * rules.local), external=round(share * rules.external),
    )  # fmt: skip
    peak = fit.needs if opened.device == "cpu" or opened.backend != "torch" else 0
    current = CurrentWeights(gate, opened.policy, lambda: saver.newest, peak)
    snapshots = await asyncio.get_running_loop().run_in_executor(
        policy_thread, _snapshots, home, folder, opened, host.stopped.is_set, computer
    )
    snapshots = replace(snapshots, current=current)
    recipe = _recipe(chosen, charter, form, rules)
    prepared = PreparedNode(
        node=node,
        watch_swarm=swarm.run,
        current_swarm=swarms.CurrentSwarm(charter, swarm.addresses),
        is_limited=lambda: swarm.is_limited,
        is_away=lambda: swarm.is_away,
        disk=disk,
        services=NodeServices(
            choose_peer=partial(swarm_connection.choose_peer, swarm),
            sent=lambda: swarm_connection.sent_messages(swarm, publisher.state.peers),
            playground=PlaygroundService(snapshots, node, rules, live.may_share, lambda: publisher.state.round),
            chat=ChatService(snapshots, node.form.text, longest, publisher.broadcast),
        ),
        plan=TrainingPlan(
            rules=rules,
            base=base,
            held_out=_held_out_plan(chosen.learning.held_out_every, held_out, rules, is_starter=is_starter),
            hub=_hub_name(chosen.model, saved),
            identity=who,
            recipe=recipe,
            run=run_name(chosen.tracking.run, node.model, charter.name, recipe),
            rule=chosen.learning.rule,
            epoch_is_round=origin != identity.peer_id,
        ),
        progress=Progress(saved.round, saved.completions, saved.learned) if saved else Progress(),
        take_exam=_leaderboard_exam(node, rules, swarm, gate),
        answer_limit=limit,
        apply_settings=partial(_apply_settings, swarm),
        opened=opened,
        saver=saver,
        current=current,
        limits=ResourceLimits(gate, opened, swarm.limit, saver.flush),
        machine=machine,
    )
    note = STARTER_NOTE if is_starter else fit.sentence
    publisher.publish(_ready_event(prepared, identity, charter, note, form, member_name))
    return prepared


async def _run_both(task: Awaitable[First], other_task: Awaitable[Second]) -> tuple[First, Second]:
    """Await both at once; raise the first failure, but only after both have ended, as `stack` then closes what they opened."""
    first, second = await asyncio.gather(task, other_task, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second


async def _require_own_training(
    home: paths.Home, folder: Path, chosen: ModelSettings, host: NodeHost, restart: Callable[[str], None]
) -> None:
    """Return if the training in this home is the model's own, or begins now.

    If it stands elsewhere, which may show only after a download, restart there. If there is another model's, report that, and
    wait until a person decides or chooses another model, after which the engine restarts. Raises Stopped, and ModelError.
    """
    place = await asyncio.to_thread(model_source.home_of, home, chosen)
    if place.model.root != home.model.root:
        restart("This model was trained here before.")
        raise Stopped
    other = await asyncio.to_thread(ownership.other_model, home.model.checkpoints, folder)
    if other is None:
        return
    name = chosen.name or (plain(folder.name)[:60] if chosen.folder else "The starter")
    host.publisher.publish(ModelChanged(model=name, rounds=other.rounds, fits=other.fits, is_whole=other.is_whole))
    await host.stopped.wait()
    raise Stopped


def _report_other_speech(
    home: paths.Home, saved: checkpoint.CheckpointState | None, now: ModelIdentity, publisher: EventPublisher
) -> None:
    """Report that the same model is to speak another way. With another chat template, how it is asked has to be tried again."""
    was = saved.identity if saved else None
    if was is None or (was.stops, was.template) == (now.stops, now.template):
        return
    if was.template != now.template:
        with suppress(OSError):  # then it is asked as before, if that is possible
            file_moves.unlink(home.model.prompt_form, missing_ok=True)
    publisher.publish(
        events.Warned(
            title=Message("The chat template of this model changed since it was trained last.")
            if was.template != now.template
            else Message("The stop tokens of this model changed since it was trained last."),
            advice=Message("Its training continues."),
        )
    )


def _hub_name(chosen: ModelSettings, saved: checkpoint.CheckpointState | None) -> str:
    """See `CheckpointState.hub`. What began from the hub and continues from a folder is still known there."""
    if chosen.name:
        return hub_download.name_and_commit(chosen.name, paths.models())
    return saved.hub if saved else ""


async def _download_questions(
    home: paths.Home, chosen: Settings, charter: Charter, identity: keys.Identity, host: NodeHost, limit: float | None
) -> None:
    """Download the charter's own questions if they are not here. Raises SwarmError, and Stopped."""

    def report(done: int, total: int) -> None:
        part = Message("Downloading the swarm's questions: %1 of %2 parts", done, total)
        host.publisher.publish(events.Preparing(part=part, done=0, parts=len(PARTS), long=True))

    download = asyncio.ensure_future(swarm_connection.download_missing_questions(home, chosen, charter, identity, limit, report))
    stopping = asyncio.ensure_future(host.stopped.wait())
    try:
        await asyncio.wait((download, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not download.done():
            raise Stopped
        download.result()
    finally:
        for task in (download, stopping):
            task.cancel()
        await asyncio.wait((download, stopping))


class _SlowStart:
    """Says once that the judging process starts slowly, and ends its start when the engine stops."""

    def __init__(self, host: NodeHost) -> None:
        self._host, self._is_said = host, False

    def __call__(self, seconds: float) -> None:
        """Called in another thread. Raises Stopped."""
        if self._host.stopped.is_set():
            raise Stopped
        if seconds >= SLOW_SECONDS and not self._is_said:
            self._is_said = True
            self._host.publisher.publish_soon(events.Preparing(part=SLOW_PART, done=1, parts=len(PARTS)))


async def _start_verifier(
    charter: Charter, home: paths.Home, chosen: Settings, host: NodeHost, stack: AsyncExitStack
) -> tuple[Verifier, tuple[Question, ...]]:
    files = await asyncio.to_thread(PieceStore(home.questions, charter).files)
    restarted = partial(_report_verifier_restart, host.publisher)
    verifier = await asyncio.to_thread(Verifier, charter, files=files, restarted=restarted, waiting=_SlowStart(host))
    stack.callback(verifier.close)
    held_out = await asyncio.to_thread(_check_and_reserve, verifier, charter, chosen.learning.held_out_questions)
    _publish_part(host.publisher, 2)  # what startup waits for now, if the model is not open yet
    return verifier, held_out


async def _fit_and_open(
    home: paths.Home, folder: Path, chosen: Settings, publisher: EventPublisher, policy_thread: ThreadPoolExecutor,
    parts_for: Callable[[int], int],
) -> tuple[DeviceCapacity, MemoryFit, OpenedPolicy]:  # fmt: skip
    loop = asyncio.get_running_loop()
    with nullcontext() if starters.is_starter(folder) else OpeningNote(home).opening(chosen.model, folder):
        if not starters.is_starter(folder):
            await asyncio.to_thread(_inspect, folder)
        machine = await loop.run_in_executor(policy_thread, model_fit.measure_machine, chosen)
        fit = model_fit.fit_model(
            machine, generic_config.read_any(folder), chosen, checkpoint.method_of(home.model.checkpoints), parts_for
        )
        opened = await loop.run_in_executor(policy_thread, partial(_open, folder, chosen, fit.training, publisher))
    return machine, fit, opened


def _inspect(folder: Path) -> None:
    """Raise ModelMissing if a model cannot be opened, whichever swarm it is for."""
    try:
        inspector.inspect(folder)
    except ModelError as error:
        raise ModelMissing(error.title, error.advice) from error


def _lock_model(folder: Path, stack: AsyncExitStack) -> None:
    """Keep the engines of other homes from removing this model."""
    if folder.is_relative_to(paths.models()):
        with suppress(OSError):  # just removed: loading it reports that
            stack.callback(hub_cache.hold(folder).close)


def _round_saver(
    home: paths.Home, opened: OpenedPolicy, recording_policy: round_saver.RecordingPolicy,
    restored: tuple[checkpoint.CheckpointState | None, int | None],
    make_room_here: Callable[[EventPublisher], None], publisher: EventPublisher,
) -> round_saver.RoundSaver:  # fmt: skip
    saved, checkpoint_round = restored
    refused, room = partial(_warn_of_missing_checkpoint, publisher), partial(make_room_here, publisher)
    return round_saver.RoundSaver(
        home.model.checkpoints, opened.policy, recording_policy, checkpoint_round, room, refused, restored=saved
    )


def _apply_settings(swarm: SwarmConnection, now: Settings) -> tuple[str, ...]:
    if swarm.leaderboard is not None:
        swarm.leaderboard.enable(on=now.swarm.leaderboard)
    return ()


def _leaderboard_exam(node: Node, rules: RoundSettings, swarm: SwarmConnection, gate: PauseGate) -> Callable[[int, int], None]:
    return nothing if swarm.leaderboard is None else LeaderboardExam(node, rules, swarm.leaderboard, gate)


def _held_out_plan(every: int, questions: tuple[Question, ...], rules: RoundSettings, *, is_starter: bool) -> HeldOutPlan:
    """A first score takes no more answers than a round, except for the starter: it is fast, and its runs are compared."""
    if every != USUAL_ROUNDS or is_starter:
        return HeldOutPlan(questions, every)
    return HeldOutPlan(questions, 0, few_of(questions, rules.questions * rules.group_size))


def _report_verifier_restart(publisher: EventPublisher, reason: str) -> None:
    publisher.publish_soon(events.PartRestarted(part="verifier", reason=reason))


def _snapshots(
    home: paths.Home, folder: Path, opened: OpenedPolicy, is_leaving: Callable[[], bool], computer: Callable[[], ComputerSettings]
) -> Snapshots:
    """Choose where snapshots answer: with torch on the CPU, as the accelerator is busy with the round.

    Snapshots are not trained, so they are opened without the memory that full training needs.
    """
    way, torch = opened.policy.training, opened.backend == "torch"
    training = way
    if torch:  # a CPU is slow with weights in 4 bits
        training = replace(way, method="lora") if way.is_adapted else TrainingMode("lean", way.precision)
    device = "cpu" if torch else "mlx"
    snapshots = Snapshots(home, folder, device, computer, (training,), is_leaving)
    return snapshots.on_cpu() if torch and opened.device != "cpu" else snapshots


def _examine(policy_thread: ThreadPoolExecutor, chosen: Settings, folder: Path) -> None:
    """Raise ModelError if a model does not fit, before its weights are downloaded. It is the policy thread that measures."""
    policy_thread.submit(model_fit.require_fit, folder, chosen).result()


def _open(folder: Path, chosen: Settings, training: TrainingMode, publisher: EventPublisher) -> OpenedPolicy:
    return open_policy(
        folder,
        device=chosen.computer.device,
        threads=threads_for(chosen.computer.threads),
        training=training,
        short=partial(_publish_short, publisher),
    )


async def _restore(
    home: paths.Home, opened: OpenedPolicy, base: str, policy_thread: ThreadPoolExecutor, publisher: EventPublisher,
    gate: PauseGate, computer: Callable[[], ComputerSettings],
) -> tuple[checkpoint.CheckpointState | None, int | None]:  # fmt: skip
    """Load the newest checkpoint and replay its journal; return the state and the checkpoint's round. Raises Stopped."""

    def share() -> int:
        return share_of_time(computer(), opened.device)

    def pause_point() -> None:
        """Pass the gate with the current share of time, which may change in the hours that a replay can take."""
        gate.set_percent(share())
        gate()

    gate.set_percent(share())
    report = partial(_publish_replay, publisher)
    load = partial(
        round_saver.restore,
        home.model.checkpoints,
        opened.policy,
        opened.policy,
        base,
        pause_point=pause_point,
        report=report,
        is_sound=lambda: has_pulse(opened.policy),
    )
    saved, checkpoint_round, aside = await asyncio.get_running_loop().run_in_executor(policy_thread, load)
    snapshot_archive.set_aside_after(home.model.snapshots, saved.round if saved else 0)
    for folder in aside:
        publisher.publish(events.CheckpointSetAside(folder=folder.folder.name, reason=folder.reason))
    if saved and saved.optimizer != opened.policy.training.optimizer:
        publisher.publish(
            events.Warned(title=Message("The model is trained another way than before: its optimiser begins anew."))
        )
    return saved, checkpoint_round


@dataclass
class DiskLimit:
    """Keeps to the limit of the disk after each checkpoint. `unmet`: the bytes that stayed, if more than the limit allows."""

    home: paths.Home
    computer: Callable[[], ComputerSettings]
    model: Path  # in use
    unmet: int = 0

    def make_room(self, publisher: EventPublisher) -> None:
        cap_gb = self.computer().disk_gb
        snapshot_archive.archive_newest(self.home.model.checkpoints, self.home.model.snapshots)
        try:
            room = make_room(self.home, cap_gb, self.model)
        except OSError:  # another program moves or removes files meanwhile: try again after the next checkpoint
            return
        self.unmet = room.unmet
        if room.removed:
            publisher.publish_soon(_removed(room, f"{cap_gb:g}"))


def _removed(room: Room, cap_gb: str) -> events.Warned:
    """What was removed for the limit of the disk, and whether it can be had again."""
    names = Message("Removed: %1.", ", ".join(room.removed))
    if not room.models:
        return events.Warned(
            title=Message("Waggle removed old saved states to stay under your limit of %1 GB.", cap_gb), advice=names, page="disk"
        )
    title = counted(
        room.models,
        "Waggle removed a downloaded model to stay under your limit of %1 GB.",
        "Waggle removed %n downloaded models to stay under your limit of %1 GB.",
        cap_gb,
    )
    remedy = counted(room.models, "You can download it again.", "You can download them again.")
    return events.Warned(title=title, advice=in_turn(names, remedy), page="disk")


def _check_and_reserve(verifier: Verifier, charter: Charter, count: int) -> tuple[Question, ...]:
    verifier.check_charter()
    return tuple(
        question for specialty in charter.specialties for question in verifier.held_out(specialty.dataset, "test", count)
    )


def _trial_questions(verifier: Verifier, charter: Charter) -> list[Question]:
    """Reserved questions of all specialties, as many of each. A small file of questions may have none: then others of it."""
    each = max(1, form_choice.QUESTIONS // len(charter.specialties))
    names = [specialty.dataset for specialty in charter.specialties]
    return [
        question for name in names for question in verifier.held_out(name, "dev", each) or verifier.held_out(name, "train", each)
    ]


def _model_name(folder: Path, parameters: int) -> str:
    size = f"{parameters / 1e6:.1f}M" if parameters < 1e9 else f"{parameters / 1e9:.1f}B"
    return f"Starter {size}" if starters.is_starter(folder) else f"{folder.name[:40]} {size}"


def _randomness(home: paths.Home, chosen: Settings, identity: keys.Identity, publisher: EventPublisher) -> tuple[bytes, int]:
    """The origin, from which questions are made, and the seed of the random streams.

    With `learning.seed` both come from it alone, for a node without peers: its questions then belong to no key.
    """
    if chosen.learning.seed and chosen.swarm.solo:
        origin = PEER_ID_PREFIX + hashlib.sha256(b"waggle/repeat/1 %d" % chosen.learning.seed).digest()
        return origin, _seed(origin, b"")
    if chosen.learning.seed:
        publisher.publish(
            events.Warned(
                title=Message("The seed has no effect beside peers, as what they send cannot be repeated."),
                advice=Message("It counts for a node that trains alone: swarm.solo."),
            )
        )
    return identity.peer_id, _seed(identity.peer_id, noise_salt.salt_of(home))


def _seed(peer_id: bytes, salt: bytes) -> int:
    """The seed of a node's random streams: another for each node and each copy of its home, and the same after a restart."""
    return int.from_bytes(hashlib.sha256(b"waggle/noise/2" + peer_id + salt).digest()[:8], "big")


def _round_settings(chosen: Settings, charter: Charter, model: ModelConfig, method: Method, *, is_starter: bool) -> RoundSettings:
    learning = chosen.learning
    return RoundSettings(
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
        updates=learning.updates,
        form_pay=FORM_PAY if learning.form_pay == "on" or (learning.form_pay == "auto" and not is_starter) else 0.0,
        rule=update_rules.rule(learning.rule),
    ).under(charter)


def _ready_event(
    prepared: PreparedNode,
    identity: keys.Identity,
    charter: Charter,
    note: Message,
    form: events.PromptFormChoice,
    member_name: str,
) -> events.Ready:
    opened = prepared.opened
    return events.Ready(
        protocol=PROTOCOL,
        version=waggle.__version__,
        node=text_of(identity.peer_id),
        name=keys.name_of(identity.peer_id),
        member_name=member_name,
        swarm=charter.name,
        charter=charter.digest.hex(),
        specialties=tuple(
            events.SpecialtyInfo(dataset=specialty.dataset, title=specialty.title, levels=specialty.levels)
            for specialty in charter.specialties
        ),
        model=prepared.node.model,
        base=prepared.plan.base,
        model_note=note,
        prompt_form=msgspec.structs.replace(form, no_chat=opened.tokenizer.chat_problem),
        answer_length=prepared.answer_limit.length,
        backend=opened.backend,
        device=opened.device,
        device_reason=opened.reason,
        threads=opened.threads,
        cores=usable_cores(),
        round=prepared.progress.round,
        completions=prepared.progress.completions,
        group_size=prepared.plan.rules.group_size,
        questions=prepared.plan.rules.questions,
        parameters=opened.policy.parameters,
        recipe=prepared.plan.recipe,
        run=prepared.plan.run,
        better_swarm=better_swarm(charter, opened.policy.parameters),
    )


def _recipe(chosen: Settings, charter: Charter, form: events.PromptFormChoice, rules: RoundSettings) -> str:
    """Identifies what decides whether a round teaches anything."""
    learning = msgspec.to_builtins(chosen.learning)
    if not learning["seed"]:  # a run without one has the name that earlier versions gave it
        del learning["seed"]
    sizes = msgspec.json.encode((chosen.model, learning, rules.questions, rules.max_new))
    parts = (sizes, charter.digest, form.form.encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _warn_of_missing_checkpoint(publisher: EventPublisher) -> None:
    publisher.publish_soon(
        events.Warned(
            title=Message("The disk did not take a checkpoint."),
            advice=Message("The journal has every round since the last one. Make room on the disk."),
        )
    )


def _publish_short(publisher: EventPublisher, what: Message) -> None:
    publisher.publish_soon(events.Warned(title=what, advice=Message("Nothing was lost. Closing other programs makes room.")))


def _publish_replay(publisher: EventPublisher, done: int, total: int) -> None:
    part = Message("Learning again what came after the last checkpoint: %1 of %2 rounds", done, total)
    publisher.publish_soon(events.Preparing(part=part, done=3, parts=len(PARTS), long=True))


def _publish_trial(publisher: EventPublisher, done: int, total: int) -> None:
    part = Message("Trying how to ask this model: %1 of %2 ways", done, total)
    publisher.publish_soon(events.Preparing(part=part, done=4, parts=len(PARTS), long=True))


def _publish_part(publisher: EventPublisher, number: int) -> None:
    publisher.publish(events.Preparing(part=PARTS[number], done=number, parts=len(PARTS)))
