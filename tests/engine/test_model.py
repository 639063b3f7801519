"""Which model is meant, and how long a download takes; downloads themselves: tests/policy/test_hub.py, tests/end_to_end."""

import asyncio

import pytest

from waggle import paths
from waggle.engine import model
from waggle.engine.gate import Gate
from waggle.engine.teller import Teller
from waggle.errors import ModelError
from waggle.settings import Model


async def test_what_is_on_this_computer_is_taken_without_a_word(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here = paths.models() / "bees/tiny"
    here.mkdir(parents=True)
    teller = Teller(tmp_path)
    for chosen, folder in (
        (Model(), paths.starter()),
        (Model(folder=str(paths.starter())), paths.starter()),
        (Model(name="bees/tiny"), here),
    ):
        assert await model.find(chosen, teller, Gate(lambda: None), asyncio.Event()) == folder
    assert teller.state.seq == 0
    teller.close()


@pytest.mark.parametrize(
    ("chosen", "title"),
    [
        (Model(folder="/nowhere"), "There is no model in /nowhere: config.json is missing."),
        (Model(name="bees/none"), "bees/none is not on this computer yet."),
        (Model(name="bees"), "bees is not the name of a model."),
    ],
)
def test_a_model_that_is_not_here_is_named(chosen, title, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        model.folder_of(chosen)
    assert caught.value.title == title


@pytest.mark.parametrize(
    ("elapsed", "came", "missing", "left"),
    [(10.0, 50, 100, 20.0), (10.0, 0, 100, None), (10.0, 1, 100, None), (0.5, 2, 100, 25.0)],
)
def test_how_long_it_takes_is_said_once_a_hundredth_has_come(elapsed, came, missing, left):
    assert model.seconds_left(elapsed, came, missing) == left


async def test_a_download_of_many_pieces_is_told_in_few_events(tmp_path):
    teller = Teller(tmp_path)
    progress = model._Progress("bees/tiny", teller, Gate(lambda: None))
    for here in range(1, 100_001):
        progress(here, 100_000)
    await asyncio.sleep(0)  # what was told soon is told
    assert teller.state.seq < 1000
    assert teller.state.downloading.done >= 99_000
    teller.close()
