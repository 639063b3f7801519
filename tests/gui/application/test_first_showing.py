"""A page is settled before it is painted, and built before it is opened where the person leaves time for that."""

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QPoint, QSize
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.conftest import TellWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.application.window import build_ahead
from waggle.gui.pages import PAGES
from waggle.protocol.state import AnyEvent

GROUNDS = ("scrolled", "surface", "qt_scrollarea_viewport")


def places(page: QWidget) -> dict[QWidget, tuple[int, ...]]:
    """Where each widget is that is visible and not scrolled away; the ground of a scroll area may grow below what is seen."""
    visible = [
        part for part in page.findChildren(QWidget) if not part.visibleRegion().isEmpty() and part.objectName() not in GROUNDS
    ]
    return {part: (*part.mapTo(page, QPoint(0, 0)).toTuple(), *part.size().toTuple()) for part in visible}


@pytest.mark.qt_log_ignore("does not support")  # a minimum size, on the offscreen platform
@pytest.mark.parametrize("size", [(910, 470), (1280, 800), (2560, 1400)], ids=str)
def test_nothing_moves_after_the_first_picture_of_a_page(
    window_told: TellWindow, story: Sequence[AnyEvent], qapp: QApplication, size: tuple[int, int]
) -> None:
    window = window_told(story, *size)
    window._screen_fit._least = QSize(1, 1)
    window.setMinimumSize(1, 1)
    window.resize(*size)
    screenshot_when_still(window)
    for name in PAGES:
        window.show_page(name)
        first = places(window.pages[name])
        picture = window.grab().toImage()
        assert not picture.isNull()
        assert not screenshot_when_still(window).isNull()
        last = places(window.pages[name])
        moved = {part: (place, last.get(part)) for part, place in first.items() if last.get(part) != place}
        assert not moved, (name, moved)


def test_pages_are_built_while_nobody_does_anything(window_told: TellWindow, story: Sequence[AnyEvent], qtbot: QtBot) -> None:
    window = window_told(story)
    assert set(window.pages.built) < set(PAGES)
    qtbot.waitUntil(lambda: set(window.pages.built) == set(PAGES))


def test_no_page_is_built_while_somebody_types(
    window_told: TellWindow, story: Sequence[AnyEvent], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watch:
        """Tells the time of the test: on a busy computer, much may pass between two keys."""

        now = began = 0

        def start(self) -> None:
            self.began = Watch.now

        def elapsed(self) -> int:
            return Watch.now - self.began

    monkeypatch.setattr(build_ahead, "QElapsedTimer", Watch)
    monkeypatch.setattr(build_ahead, "EVERY_MS", 10)
    window = window_told(story)
    ahead = window.findChild(build_ahead.BuildAhead)
    before = set(window.pages.built)
    for _ in range(3):
        QTest.keyClick(window, "x")
        Watch.now += build_ahead.QUIET_MS - 1
        with qtbot.waitSignal(ahead._timer.timeout):
            pass
    assert ahead._imports.ident is None, "what comes before the first page"
    assert set(window.pages.built) == before
    Watch.now += 1
    qtbot.waitUntil(lambda: set(window.pages.built) > before)
