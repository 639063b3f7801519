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
from waggle.engine.runtime import form_choice, model_fit, model_source
from waggle.engine.runtime.answer_limit import AnswerLimit, answer_length
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.startup_parts import PARTS
from waggle.engine.services.chat import ChatService
from waggle.engine.services.leaderboard_exam import LeaderboardExam
from waggle.engine.services.models import model_question
from waggle.engine.services.models.current_weights import CurrentWeights
from waggle.engine.services.playground import PlaygroundService
from waggle.engine.services.swarms import swarm_connection, swarm_question, swarms
from waggle.engine.services.swarms.better_swarm import better_swarm
from waggle.engine.services.swarms.invites import link_of_invite
from waggle.engine.services.swarms.swarm_connection import SwarmConnection
from waggle.engine.startup.answer_checker import start_verifier, trial_questions
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.model import (
    fit_and_open,
    hub_name,
    lock_model,
    name_with_size,
    open_snapshots,
    report_other_speech,
    require_fit,
    require_own_training,
    restore_training,
)
from waggle.engine.startup.reports import publish_part, publish_trial, warn_of_missing_checkpoint
from waggle.engine.startup.round_settings import held_out_plan, randomness, recipe_of, round_settings
from waggle.engine.storage import round_saver
from waggle.engine.storage.tracking.figures import run_name
from waggle.engine.system.disk_limit import DiskLimit
from waggle.engine.system.resource_limits import ResourceLimits
from waggle.engine.training_loop import Progress, TrainingPlan
from waggle.models.backend import OpenedPolicy
from waggle.models.memory_fit import DeviceCapacity, Workload, answers_an_hour
from waggle.models.shared import generic_config
from waggle.models.storage import checkpoint, ownership, starters
from waggle.models.storage import identity as identity_of_model
from waggle.network import joined_swarms
from waggle.network.identity import keys
from waggle.protocol import PROTOCOL, events
from waggle.rl.batch import nothing
from waggle.sapo import sharing
from waggle.sapo.question_mix import QuestionMix
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.charter import Charter

First = TypeVar("First")
Second = TypeVar("Second")
STARTER_NOTE = Message("The starter knows many answers but hardly ever writes them in the answer tag. It learns that first.")


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
    disk: DiskLimit


async def prepare_node(
    home: paths.Home, chosen: Settings, host: NodeHost, live: LiveChoices, opening: ModelOpening, stack: AsyncExitStack
) -> PreparedNode:
    """Create everything that a round needs; `stack` closes it. Raises WaggleError, and Stopped during a download or a replay."""
    publisher, policy_thread, gate, computer = host.publisher, host.policy_thread, host.gate, live.computer
    publish_part(publisher, 0)
    swarm_chosen = await swarm_question.swarm_or_question(home, chosen, publisher, host.stopped, opening.restart)
    charter = swarm_chosen.charter
    specialties = () if swarm_chosen.is_stand_in else swarm_connection.chosen_specialties(chosen, charter)
    identity = keys.load_or_create(home.identity)
    await _download_questions(home, chosen, charter, identity, host, computer().traffic_kb * 1e3 or None)
    examine, traffic = partial(require_fit, policy_thread, chosen), lambda: computer().traffic_kb * 1e3
    commit = checkpoint.commit_of(home.model.checkpoints, chosen.model.name)
    find = partial(
        model_source.find_model, chosen.model, publisher, gate, host.stopped, examine, checkpoints=home.model.checkpoints,
        limit=traffic, patient=opening.patient, commit=commit,
    )  # fmt: skip
    folder = await (model_question.model_or_question(chosen.model, find, publisher, host.stopped) if opening.patient else find())
    if host.stopped.is_set():  # a person chose another swarm or model meanwhile: do not open this one
        raise Stopped
    lock_model(folder, stack)
    await require_own_training(home, folder, chosen.model, host, opening.restart)

    publish_part(publisher, 1)
    (verifier, held_out), (machine, fit, opened) = await _run_both(
        start_verifier(charter, home, chosen, host, stack),
        fit_and_open(home, folder, chosen, publisher, policy_thread, opening.parts_for),
    )

    publish_part(publisher, 3)
    base = await asyncio.to_thread(ownership.base_of, home.model.checkpoints, folder)
    who = await asyncio.to_thread(identity_of_model.read, folder)  # before a replay, which may take long
    saved, checkpoint_round = await restore_training(home, opened, base, policy_thread, publisher, gate, computer)
    report_other_speech(home, saved, who, publisher)

    publish_part(publisher, 4)
    member_name = joined_swarms.member_name_in(home.swarms, charter.digest.hex())
    swarm = await swarm_connection.join(
        home, chosen, charter, identity, verifier, publisher, stack, is_paused=lambda: gate.is_closed, training=host.training,
        invite=partial(link_of_invite, home, chosen, charter),
        member_name=member_name,
    )  # fmt: skip
    recording_policy = round_saver.RecordingPolicy(opened.policy, lambda: gate.worked_seconds)
    origin, seed = randomness(home, chosen, identity, publisher)
    node = Node(
        policy=recording_policy, tokenizer=opened.tokenizer, swarm=swarm, verifier=verifier, charter=charter,
        origin=origin, seed=seed,
        model=name_with_size(folder, opened.policy.parameters),
        sharing=sharing.strategy(chosen.learning.sharing).make(), specialties=specialties,
        mix=QuestionMix(saved.mix if saved and saved.charter == charter.digest.hex() else None),
    )  # fmt: skip
    disk = DiskLimit(home, computer, folder)
    saver = _round_saver(home, opened, recording_policy, (saved, checkpoint_round), disk.make_room, publisher)
    is_starter, model = starters.is_starter(folder), generic_config.read_any(folder)
    rules = round_settings(chosen, charter, model, fit.training.method, is_starter=is_starter)
    form = form_choice.settled_form(chosen.model.prompt_form, is_starter, node, home.model.prompt_form)
    if form is None:
        form = await asyncio.get_running_loop().run_in_executor(
            policy_thread,
            lambda: form_choice.try_form(
                node, rules, trial_questions(verifier, charter), home.model.prompt_form, gate,
                partial(publish_trial, publisher),
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
        policy_thread, open_snapshots, home, folder, opened, host.stopped.is_set, computer
    )
    snapshots = replace(snapshots, current=current)
    recipe = recipe_of(chosen, charter, form, rules)
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
            held_out=held_out_plan(chosen.learning.held_out_every, held_out, rules, is_starter=is_starter),
            hub=hub_name(chosen.model, saved),
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
    work = Workload(rules.questions, rules.local + rules.external, rules.group_size, rules.max_new)
    fit = replace(fit, answers_an_hour=answers_an_hour(model, machine, work, fit.training))  # at the length that was settled
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


def _round_saver(
    home: paths.Home, opened: OpenedPolicy, recording_policy: round_saver.RecordingPolicy,
    restored: tuple[checkpoint.CheckpointState | None, int | None],
    make_room_here: Callable[[EventPublisher], None], publisher: EventPublisher,
) -> round_saver.RoundSaver:  # fmt: skip
    saved, checkpoint_round = restored
    refused, room = partial(warn_of_missing_checkpoint, publisher), partial(make_room_here, publisher)
    return round_saver.RoundSaver(
        home.model.checkpoints, opened.policy, recording_policy, checkpoint_round, room, refused, restored=saved
    )


def _apply_settings(swarm: SwarmConnection, now: Settings) -> tuple[str, ...]:
    if swarm.leaderboard is not None:
        swarm.leaderboard.enable(on=now.swarm.leaderboard)
    return ()


def _leaderboard_exam(node: Node, rules: RoundSettings, swarm: SwarmConnection, gate: PauseGate) -> Callable[[int, int], None]:
    return nothing if swarm.leaderboard is None else LeaderboardExam(node, rules, swarm.leaderboard, gate)


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
        test_every=prepared.plan.held_out.every,
        parameters=opened.policy.parameters,
        recipe=prepared.plan.recipe,
        run=prepared.plan.run,
        better_swarm=better_swarm(charter, opened.policy.parameters),
    )
