"""Opens the model with what it has learned: lock, ownership, memory, checkpoint and journal, and its earlier states."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import ModelError, ModelMissing, Stopped
from waggle.core.message import Message, plain
from waggle.core.settings import ComputerSettings, ModelSettings, Settings
from waggle.core.system import file_moves
from waggle.engine.runtime import model_fit, model_source
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.services.models import model_question
from waggle.engine.services.models.snapshots import Snapshots
from waggle.engine.startup.host import LiveChoices, ModelOpening, NodeHost
from waggle.engine.startup.reports import publish_replay, publish_short
from waggle.engine.storage import round_saver, snapshot_archive
from waggle.engine.system.opening_note import OpeningNote
from waggle.engine.system.resource_limits import share_of_time
from waggle.engine.training_loop import Progress
from waggle.models.backend import OpenedPolicy, open_policy, threads_for
from waggle.models.inspection import inspector
from waggle.models.memory_fit import DeviceCapacity, MemoryFit
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.pulse import has_pulse
from waggle.models.shared.suggested_models import title_of
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, hub_cache, hub_download, identity, ownership, starters
from waggle.models.storage.identity import ModelIdentity
from waggle.protocol import events
from waggle.protocol.events_models import ModelChanged
from waggle.tasks.charter import Charter


@dataclass(frozen=True)
class OpenModel:
    """A model in memory, the computer that it runs on, and how it fits there."""

    folder: Path
    config: ModelConfig
    machine: DeviceCapacity
    fit: MemoryFit
    opened: OpenedPolicy

    @property
    def is_starter(self) -> bool:
        return starters.is_starter(self.folder)


@dataclass(frozen=True)
class RestoredTraining:
    """What a home had of a model's training when the engine started."""

    base: str  # identifies the weights from which the training began: see ownership.base_of
    identity: ModelIdentity
    saved: checkpoint.CheckpointState | None  # with the rounds of the journal; None before the first round
    checkpoint_round: int | None  # of the newest whole checkpoint

    @property
    def progress(self) -> Progress:
        return Progress(self.saved.round, self.saved.completions, self.saved.learned) if self.saved else Progress()

    def mix_under(self, charter: Charter) -> dict[str, float] | None:
        """See QuestionMix; None if it was trained under another charter."""
        return self.saved.mix if self.saved and self.saved.charter == charter.digest.hex() else None


async def find_model(home: paths.Home, chosen: Settings, host: NodeHost, live: LiveChoices, opening: ModelOpening) -> Path:
    """The model's folder, downloaded first if it is not here. Asks a person about a model that cannot be had.

    Raises ModelError, and Stopped, also where a person chose another swarm or model meanwhile.
    """
    find = partial(
        model_source.find_model, chosen.model, host.publisher, host.gate, host.stopped,
        partial(_require_fit, host.policy_thread, chosen),
        checkpoints=home.model.checkpoints, limit=lambda: live.computer().traffic_kb * 1e3, patient=opening.patient,
        commit=checkpoint.commit_of(home.model.checkpoints, chosen.model.name),
    )  # fmt: skip
    if opening.patient:
        folder = await model_question.model_or_question(chosen.model, find, host.publisher, host.stopped)
    else:
        folder = await find()
    if host.stopped.is_set():
        raise Stopped
    return folder


def lock_model(folder: Path, stack: AsyncExitStack) -> None:
    """Keep the engines of other homes from removing this model."""
    if folder.is_relative_to(paths.models()):
        with suppress(OSError):  # just removed: loading it reports that
            stack.callback(hub_cache.hold(folder).close)


async def require_own_training(
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
    name = title_of(chosen.name) or (plain(folder.name)[:60] if chosen.folder else "The starter")
    host.publisher.publish(ModelChanged(model=name, rounds=other.rounds, fits=other.fits, is_whole=other.is_whole))
    await host.stopped.wait()
    raise Stopped


def _require_fit(policy_thread: ThreadPoolExecutor, chosen: Settings, folder: Path) -> None:
    """Raise ModelError if a model does not fit, before its weights are downloaded. It is the policy thread that measures."""
    policy_thread.submit(model_fit.require_fit, folder, chosen).result()


async def fit_and_open(
    home: paths.Home, folder: Path, chosen: Settings, host: NodeHost, parts_for: Callable[[int], int]
) -> OpenModel:
    """Open a model the way that fits into this computer's memory. Raises ModelError."""
    loop = asyncio.get_running_loop()
    with nullcontext() if starters.is_starter(folder) else OpeningNote(home).opening(chosen.model, folder):
        if not starters.is_starter(folder):
            await asyncio.to_thread(_inspect, folder)
        config = generic_config.read_any(folder)
        machine = await loop.run_in_executor(host.policy_thread, model_fit.measure_machine, chosen)
        fit = model_fit.fit_model(machine, config, chosen, checkpoint.method_of(home.model.checkpoints), parts_for)
        opened = await loop.run_in_executor(host.policy_thread, partial(_open, folder, chosen, fit.training, host.publisher))
    return OpenModel(folder, config, machine, fit, opened)


def _inspect(folder: Path) -> None:
    """Raise ModelMissing if a model cannot be opened, whichever swarm it is for."""
    try:
        inspector.inspect(folder)
    except ModelError as error:
        raise ModelMissing(error.title, error.advice) from error


def _open(folder: Path, chosen: Settings, training: TrainingMode, publisher: EventPublisher) -> OpenedPolicy:
    return open_policy(
        folder,
        device=chosen.computer.device,
        threads=threads_for(chosen.computer.threads),
        training=training,
        short=partial(publish_short, publisher),
    )


async def restore_training(
    home: paths.Home, model: OpenModel, host: NodeHost, computer: Callable[[], ComputerSettings]
) -> RestoredTraining:
    """Load the newest checkpoint into the model and replay its journal. Raises CheckpointError, ModelError and Stopped."""
    opened, publisher = model.opened, host.publisher

    def share() -> int:
        return share_of_time(computer(), opened.device)

    def pause_point() -> None:
        """Pass the gate with the current share of time, which may change in the hours that a replay can take."""
        host.gate.set_percent(share())
        host.gate()

    base = await asyncio.to_thread(ownership.base_of, home.model.checkpoints, model.folder)
    now = await asyncio.to_thread(identity.read, model.folder)  # before a replay, which may take long
    host.gate.set_percent(share())
    report = partial(publish_replay, publisher)
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
    saved, checkpoint_round, aside = await asyncio.get_running_loop().run_in_executor(host.policy_thread, load)
    snapshot_archive.set_aside_after(home.model.snapshots, saved.round if saved else 0)
    for folder in aside:
        publisher.publish(events.CheckpointSetAside(folder=folder.folder.name, reason=folder.reason))
    if saved and saved.optimizer != opened.policy.training.optimizer:
        publisher.publish(
            events.Warned(title=Message("The model is trained another way than before: its optimiser begins anew."))
        )
    _report_other_speech(home, saved, now, publisher)
    return RestoredTraining(base, now, saved, checkpoint_round)


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


def open_snapshots(
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


def hub_name(chosen: ModelSettings, saved: checkpoint.CheckpointState | None) -> str:
    """See `CheckpointState.hub`. What began from the hub and continues from a folder is still known there."""
    if chosen.name:
        return hub_download.name_and_commit(chosen.name, paths.models())
    return saved.hub if saved else ""


def name_with_size(folder: Path, parameters: int) -> str:
    size = f"{parameters / 1e6:.1f}M" if parameters < 1e9 else f"{parameters / 1e9:.1f}B"
    return f"Starter {size}" if starters.is_starter(folder) else f"{folder.name[:40]} {size}"
