"""Test that the weights of now are handed out by the policy thread, and that a snapshot of them computes what the policy does."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tiny_kinds import make_kind
from waggle.core import paths
from waggle.core.errors import EngineError, Stopped
from waggle.core.settings import ComputerSettings
from waggle.core.system.process_memory import resident_bytes
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.services.models import current_weights
from waggle.engine.services.models.current_weights import CurrentWeights, CurrentWeightsError
from waggle.engine.services.models.snapshots import Snapshots
from waggle.engine.storage import snapshot_archive
from waggle.models.backend import open_policy
from waggle.models.memory_fit import Workload
from waggle.models.shared import weight_files
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import CheckpointState
from waggle.models.storage.hub_download import WORDS
from waggle.rl.batch import StepParams, TokenizedGroup, TrainingGroup

TEXT = TokenizedGroup(np.arange(1, 9, dtype=np.int32), (np.arange(9, 20, dtype=np.int32),))
LESSON = TrainingGroup(
    prompt=TEXT.prompt, completions=TEXT.completions, advantage=np.ones(11, np.float32), weight=np.full(11, 1 / 11, np.float32)
)
SOON = 60.0
GB = 1_000_000_000
WORK = Workload(questions=1, groups=0, group_size=1, longest=16)


@dataclass
class Trainer:
    """A policy thread with a policy that is at the gate, and the state of its last stored round."""

    pool: ThreadPoolExecutor
    gate: PauseGate
    policy: Any
    newest: CheckpointState | None = None

    @property
    def current(self) -> CurrentWeights:
        return CurrentWeights(self.gate, self.policy, lambda: self.newest)

    def learn(self, rounds: int) -> None:
        """Learn a few rounds. The last one is stored, but in no checkpoint."""
        for _ in range(rounds):
            self.pool.submit(self.policy.step, [LESSON], StepParams(learning_rate=0.01)).result()
        self.newest = CheckpointState(
            round=rounds, step=self.policy.steps, epoch=1, charter="ab" * 32, base="b", method=self.policy.training.method
        )

    def play(self) -> None:
        """Pass the gate again and again, as during a round."""
        self.pool.submit(self._play)

    def _play(self) -> None:
        with suppress(Stopped):
            while True:
                self.gate()

    def logprobs(self) -> np.ndarray[Any, Any]:
        return self.gate.submit(lambda: self.policy.logprobs([TEXT], 1.0)[0]).result(SOON)


@pytest.fixture
def trainer_of() -> Iterator[Callable[..., Trainer]]:
    trainers = []

    def make(folder: Path, device: str = "cpu", **training: Any) -> Trainer:
        pool = ThreadPoolExecutor(1)
        opened = pool.submit(open_policy, folder, device=device, threads=1, training=TrainingMode(**training)).result()
        trainers.append(Trainer(pool, PauseGate(lambda: None), opened.policy))
        return trainers[-1]

    yield make
    for trainer in trainers:
        trainer.gate.stop()
        trainer.pool.shutdown()


@pytest.fixture
def home(tmp_path) -> paths.Home:
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture(scope="module")
def smollm3(tmp_path_factory) -> Path:
    """A model that only the generic path computes, with the starter's tokenizer."""
    folder = tmp_path_factory.mktemp("smollm3")
    for name in WORDS:
        if (paths.starter() / name).is_file():
            shutil.copy(paths.starter() / name, folder)
    vocabulary = weight_files.arrays_by_name(paths.starter())["model.embed_tokens.weight"].shape[0]
    return make_kind("smollm3", folder, vocab_size=vocabulary)


@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("path", ["fast", "generic", "mlx"])
def test_a_snapshot_of_now_computes_what_the_policy_computes(trainer_of, home, smollm3, path, method):
    if path == "mlx":
        pytest.importorskip("mlx.core")
    if (path, method) == ("generic", "lora"):
        pytest.importorskip("peft")
    folder, device = (smollm3 if path == "generic" else paths.starter()), "mlx" if path == "mlx" else "cpu"
    trainer = trainer_of(folder, device, method=method)
    trainer.learn(3)
    trainer.play()
    snapshots = Snapshots(
        home, folder, device, lambda: ComputerSettings(threads=1), (TrainingMode(method),), current=trainer.current
    )
    answering = snapshots.answering(1, WORK)
    assert ([snapshot.rounds for snapshot in answering.snapshots], answering.not_now) == ([0, 3], "")
    with snapshots.open(answering.snapshots[-1], answering.training) as opened:
        assert np.allclose(opened.policy.logprobs([TEXT], 1.0)[0], trainer.logprobs(), atol=1e-5)
    with snapshots.open(answering.snapshots[0], answering.training) as opened:
        assert not np.allclose(opened.policy.logprobs([TEXT], 1.0)[0], trainer.logprobs(), atol=1e-2)
    with trainer.current.in_folder(home.model.checkpoints) as (written, saved):
        arrays = weight_files.load(written / checkpoint.weights_file(saved))
    weights = trainer.gate.submit(trainer.policy.weights).result(SOON)
    assert arrays.keys() == weights.keys()
    assert all(np.array_equal(arrays[name], weights[name]) for name in weights)
    assert list(home.model.checkpoints.iterdir()) == [], "it is removed"


def test_a_copy_is_not_changed_by_the_next_step(trainer_of):
    trainer = trainer_of(paths.starter())
    trainer.learn(1)
    trainer.gate.close()
    trainer.play()
    _, weights = trainer.current.copy()
    before = {name: weight.copy() for name, weight in weights.items()}
    trainer.gate.submit(lambda: trainer.policy.step([LESSON], StepParams(learning_rate=0.01))).result(SOON)
    assert all(np.array_equal(weights[name], before[name]) for name in weights)


def test_weights_of_a_round_that_is_not_stored_are_not_handed_out(trainer_of):
    """As between two updates of a round, or while a full disk refuses it: it waits for the end of the round, or says so."""
    trainer = trainer_of(paths.starter())
    trainer.learn(1)
    stored = trainer.newest
    trainer.learn(1)
    after, trainer.newest = trainer.newest, stored
    trainer.play()
    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(trainer.current.copy)
        passed = [trainer.gate.submit(threading.get_ident).result(SOON) for _ in range(10)]
        assert len(passed) == 10
        assert not copying.done()
        trainer.newest = after
        assert copying.result(SOON)[0] is after
    trainer.newest = stored
    trainer.gate.close()
    with pytest.raises(CurrentWeightsError, match="not stored yet"):
        trainer.current.copy()


def test_chat_is_refused_in_numbers_if_it_does_not_fit_beside_what_the_round_will_still_take(trainer_of, home, monkeypatch):
    trainer = trainer_of(paths.starter())
    snapshots = Snapshots(
        home, paths.starter(), "cpu", current=replace(trainer.current, peak=resident_bytes(os.getpid()) + 10 * GB)
    )
    monkeypatch.setattr("waggle.engine.services.models.snapshots.available_memory", lambda: 20 * GB)
    assert snapshots.require_room(2, WORK) == TrainingMode()
    monkeypatch.setattr("waggle.engine.services.models.snapshots.available_memory", lambda: 9 * GB)
    with pytest.raises(EngineError, match=r"takes 0\.0 GB, and 0\.\d GB of memory are free for it"):
        snapshots.require_room(2, WORK)


def test_before_the_first_round_there_are_no_weights_of_now(trainer_of, home):
    trainer = trainer_of(paths.starter())
    trainer.play()
    snapshots = Snapshots(home, paths.starter(), "cpu", current=trainer.current)
    assert snapshots.rounds() == [0]
    assert [snapshot.rounds for snapshot in snapshots.answering(1, WORK).snapshots] == [0]
    with pytest.raises(CurrentWeightsError, match="Nothing is trained"):
        trainer.current.copy()


def test_the_newest_checkpoint_answers_where_now_cannot_and_that_is_said(trainer_of, home, monkeypatch):
    trainer = trainer_of(paths.starter())
    trainer.learn(2)
    checkpoint.save(home.model.checkpoints, trainer.policy, trainer.newest)
    trainer.learn(4)
    trainer.play()
    snapshots = Snapshots(home, paths.starter(), "cpu", current=trainer.current)
    assert [snapshot.rounds for snapshot in snapshots.answering(1, WORK).snapshots] == [0, 4], "the next replaces it"
    snapshot_archive.archive_newest(home.model.checkpoints, home.model.snapshots)
    assert [snapshot.rounds for snapshot in snapshots.answering(1, WORK).snapshots] == [0, 2, 4], "but the archive stays"
    monkeypatch.setattr(current_weights, "MEMORY_SHARE", 0.0)
    answering = snapshots.answering(1, WORK)
    assert [snapshot.rounds for snapshot in answering.snapshots] == [0, 2]
    assert answering.not_now == "There is too little free memory to copy the weights of now."


def test_a_disk_that_refuses_is_named_and_nothing_half_written_stays(trainer_of, home, monkeypatch):
    trainer = trainer_of(paths.starter())
    trainer.learn(1)
    trainer.play()
    with (
        pytest.raises(CurrentWeightsError, match="The disk refused the weights of now"),
        trainer.current.in_folder(home.root / "no"),
    ):
        pass
    usage = shutil.disk_usage(home.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with (
        pytest.raises(CurrentWeightsError, match="No space left"),
        trainer.current.in_folder(home.model.checkpoints),
    ):
        pass
    assert list(home.model.checkpoints.iterdir()) == []


def test_an_engine_that_ends_hands_nothing_out(trainer_of):
    trainer = trainer_of(paths.starter())
    trainer.learn(1)
    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(trainer.current.copy)
        trainer.gate.stop()
        with pytest.raises(EngineError, match="The engine is ending"):
            copying.result(SOON)
