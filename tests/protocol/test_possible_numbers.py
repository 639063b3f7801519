"""Numbers in sentences are possible: no rest of nothing, no "0 of 0 MB", no quarter of two cores."""

import pytest

from waggle.core.settings import Settings, profiles
from waggle.engine.runtime.model_source import seconds_left
from waggle.gui.pages.models.model_words import choice_progress
from waggle.gui.pages.settings.rows import HOW_MUCH
from waggle.gui.widgets.controls.usage_profile import PROFILE_WORDS, threads_of
from waggle.models.backend import threads_for
from waggle.protocol.events import Downloading
from waggle.protocol.events_models import ModelChoice
from waggle.protocol.state import State, apply
from waggle.protocol.text.status_text import sentence


def test_nothing_missing_takes_no_time():
    assert seconds_left(10.0, 500, 0) is None
    assert seconds_left(10.0, 500, 500) == 10.0
    assert seconds_left(10.0, 1, 500) is None


def test_a_download_that_is_here_has_no_rest():
    choice = ModelChoice(name="owner/name", folder="", stage="downloading", done=5_000_000, total=5_000_000, seconds_left=0.0)
    assert choice_progress(choice) == "5.0 MB of 5.0 MB"


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [(0, 400_000, "0 of 400 kB"), (399_999, 400_000, "400 of 400 kB"), (999_999_999, 1_000_000_000, "999 of 1,000 MB")],
)
def test_a_part_of_a_download_is_neither_nothing_of_nothing_nor_all(done, total, words):
    state = apply(State(), Downloading(model="owner/name", done=done, total=total))
    assert words in sentence(state).says


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 16])
def test_the_words_about_cores_hold_on_every_computer(cores, monkeypatch):
    monkeypatch.setattr("waggle.models.backend.usable_cores", lambda: cores)
    assert threads_for(0) == threads_of(Settings(), cores) == max(1, cores // 4)
    assert profiles(cores)["balanced"]["computer.threads"] == max(1, cores // 2)
    for words in (PROFILE_WORDS["quiet"], PROFILE_WORDS["balanced"], HOW_MUCH.rows[0].kind.zero):
        assert "at least" in words
