"""A window rebuilt in another language or text size keeps what was chosen, typed and waited for, but no passphrase."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from gui.answers import answer, refuse
from gui.pages.live.test_page import arrived, show_all_answers
from gui.pages.playground.test_chat import OFFERED, turn
from gui.pages.swarms.test_page import EASY, HERE, OFFERS, OTHER, is_previewing
from gui.recorded import ready
from waggle.core.paths import Home
from waggle.gui.application.controller import Controller
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.pages.live.page import LivePage
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.pages.swarms.page import CREATE, JOIN, SwarmsPage
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.pages.you.page import GOODBYE, IDENTITY, YouPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol import events
from waggle.protocol.events_chat import TurnProgress
from waggle.protocol.events_identity import BackupWritten
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed, SnapshotAnswer
from waggle.protocol.events_swarms import InviteRead, KnownSwarms, SwarmCreated, SwarmDetails
from waggle.protocol.state import AnyEvent

pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
SILENT = [sys.executable, "-c", "import sys; sys.stdin.read()"]  # an engine that takes its time with everything
HERE_NOW = SwarmDetails(charter=HERE, name="First light", specialties=(EASY,), known=True, active=True)
BEGUN = (
    ready(charter=HERE, swarm="First light"),
    events.PhaseChanged(phase="contributing", round=613),
    KnownSwarms(swarms=(HERE_NOW, OTHER), offers=OFFERS),
)
WAYS = [{"window.text_percent": 130}, {"window.language": "de"}]


@pytest.fixture
def shell(theme: Theme, tmp_path: Path, qtbot: QtBot) -> Iterator[Controller]:
    engine = EngineProcess(lambda: SILENT, backoff=())
    controller = Controller(theme, StateStore(), engine, SettingsStore(None), Home(tmp_path).prepare())
    controller.begin("home")
    with qtbot.waitSignal(engine._process.started, timeout=60_000):
        controller.start()
    tell(controller, *BEGUN)
    yield controller
    with qtbot.waitSignal(engine.ended, timeout=60_000):
        engine.stop()
    window = controller.window
    shiboken6.delete(controller)
    shiboken6.delete(window)
    theme.set_text(100)
    theme.apply()


def tell(shell: Controller, *received: AnyEvent) -> None:
    for event in received:
        shell._store.take(event)
    shell._store.flush()


def renew(shell: Controller, way: dict[str, str | int]) -> MainWindow:
    """Change a setting as a person does: open Settings from a page, and go back to it."""
    before, came_from = shell.window, shell.window.page
    before.show_page("settings")
    shell.settings_store.set(way)
    assert shell.window is not before
    shell.window.show_page(came_from)
    return shell.window


@pytest.mark.parametrize("way", WAYS)
def test_a_form_that_is_being_filled_in_goes_on(shell: Controller, way: dict[str, str | int]) -> None:
    shell.window.show_page("swarms")
    shell.window.pages.of(SwarmsPage)._new.click()
    form = shell.window.pages.of(SwarmsPage)._form
    form._name.setText("My class")
    form._hint.setText("Qwen")
    form._specialties._filter.setText("iv")
    form._private.setChecked(True)
    form._specialties._level.choose(2)
    chosen = form._specialties._items()[1]
    chosen.setCheckState(Qt.CheckState.Checked)
    after = renew(shell, way).pages.of(SwarmsPage)
    assert after._views.currentIndex() == CREATE
    anew = after._form
    assert anew is not form
    assert [anew._name.text(), anew._hint.text(), anew._specialties._filter.text()] == ["My class", "Qwen", "iv"]
    assert (anew._private.isChecked(), anew._specialties._level.index) == (True, 2)
    assert anew._specialties.chosen() == [chosen.data(Qt.ItemDataRole.UserRole)]
    assert anew._create.isEnabled()


def test_a_form_whose_answer_is_waited_for_rests_and_the_answer_is_shown(shell: Controller) -> None:
    shell.window.show_page("swarms")
    shell.window.pages.of(SwarmsPage)._new.click()
    form = shell.window.pages.of(SwarmsPage)._form
    form._name.setText("My class")
    form._specialties._items()[0].setCheckState(Qt.CheckState.Checked)
    form._create.click()
    after = renew(shell, WAYS[0]).pages.of(SwarmsPage)
    assert not after._form._create.isEnabled()
    answer(shell.window, SwarmCreated(swarm=OTHER))
    assert is_previewing(after)
    assert after._form._name.text() == ""


@pytest.mark.parametrize("way", WAYS)
def test_a_link_that_is_being_looked_at_ends_on_its_sheet(shell: Controller, way: dict[str, str | int]) -> None:
    shell.window.arrivals.show_invite("waggle://join?charter=cd")
    after = renew(shell, way).pages.of(SwarmsPage)
    assert after._views.currentIndex() == JOIN
    assert after.join_view._link.text() == "waggle://join?charter=cd"
    assert after.join_view._message.text().startswith("Die Computer" if "window.language" in way else "Asking the computers")
    answer(shell.window, InviteRead(swarm=OTHER, answered=True))
    assert is_previewing(after)
    swarms = renew(shell, {"window.text_percent": 90}).pages.of(SwarmsPage)
    assert is_previewing(swarms)
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert "Two laptops" in [line.words() for line in sheet.findChildren(ElidedLabel)]


def test_what_was_refused_meanwhile_is_said_where_it_was_asked(shell: Controller) -> None:
    shell.window.arrivals.show_invite("waggle://join?charter=cd")
    after = renew(shell, WAYS[0])
    refuse(after, "Nobody is there.")
    assert after.pages.of(SwarmsPage).join_view._message.text() == "Nobody is there."


@pytest.mark.parametrize("way", WAYS)
def test_a_message_and_what_was_guessed_go_on(shell: Controller, way: dict[str, str | int]) -> None:
    shell.window.show_page("playground")
    playground = shell.window.pages.of(PlaygroundPage)
    playground.which.choose(1)
    playground.chat.blind.setChecked(True)
    tell(shell, OFFERED, TurnProgress(command_id="x", number=0, turn=turn()))
    (box,) = playground.chat._boxes
    box._asks[0].click()
    tally, guess = playground.chat._tally.words(), box.guess
    playground.chat.message.setPlainText("a long draft")
    anew = renew(shell, way).pages.of(PlaygroundPage)
    assert (anew.which.index, anew._views.currentIndex()) == (1, 1)
    assert anew.chat.message.toPlainText() == "a long draft"
    assert anew.chat.blind.isChecked()
    assert [guess_box.guess for guess_box in anew.chat._boxes] == [guess]
    assert bool(anew.chat._tally.words()) == bool(tally)


def test_words_that_are_being_answered_go_on_and_come_back_where_they_are_not(shell: Controller) -> None:
    shell.window.show_page("playground")
    shell.window.pages.of(PlaygroundPage).which.choose(1)
    tell(shell, OFFERED)
    shell.window.pages.of(PlaygroundPage).chat.message.setPlainText("Hello")
    shell.window.pages.of(PlaygroundPage).chat.button.click()
    anew = renew(shell, WAYS[0]).pages.of(PlaygroundPage).chat
    assert anew.button.text() == "Stop"
    assert len(anew._boxes) == 1
    refuse(shell.window, "It is thinking of something else.")
    assert (anew.button.text(), anew.message.toPlainText()) == ("Send", "Hello")


def test_an_answer_of_ones_own_and_what_is_being_answered_go_on(shell: Controller) -> None:
    shell.window.show_page("playground")
    answer(shell.window, QuestionPosed(specialty="chain_sum", title="Chain sum", number=9, question="What is 1 + 1?"))
    ask_box = shell.window.pages.of(PlaygroundPage).ask
    ask_box._mine.setText("2")
    ask_box._go.click()
    anew = renew(shell, WAYS[0]).pages.of(PlaygroundPage).ask
    assert (anew._mine.text(), anew._question.accessibleName()) == ("2", "What is 1 + 1?")
    assert not anew._go.isEnabled()
    right = events.ShownCompletion(text="<answer>2</answer>", judged=True, reward=1.0, reason="right")
    answers = (SnapshotAnswer(rounds=0, completion=right), SnapshotAnswer(rounds=613, completion=right))
    answer(shell.window, QuestionAnswered(specialty="chain_sum", number=9, answers=answers))
    assert not anew._answers.isHidden()
    new_ask_box = renew(shell, WAYS[1]).pages.of(PlaygroundPage).ask
    assert not new_ask_box._answers.isHidden()
    assert new_ask_box._mine.text() == "2"


@pytest.mark.parametrize("way", WAYS)
def test_a_feed_stays_frozen_and_filtered(shell: Controller, way: dict[str, str | int]) -> None:
    def live() -> LivePage:
        page = shell.window.pages["live"]
        assert isinstance(page, LivePage)
        return page

    tell(shell, arrived(30))
    show_all_answers(shell.window)
    live().answers.whose.choose(2)
    live().answers.feed._cards[0]._toggle()
    live().answers.freeze.setChecked(True)
    tell(shell, arrived(40))
    renew(shell, way)
    tell(shell, arrived(50))
    assert live().answers.whose.index == 2
    assert live().answers.freeze.isChecked()
    (card,) = [card for card in live().answers.feed._cards if not card.isHidden()]
    assert card._card is not None
    assert (card._card.key, card.is_open) == ("p/(30,)", True)
    assert "2" in live()._line.words()
    live().answers._chooser("Fractions")()
    renew(shell, {"window.text_percent": 90})
    assert live().answers._specialty == "Fractions"
    assert [action.isChecked() for action in live().answers._menu.actions()].index(True) == 1
    assert live().answers._menu_button.text() == ("Brüche" if "window.language" in way else "Fractions")


def test_the_chosen_peer_the_table_and_what_is_looked_for_go_on(shell: Controller) -> None:
    tell(shell, *(events.PeerChanged(peer=events.PeerInfo(id=name, name=name, connection="direct")) for name in ("a", "b")))
    shell.window.show_page("peers")
    shell.window.pages.of(PeersPage).choose("b")
    shell.window.show_page("help")
    shell.window.pages["help"]._log.search.setText("asked")  # type: ignore[attr-defined]
    shell.window.show_page("progress")
    shell.window.pages["progress"]._axis.choose(1)  # type: ignore[attr-defined]
    shell.window.pages["progress"].show_table(True)  # type: ignore[attr-defined]
    pages = renew(shell, WAYS[1]).pages
    assert pages["progress"]._axis.index == 1  # type: ignore[attr-defined]
    assert pages["progress"]._as_table.isChecked()  # type: ignore[attr-defined]
    assert pages["help"]._log.search.text() == "asked"  # type: ignore[attr-defined]
    shell.window.show_page("peers")
    assert shell.window.pages.of(PeersPage)._chosen == "b"
    assert [row.row() for row in shell.window.pages.of(PeersPage)._view.selectionModel().selectedRows()] == [1]


def secrets(window: MainWindow) -> list[str]:
    return [
        field.text()
        for field in window.pages.of(YouPage).findChildren(QLineEdit)
        if field.echoMode() == QLineEdit.EchoMode.Password
    ]


def test_where_a_backup_lies_goes_on_and_its_passphrase_does_not(shell: Controller) -> None:
    shell.window.show_page("you")
    shell.window.pages.of(YouPage)._acts[0].click()
    identity = shell.window.pages.of(YouPage)._identity
    identity._path.setText("/somewhere/me.identity")
    for field in (identity._words, identity._repeated):
        field.setText("correct horse battery")
    identity._go.click()
    after = renew(shell, WAYS[0])
    assert after.pages.of(YouPage)._views.currentIndex() == IDENTITY
    assert after.pages.of(YouPage)._identity._path.text() == "/somewhere/me.identity"
    assert secrets(after) == ["", ""]
    answer(shell.window, BackupWritten(path="/somewhere/me.identity"))
    assert after.pages.of(YouPage)._identity._message.text().startswith("Written to /somewhere/me.identity")


def test_what_was_chosen_to_be_removed_goes_on_and_is_asked_again(shell: Controller, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("")
    shell.window.show_page("you")
    shell.window.pages.of(YouPage).show_goodbye()
    goodbye = shell.window.pages.of(YouPage)._goodbye
    goodbye._keeps[0].box.toggle()
    chosen = goodbye.chosen_kinds()
    goodbye._forward()
    after = renew(shell, WAYS[0]).pages.of(YouPage)
    assert after._views.currentIndex() == GOODBYE
    assert after._goodbye.chosen_kinds() == chosen
    assert not after._goodbye._confirming


def test_whoever_changes_the_size_stays_there_whatever_is_open_elsewhere(shell: Controller) -> None:
    """A hidden page does not take the focus."""
    shell.window.show_page("you")
    shell.window.pages.of(YouPage)._acts[0].click()
    shell.window.arrivals.show_invite("waggle://join?charter=cd")
    answer(shell.window, InviteRead(swarm=OTHER, answered=True))
    for page in ("home", "settings"):
        shell.window.show_page(page)
        shell.settings_store.set({"window.text_percent": 130 if page == "home" else 100})
        assert shell.window.page == page
        focused = shell.window.focusWidget()
        assert focused is None or shell.window.pages[page].isAncestorOf(focused) or focused is shell.window
