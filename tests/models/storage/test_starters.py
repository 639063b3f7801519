"""Homes that trained a former starter continue with it."""

from pathlib import Path

import pytest

from waggle.core import paths
from waggle.core.settings import ModelSettings
from waggle.engine.services.models.export import newest_trained
from waggle.models.backend import open_policy
from waggle.models.storage import checkpoint, starters


def save_a_round(checkpoints: Path, model: Path) -> None:
    policy = open_policy(model, device="cpu", threads=1).policy
    state = checkpoint.CheckpointState(round=3, step=0, epoch=0, charter="", base=checkpoint.base_of(model))
    checkpoint.save(checkpoints, policy, state)


@pytest.mark.parametrize("former", paths.former_starters(), ids=lambda folder: folder.name)
def test_a_home_that_trained_a_former_starter_continues_with_it(former: Path, tmp_path: Path) -> None:
    save_a_round(tmp_path, former)
    assert starters.starter_of(tmp_path) == former
    assert starters.is_starter(former)


@pytest.mark.parametrize("former", paths.former_starters(), ids=lambda folder: folder.name)
def test_a_trained_former_starter_can_be_exported(former: Path, tmp_path: Path) -> None:
    home = paths.Home(tmp_path).prepare()
    save_a_round(home.model.checkpoints, former)
    source = newest_trained(home, ModelSettings())
    assert source.base == former
    assert source.saved.round == 3


def test_all_other_homes_train_the_starter_of_today(tmp_path: Path) -> None:
    assert starters.starter_of(tmp_path) == paths.starter(), "no checkpoint"
    save_a_round(tmp_path, paths.starter())
    assert starters.starter_of(tmp_path) == paths.starter()


def test_a_checkpoint_of_another_model_is_no_starters(tmp_path: Path) -> None:
    former = paths.former_starters()[0]
    save_a_round(tmp_path, former)
    state = tmp_path / "r00000003" / "state.json"
    state.write_bytes(state.read_bytes().replace(checkpoint.base_of(former).encode(), b"0" * 32))
    assert starters.starter_of(tmp_path) == paths.starter()
    assert not starters.is_starter(tmp_path)
