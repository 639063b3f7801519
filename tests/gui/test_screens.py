"""Every control can be reached by mouse on every screen, from 1024x600 and a scaled laptop to 2560x1440."""

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QPushButton, QWidget

from gui.conftest import TellWindow
from gui.unreachable import can_be_reached, fill, unreachable
from pictures.screens import SCREENS, Screen
from pictures.screenshots import with_peers
from waggle.gui.theme.theme import Theme
from waggle.protocol.state import AnyEvent

pytestmark = pytest.mark.qt_log_ignore("does not support")  # a minimum size, on the offscreen platform
TINY = Screen(1366, 768, 2.0)


@pytest.mark.parametrize("screen", [*SCREENS, TINY], ids=lambda screen: screen.name)
def test_every_control_can_be_reached_by_mouse(window_told: TellWindow, story: Sequence[AnyEvent], screen: Screen) -> None:
    window = window_told(with_peers(list(story)))
    assert unreachable(window, (screen,)) == []
    assert window.status.mapTo(window, window.status.rect().bottomRight()) == window.rect().bottomRight()
    assert window.size() == QSize(*screen.room)


def test_large_text_needs_no_larger_screen(window_told: TellWindow, story: Sequence[AnyEvent], theme: Theme) -> None:
    theme.set_text(200)
    assert unreachable(window_told(story), (SCREENS[0],)) == []


def test_what_is_covered_cut_or_out_of_the_window_counts(window_told: TellWindow, story: Sequence[AnyEvent]) -> None:
    window = window_told(story)
    fill(window, SCREENS[0])
    button = next(button for button in window.pages["home"].findChildren(QPushButton) if button.isVisible())
    assert can_be_reached(window, button)
    cover = QWidget(window)
    cover.setGeometry(window.rect())
    cover.show()
    assert not can_be_reached(window, button)
    cover.hide()
    assert can_be_reached(window, button)
    outside = QPushButton("outside", window)
    outside.setGeometry(window.width() - 20, 10, 80, 30)
    outside.show()
    assert not can_be_reached(window, outside)
