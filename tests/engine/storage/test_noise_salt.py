"""Copies of a home draw differently; a restart in the same place draws as before."""

import shutil

import pytest

from waggle.core import paths
from waggle.engine.startup.round_settings import _seed
from waggle.engine.storage import noise_salt
from waggle.rl.random_streams import uniforms

PEER = b"p" * 38


def noise_of(home):
    return uniforms(_seed(PEER, noise_salt.salt_of(home)), "sample", 1, 1, 1, 4).tobytes()


@pytest.fixture
def home(tmp_path):
    return paths.Home(tmp_path / "A").prepare()


def test_a_copy_of_a_home_draws_differently_and_a_restart_draws_as_before(home, tmp_path):
    first = noise_of(home)
    shutil.copytree(home.root, tmp_path / "A2")
    assert noise_of(paths.Home(tmp_path / "A2")) != first
    assert noise_of(home) == first


def test_a_copy_on_another_computer_at_the_same_place_draws_differently(home, monkeypatch):
    first = noise_of(home)
    monkeypatch.setattr("platform.node", lambda: "the clone")
    assert noise_of(home) != first


def test_a_clone_that_cannot_be_told_apart_draws_differently_once_its_twin_was_seen(home):
    first = noise_of(home)
    noise_salt.forget(home)
    assert noise_of(home) != first


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"salt":"","place":""}', b"[" * 9000])
def test_a_damaged_file_is_replaced(home, content):
    (home.root / noise_salt.NAME).write_bytes(content)
    assert noise_of(home) == noise_of(home)


def test_a_home_that_cannot_be_written_has_a_salt_too(home, monkeypatch):
    def full(*_a, **_k):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(paths, "write_atomically", full)
    assert noise_of(home) != noise_of(home)
