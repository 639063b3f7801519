"""Test that a trial that is saved, and continued by new objects, gives the result of one that is played straight through."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from practice.test_trial import CHARTER, RULES, Knowing, Remembering, key, one_thread
from waggle.core import paths
from waggle.core.errors import CheckpointError
from waggle.models.shared.training_mode import TrainingMode
from waggle.practice.simulated_swarm import Weather
from waggle.practice.trial import Setup, Trial
from waggle.rl.update_rules import grpo, ppo
from waggle.sapo.sharing import strategy, table
from waggle.sapo.stages import BOUNDED

__all__ = ["one_thread"]
ROUNDS, STOP = 9, 5
REMEMBERING = [name for name, registered in table().items() if registered.make().memory.__struct_fields__]


@pytest.fixture(scope="module")
def setup(verifier) -> Setup:
    """Three nodes: one with a critic, one with LoRA, one that is slow; groups travel for two ticks, and some are lost."""
    names = tuple(specialty.dataset for specialty in CHARTER.specialties)
    reserved = tuple(question for each in CHARTER.specialties for question in verifier.held_out(each.dataset, "dev", 1))
    return Setup(
        folders=(paths.starter(),) * 3,
        models=("starter",) * 3,
        charter=CHARTER,
        rules=replace(RULES, questions=6, local=2, external=3, bounds=BOUNDED),
        sharing=strategy("adaptive").make,
        most_questions=12,
        held_out=reserved,
        final_held_out=reserved,
        measure_every=3,
        weather=Weather(delay=2, loss=0.1, speeds=(1.0, 1.0, 0.75)),
        specialties=(names[:4], names[4:], ()),
        updates=(ppo.RULE, grpo.RULE, grpo.RULE),
        training=(TrainingMode(), TrainingMode("lora"), TrainingMode()),
    )


def new_trial(setup: Setup, verifier) -> Trial:
    """A trial of nodes that know some answers, so that they teach each other from the first round on."""
    remembering = Remembering(verifier)
    trial = Trial(key(rounds=ROUNDS), setup, remembering)
    for player in trial._players:
        player.node = replace(player.node, policy=Knowing(player.policy, player.node.tokenizer, remembering))
    return trial


def play_to(trial: Trial, tick: int) -> Trial:
    next(number for number in trial.run() if number == tick)
    return trial


@pytest.fixture(scope="module")
def saved(setup, verifier, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    play_to(new_trial(setup, verifier), STOP).save(folder)
    return folder


def require_fullness(trial: Trial) -> None:
    """Otherwise empty things would be compared."""
    swarm = trial._swarm.state()
    assert all(swarm.parcels)
    assert all(pool.met for pool in swarm.pools)
    assert any(pool.waiting for pool in swarm.pools)
    assert trial.log.ahas
    assert trial.log.state().measured_at == (0, 3)
    assert any(player.ahas.taught_by for player in trial._players)
    assert any(player.node.balance.state() for player in trial._players)
    for player in trial._players:
        memory = player.node.sharing.memory
        assert not memory.__struct_fields__ or memory != type(memory)()
        assert player.ahas.known
        assert player.useful > 0


@pytest.mark.parametrize("name", ["adaptive", *REMEMBERING])
def test_a_trial_that_was_stopped_gives_the_same_run_to_the_last_bit(name, setup, verifier, tmp_path):
    setup = replace(setup, sharing=strategy(name).make)
    straight = play_to(new_trial(setup, verifier), STOP)
    straight.save(tmp_path)
    require_fullness(straight)
    list(straight.run())  # saving changes nothing
    continued = new_trial(setup, verifier)
    continued.restore(tmp_path)
    assert continued.tick == STOP
    assert list(continued.run()) == list(range(STOP + 1, ROUNDS + 1))

    assert continued.result(0.0, "here") == straight.result(0.0, "here")
    for name, array in straight.log.arrays.items():
        assert array.tobytes() == continued.log.arrays[name].tobytes(), name
    for first, second in zip(straight._players, continued._players, strict=True):
        assert first.policy.steps == second.policy.steps > 0
        for theirs, ours in zip(first.policy.state(), second.policy.state(), strict=True):
            assert theirs.keys() == ours.keys()
            assert all(np.array_equal(theirs[name], ours[name]) for name in theirs)
        assert first.node.sharing.memory == second.node.sharing.memory
        assert first.node.mix.state == second.node.mix.state
        assert first.node.balance.state() == second.node.balance.state()
    assert straight._swarm.state() == continued._swarm.state()


def test_a_save_that_is_cut_short_or_of_another_model_is_refused(setup, verifier, saved, tmp_path):
    other = replace(setup, folders=(tmp_path / "other", *setup.folders[1:]))
    (tmp_path / "other").mkdir()
    for file in paths.starter().iterdir():
        (tmp_path / "other" / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "other" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(CheckpointError, match="belongs to another model"):
        new_trial(other, verifier).restore(saved)
    state = saved / "trial.msgpack"
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(ValueError, match="truncated"):
        new_trial(setup, verifier).restore(saved)
