"""The pictures for review show real pages, and nothing else."""

import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage

from pictures import matrix
from pictures.screenshots import window_of
from waggle.core import paths
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol import json_lines
from waggle.protocol.state import State, apply

ROOT = Path(__file__).parents[2]


def test_a_sheet_shows_each_picture_whole_whatever_the_screen_it_was_taken_for(tmp_path: Path, theme: Theme):
    for state in matrix.STATES:
        for theme_name in matrix.THEMES:
            for spoken in matrix.LANGUAGES:
                for scale in matrix.SCALES:
                    made = QImage(*(int(scale) * side for side in matrix.SIZE), QImage.Format.Format_RGB32)
                    made.fill(QColor("teal"))
                    made.save(str(tmp_path / matrix.Shot("home", theme_name, spoken, state).name(scale)))
    sheet = QImage(str(matrix.sheet("home", tmp_path)))
    places = [(x, y) for x in range(8, sheet.width(), 64) for y in range(8, sheet.height(), 64)]
    assert {sheet.pixelColor(x, y).name() for x, y in places} == {"#008080"}


def test_the_example_holds_what_its_engine_would_have_answered():
    state = State()
    for event in filter(None, json_lines.recording(paths.example())):
        state = apply(state, event)
    assert state.ready is not None
    assert state.swarms is not None
    assert state.days is not None
    assert [one.name for one in state.swarms.swarms if one.active] == [state.ready.swarm]
    each, known = state.rounds[-1].completions, sum(round(one.solved * one.completions) for one in state.rounds)
    assert state.days.all.answers == state.round * each
    assert known <= state.days.all.right <= known + (state.round - len(state.rounds)) * each
    assert state.days.taken == sum(peer.taken for peer in state.peers.values())


def test_the_table_of_progress_is_one_of_the_pictures(theme: Theme, story):
    window = window_of(theme, story, replay=False)
    for view, seen in (("progress", False), ("table", True), ("you", False), ("progress", False)):
        matrix.show(window, view)
        progress = window.pages["progress"]
        assert isinstance(progress, ProgressPage)
        assert progress._table_view.isVisible() == seen
    window.hide()


def test_the_readme_shows_home_as_it_is_now(tmp_path: Path):
    taken, kept = (_seen_from_afar(path) for path in (matrix.readme(tmp_path), ROOT / "docs/screenshot.png"))
    assert taken.shape == kept.shape
    assert np.abs(taken - kept).mean() < 2, "take it anew: tests/pictures/matrix.py says how; keep FOLDER/readme.png"


def _seen_from_afar(path: Path) -> NDArray[np.float64]:
    """Greyscale, one value for 16 x 16 pixels: a time in another time zone changes almost nothing."""
    small = QImage(str(path)).convertToFormat(QImage.Format.Format_Grayscale8)
    small = small.scaled(small.size() / 16, mode=Qt.TransformationMode.SmoothTransformation)
    return np.array([[small.pixelColor(x, y).value() for x in range(small.width())] for y in range(small.height())], np.float64)


def test_the_log_is_told_what_the_window_is_told(theme: Theme, story):
    window = window_of(theme, story, replay=False)
    window.show_page("help")
    help_page = window.pages["help"]
    assert "Ready: Starter" in help_page._log.model.text()
    window.hide()


def test_a_recording_that_has_told_nothing_is_shown_as_of_today():
    current = StateStore()
    current.tell_time_by_events()
    assert current.now() == pytest.approx(time.time(), abs=60)
