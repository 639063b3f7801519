"""Test what Progress shows while there is nothing to draw yet."""

import pytest

from gui.conftest import TellWindow
from gui.recorded import ready
from waggle.gui.pages.progress.page import ProgressPage
from waggle.protocol import events


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
def test_until_there_is_anything_to_draw_it_tells_how_far_the_first_test_is(window_told: TellWindow) -> None:
    contributing = events.PhaseChanged(phase="contributing", round=0)
    window = window_told([ready(round=0), contributing, events.HeldOutProgress(done=96, total=270)])
    window.show_page("progress")
    page = window.pages.of(ProgressPage)
    assert page._test.text() == "96 of 270 questions answered."
    assert page._bar.isVisible()
    window._store.take(events.HeldOutProgress(done=97, total=270))
    window._store.flush()
    assert page._test.text() == "97 of 270 questions answered."
    controls = page._axis, page._as_table, page._save
    assert not any(control.isVisible() for control in controls)
    window._store.take(events.HeldOutMeasured(score=events.HeldOutScore(round=0, at=1.0, right=3, total=270)))
    window._store.flush()
    assert all(control.isVisible() for control in controls)
    assert not page._bar.isVisible()
