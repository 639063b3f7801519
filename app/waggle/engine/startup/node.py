"""Prepares a node, part by part: charter, model, verifier, checkpoint, swarm. Each part is published for the window."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import msgspec

import waggle
from waggle.core import paths
from waggle.core.errors import Stopped
from waggle.core.message import Message
from waggle.core.peer_id import text_of
from waggle.core.settings import Settings
from waggle.core.system.machine import usable_cores
from waggle.engine.command_handler import NodeServices
from waggle.engine.runtime import form_choice
from waggle.engine.runtime.answer_limit import AnswerLimit
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.services.chat import ChatService
from waggle.engine.services.leaderboard_exam import LeaderboardExam
from waggle.engine.services.models.current_weights import CurrentWeights
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.swarms import swarm_connection, swarm_question, swarms
from waggle.engine.services.swarms.better_swarm import better_swarm
from waggle.engine.services.swarms.invites import link_of_invite
from waggle.engine.services.swarms.swarm_connection import SwarmConnection
from waggle.engine.startup.answer_checker import start_verifier
from waggle.engine.startup.asking import Asking, settle_asking
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.model import (
    OpenModel,
    RestoredTraining,
    find_model,
    fit_and_open,
    hub_name,
    lock_model,
    name_with_size,
    open_snapshots,
    require_own_training,
    restore_training,
)
from waggle.engine.startup.reports import publish_part, warn_of_missing_checkpoint
from waggle.engine.startup.round_settings import held_out_plan, randomness, recipe_of
from waggle.engine.storage import round_saver
from waggle.engine.storage.tracking.figures import run_name
from waggle.engine.system.disk_limit import DiskLimit
from waggle.engine.system.resource_limits import ResourceLimits
from waggle.engine.training_loop import Progress, TrainingPlan
from waggle.models.memory_fit import Workload, answers_an_hour
from waggle.network import joined_swarms
from waggle.network.identity import keys
from waggle.protocol import PROTOCOL, events
from waggle.rl.batch import nothing
from waggle.sapo import sharing
from waggle.sapo.question_mix import QuestionMix
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question

First = TypeVar("First")
Second = TypeVar("Second")
STARTER_NOTE = Message("The starter knows many answers but hardly ever writes them in the answer tag. It learns that first.")


@dataclass(frozen=True)
class PreparedNode:
    """A node that can play rounds, and everything around it."""

    node: Node
    model: OpenModel
    swarm: SwarmConnection
    services: NodeServices
    plan: TrainingPlan
    progress: Progress  # where training continues
    take_exam: Callable[[int, int], None]  # of (round, groups of peers learned); see LeaderboardExam
    answer_limit: AnswerLimit
    saver: round_saver.RoundSaver
    current: CurrentWeights
    limits: ResourceLimits
    disk: DiskLimit

    @property
    def current_swarm(self) -> swarms.CurrentSwarm:
        return swarms.CurrentSwarm(self.node.charter, self.swarm.addresses)

    def apply_settings(self, now: Settings) -> tuple[str, ...]:
        """Follow the settings of the swarm and the computer; return the names of those that need a restart: none."""
        if self.swarm.leaderboard is not None:
            self.swarm.leaderboard.enable(on=now.swarm.leaderboard)
        return self.limits.apply(now.computer)


async def prepare_node(
    home: paths.Home, chosen: Settings, host: NodeHost, live: LiveChoices, opening: ModelOpening, stack: AsyncExitStack
) -> PreparedNode:
    """Create everything that a round needs; `stack` closes it. Raises WaggleError, and Stopped during a download or a replay."""
    publisher = host.publisher
    publish_part(publisher, 0)
    swarm_chosen = await swarm_question.swarm_or_question(home, chosen, publisher, host.stopped, opening.restart)
    charter = swarm_chosen.charter
    specialties = () if swarm_chosen.is_stand_in else swarm_connection.chosen_specialties(chosen, charter)
    identity = keys.load_or_create(home.identity)
    await _download_questions(home, chosen, charter, identity, host, live)
    folder = await find_model(home, chosen, host, live, opening)
    lock_model(folder, stack)
    await require_own_training(home, folder, chosen.model, host, opening.restart)

    publish_part(publisher, 1)
    (verifier, held_out), model = await _run_both(
        start_verifier(charter, home, chosen, host, stack),
        fit_and_open(home, folder, chosen, host, opening.parts_for),
    )

    publish_part(publisher, 3)
    restored = await restore_training(home, model, host, live.computer)

    publish_part(publisher, 4)
    member_name = joined_swarms.member_name_in(home.swarms, charter.digest.hex())
    swarm = await swarm_connection.join(
        home, chosen, charter, identity, verifier, publisher, stack, is_paused=lambda: host.gate.is_closed,
        training=host.training, invite=partial(link_of_invite, home, chosen, charter), member_name=member_name,
    )  # fmt: skip
    disk = DiskLimit(home, live.computer, folder)
    policy = round_saver.RecordingPolicy(model.opened.policy, lambda: host.gate.worked_seconds)
    saver = _round_saver(home, model, policy, restored, disk, publisher)
    origin, seed = randomness(home, chosen, identity, publisher)
    node = Node(
        policy=policy, tokenizer=model.opened.tokenizer, swarm=swarm, verifier=verifier, charter=charter,
        origin=origin, seed=seed,
        model=name_with_size(folder, model.opened.policy.parameters),
        sharing=sharing.strategy(chosen.learning.sharing).make(), specialties=specialties,
        mix=QuestionMix(restored.mix_under(charter)),
    )  # fmt: skip
    asking = await settle_asking(home, chosen, model, node, verifier, host)
    node = replace(node, form=form_choice.form_of(asking.form))
    current = CurrentWeights(host.gate, model.opened.policy, lambda: saver.newest, _memory_of_round(model))
    prepared = PreparedNode(
        node=node, model=model, swarm=swarm,
        services=await _node_services(home, node, model, asking, swarm, current, host, live),
        plan=_training_plan(chosen, node, model, asking, restored, held_out, is_repeatable=origin != identity.peer_id),
        progress=restored.progress,
        take_exam=nothing if swarm.leaderboard is None else LeaderboardExam(node, asking.rules, swarm.leaderboard, host.gate),
        answer_limit=asking.limit, saver=saver, current=current,
        limits=ResourceLimits(host.gate, model.opened, swarm.limit, saver.flush), disk=disk,
    )  # fmt: skip
    publisher.publish(_ready_event(prepared, identity, asking, member_name))
    return prepared


async def _run_both(task: Awaitable[First], other_task: Awaitable[Second]) -> tuple[First, Second]:
    """Await both at once; raise the first failure, but only after both have ended, as `stack` then closes what they opened."""
    first, second = await asyncio.gather(task, other_task, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second


async def _download_questions(
    home: paths.Home, chosen: Settings, charter: Charter, identity: keys.Identity, host: NodeHost, live: LiveChoices
) -> None:
    """Download the charter's own questions if they are not here. Raises SwarmError, and Stopped."""

    def report(done: int, total: int) -> None:
        part = Message("Downloading the swarm's questions: %1 of %2 parts", done, total)
        host.publisher.publish(events.Preparing(part=part, done=0, parts=len(PARTS), long=True))

    limit = live.computer().traffic_kb * 1e3 or None
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


def _round_saver(
    home: paths.Home, model: OpenModel, policy: round_saver.RecordingPolicy, restored: RestoredTraining, disk: DiskLimit,
    publisher: EventPublisher,
) -> round_saver.RoundSaver:  # fmt: skip
    return round_saver.RoundSaver(
        home.model.checkpoints, model.opened.policy, policy, restored.checkpoint_round, partial(disk.make_room, publisher),
        partial(warn_of_missing_checkpoint, publisher), restored=restored.saved,
    )  # fmt: skip


def _memory_of_round(model: OpenModel) -> int:
    """Bytes of this process that a round is foretold to take; 0 if a graphics card takes them."""
    return model.fit.needs if model.opened.device == "cpu" or model.opened.backend != "torch" else 0


async def _node_services(
    home: paths.Home, node: Node, model: OpenModel, asking: Asking, swarm: SwarmConnection, current: CurrentWeights,
    host: NodeHost, live: LiveChoices,
) -> NodeServices:  # fmt: skip
    publisher = host.publisher
    snapshots = await asyncio.get_running_loop().run_in_executor(
        host.policy_thread, open_snapshots, home, model.folder, model.opened, host.stopped.is_set, live.computer
    )
    snapshots = replace(snapshots, current=current)
    return NodeServices(
        choose_peer=partial(swarm_connection.choose_peer, swarm),
        sent=lambda: swarm_connection.sent_messages(swarm, publisher.state.peers),
        playground=PlaygroundService(snapshots, node, asking.rules, live.may_share, lambda: publisher.state.round),
        chat=ChatService(snapshots, node.form.text, asking.limit.ceiling, publisher.broadcast),
    )


def _training_plan(
    chosen: Settings, node: Node, model: OpenModel, asking: Asking, restored: RestoredTraining, held_out: tuple[Question, ...],
    *, is_repeatable: bool,
) -> TrainingPlan:  # fmt: skip
    recipe = recipe_of(chosen, node.charter, asking.form, asking.rules)
    return TrainingPlan(
        rules=asking.rules,
        base=restored.base,
        held_out=held_out_plan(chosen.learning.held_out_every, held_out, asking.rules, is_starter=model.is_starter),
        hub=hub_name(chosen.model, restored.saved),
        identity=restored.identity,
        recipe=recipe,
        run=run_name(chosen.tracking.run, node.model, node.charter.name, recipe),
        rule=chosen.learning.rule,
        epoch_is_round=is_repeatable,
    )


def _model_note(model: OpenModel, rules: RoundSettings) -> Message:
    """How the model fits, and its speed at the answer length that was settled."""
    if model.is_starter:
        return STARTER_NOTE
    work = Workload(rules.questions, rules.local + rules.external, rules.group_size, rules.max_new)
    speed = answers_an_hour(model.config, model.machine, work, model.fit.training)
    return replace(model.fit, answers_an_hour=speed).sentence


def _ready_event(prepared: PreparedNode, identity: keys.Identity, asking: Asking, member_name: str) -> events.Ready:
    charter, opened = prepared.node.charter, prepared.model.opened
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
        model_note=_model_note(prepared.model, asking.rules),
        prompt_form=msgspec.structs.replace(asking.form, no_chat=opened.tokenizer.chat_problem),
        answer_length=asking.limit.length,
        backend=opened.backend,
        device=opened.device,
        device_reason=opened.reason,
        threads=opened.threads,
        cores=usable_cores(),
        round=prepared.progress.round,
        completions=prepared.progress.completions,
        group_size=asking.rules.group_size,
        questions=asking.rules.questions,
        test_every=prepared.plan.held_out.every,
        parameters=opened.policy.parameters,
        recipe=prepared.plan.recipe,
        run=prepared.plan.run,
        better_swarm=better_swarm(charter, opened.policy.parameters),
    )
