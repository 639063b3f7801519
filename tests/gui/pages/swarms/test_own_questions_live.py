"""A person drops a file on the real window of a real engine and creates a swarm by clicks; a second node joins and both share."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from end_to_end.programs import ENVIRONMENT, SLOW, USUAL, WAGGLE, Engine, running
from tasks.question_file.questions import sums
from waggle.core.paths import Home
from waggle.gui.application.controller import Controller
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.network.transport.availability import has_hivemind
from waggle.protocol import events
from waggle.protocol.state import State

pytestmark = [
    pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support"),  # the platform without a screen says so
    pytest.mark.skipif(not has_hivemind(), reason="a node without hivemind has no address of its own"),
]
LOOPBACK = "swarm.host=127.0.0.1"
LONG = 60.0  # seconds, on an idle computer


@pytest.fixture
def shell(theme: Theme, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    """The window and the engine of the first node."""
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    home = Home(tmp_path / "a").prepare()
    chosen = [part for setting in (*USUAL, LOOPBACK) for part in ("--set", setting)]
    engine = EngineProcess(lambda: [*WAGGLE, "engine", "--stdio", "--home", str(home.root), *chosen])
    controller = Controller(theme, StateStore(), engine, SettingsStore(home.settings, send=engine.send), home)
    controller.begin("home")
    controller.window.resize(1280, 800)  # the screen of the tests is smaller, and buttons say less there
    controller.start()
    yield controller
    with qtbot.waitSignal(controller.finished, timeout=60_000):
        controller.leave()
    window = controller.window
    shiboken6.delete(controller)
    shiboken6.delete(window)


class Hands:
    """What a person does in the window, and what they wait for."""

    def __init__(self, shell: Controller, qtbot: QtBot) -> None:
        self.shell, self.qtbot = shell, qtbot

    @property
    def state(self) -> State:
        return self.shell._store.state

    @property
    def swarms(self) -> SwarmsPage:
        return self.shell.window.pages.of(SwarmsPage)

    def until(self, look: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(look()), timeout=int(LONG * SLOW * 1000))

    def runs_in(self, swarm: str) -> None:
        self.until(lambda: self.state.ready and self.state.ready.swarm == swarm and self.state.phase == "contributing")

    def drop(self, file: Path) -> None:
        mime, place = QMimeData(), QPoint(300, 300)
        mime.setUrls([QUrl.fromLocalFile(str(file))])
        rest = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(self.shell.window.windowHandle(), QDragEnterEvent(place, *rest))
        QApplication.sendEvent(self.shell.window.windowHandle(), QDropEvent(QPointF(place), *rest))

    def click(self, words: str) -> None:
        """Wait for a button with these words that can be pressed, and press it."""

        def buttons() -> list[QPushButton]:
            every = self.shell.window.findChildren(QPushButton)
            return [each for each in every if each.text() == words and each.isVisible() and each.isEnabled()]

        self.until(buttons)
        self.qtbot.mouseClick(buttons()[0], Qt.MouseButton.LeftButton)


@pytest.mark.timeout(1800)
def test_a_thousand_questions_go_from_a_drop_to_a_second_node_and_both_share(
    shell: Controller, tmp_path: Path, qtbot: QtBot
) -> None:
    file = tmp_path / "double sums.jsonl"
    file.write_bytes(sums(1000))
    hands = Hands(shell, qtbot)
    hands.runs_in("First light")
    hands.drop(file)
    form = hands.swarms._form
    (card,) = form._own._cards
    hands.until(lambda: card.draft.preview is not None and card.draft.preview.trial is not None)
    assert card._summary.words().startswith("1,000 questions")
    assert card._trial._example.isVisible()
    qtbot.keyClicks(form._name, "Our sums")
    hands.click("Create")
    hands.click("Switch to Our sums")
    hands.runs_in("Our sums")
    hands.click("Invite someone")
    hands.until(lambda: hands.swarms._invite_view._field.text().startswith("waggle://join?"))
    link = hands.swarms._invite_view._field.text()

    with running(Engine(tmp_path / "b", LOOPBACK)) as second:
        hands.until(lambda: _has(second, events.Ready))
        join = subprocess.Popen(
            [*WAGGLE, "swarm", "join", "--yes", "--home", str(tmp_path / "b"), link],
            env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        hands.until(lambda: join.poll() is not None)
        assert join.returncode == 0
        assert join.stderr is not None
        assert "double sums: 1000 own questions, Number" in join.stderr.read()
        hands.until(lambda: _has(second, events.Ready, "Our sums"))
        assert _has(second, events.Preparing, "Downloading the swarm's questions: %1 of %2 parts")
        hands.until(lambda: _has(second, events.PeerGroupsArrived))
        hands.until(lambda: hands.state.arrivals)
        played = [event for event in second.all_events if isinstance(event, events.QuestionsDrawn)]
        assert any("+" in group.question for group in played[-1].groups)
        began = time.time()
        hands.until(lambda: any(summary.external > 0 and summary.at > began for summary in hands.state.rounds))
        hands.until(lambda: _has(second, events.RoundCompleted, '"external":', but='"external":0,'))


def _has(engine: Engine, kind: type, words: str = "", but: str = "\0") -> bool:
    """Whether the engine sent an event of a kind with these words."""
    name = f'"type":"{kind.__struct_config__.tag}"'.encode()
    with engine._came:
        lines = [line for _, line in engine.lines]
    return any(name in line and words.encode() in line and but.encode() not in line for line in lines)
