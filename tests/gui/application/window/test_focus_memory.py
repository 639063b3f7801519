"""The keyboard focus stays in its place when its control is disabled or hidden."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from gui.answers import answer
from gui.conftest import TellWindow
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.protocol.events import ShownCompletion
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed, SnapshotAnswer
from waggle.protocol.state import AnyEvent


@pytest.fixture
def window(window_told: TellWindow, story: list[AnyEvent], qtbot: QtBot) -> MainWindow:
    window = window_told(story)
    window.activateWindow()
    qtbot.waitActive(window)
    return window


def test_asking_the_model_leaves_the_focus_at_its_button(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page("playground")
    view = window.pages.of(PlaygroundPage)
    answer(window, QuestionPosed(specialty="bf", title="Tiny programs", number=7, question="+"))
    go = next(button for button in view.findChildren(QPushButton) if button.text() == "Ask the model")
    go.setFocus()
    qtbot.keyClick(go, Qt.Key.Key_Space)
    assert not go.isEnabled()
    waiting = window.focusWidget()
    assert view.isAncestorOf(waiting), waiting
    qtbot.keyClick(waiting, Qt.Key.Key_Space)
    assert window.page == "playground"
    written = SnapshotAnswer(rounds=1, completion=ShownCompletion(text="22"))
    answer(window, QuestionAnswered(specialty="bf", number=7, answers=(written,)))
    assert window.focusWidget() is go


def two_buttons(window: MainWindow) -> list[QPushButton]:
    buttons = [button for button in window.pages["home"].findChildren(QPushButton) if button.isVisible() and button.isEnabled()]
    return buttons[:2]


def test_who_moved_on_meanwhile_is_not_called_back(window: MainWindow) -> None:
    gone, other = two_buttons(window)
    gone.setFocus()
    gone.setEnabled(False)
    other.setFocus()
    gone.setEnabled(True)
    assert window.focusWidget() is other


@pytest.mark.parametrize("leave", [QPushButton.hide, lambda button: button.parentWidget().hide()])
def test_a_control_that_goes_leaves_the_focus_around_its_place(
    window: MainWindow, qtbot: QtBot, leave: Callable[[QPushButton], None]
) -> None:
    gone, _other = two_buttons(window)
    gone.setFocus()
    place = gone.parentWidget()
    leave(gone)
    waiting = window.focusWidget()
    assert waiting is place or waiting.isAncestorOf(place), waiting
    assert window.pages["home"].isAncestorOf(waiting)
    qtbot.keyClick(waiting, Qt.Key.Key_Space)
    assert window.page == "home"
    qtbot.keyClick(waiting, Qt.Key.Key_Tab)
    assert window.pages["home"].isAncestorOf(window.focusWidget())
