"""The chosen peer: explained, muted, blocked and welcomed back, by button, menu and keyboard, and through a real pipe."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import waggle
from gui.answers import refuse, run_coroutines
from gui.recorded import ready
from pictures.screenshots import with_peers
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_process import EngineProcess
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.peers.page import HIGHEST, PeersPage
from waggle.gui.pages.peers.peer_table import COLUMNS, DROPPED, NAME_ROOM, STANDING_COLUMN, PeerTableModel
from waggle.gui.pages.peers.refusal_words import group_words, refusal_sentences
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import Avatar
from waggle.network.messages.faults import Fault
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, ChoosePeer
from waggle.protocol.events import Choice, Connection, PeerInfo
from waggle.protocol.events_models import ModelChanged
from waggle.protocol.events_swarms import SwarmUndecided
from waggle.protocol.state import AnyEvent
from waggle.sapo.selection import Reason

TellWindow = Callable[..., MainWindow]
NOW = 1_790_000_000.0
FAKE = Path(__file__).parents[2] / "fake_engine.py"
OTTER = PeerInfo(
    id="12D3KooWOtter", name="Brisk Otter", received=40, useful=12, used=10, groups_pulled=9, trusted=True, seen_at=NOW
)
STARTING = events.Preparing(part="Loading the model", done=1, parts=3)
WREN = PeerInfo(id="12D3KooWWren", name="Clever Wren", received=4, useful=1, used=1, seen_at=NOW)


def met(*peers: PeerInfo) -> list[AnyEvent]:
    """The events of a running engine that has met these peers."""
    running = events.PhaseChanged(phase="contributing", round=1, at=NOW)
    return [ready(), running, *(events.PeerChanged(peer=peer, at=NOW) for peer in peers)]


def page_of(window: MainWindow, chosen: str = "") -> tuple[PeersPage, list[AnyCommand]]:
    """The page Peers with this peer chosen, and the commands that it sends from now on."""
    window.show_page("peers")
    window.pages.of(PeersPage).choose(chosen)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    return window.pages.of(PeersPage), sent


def tell(window: MainWindow, *new_events: AnyEvent) -> None:
    for event in new_events:
        window._store.take(event)
    window._store.flush()


def choices_sent(sent: list[AnyCommand]) -> list[tuple[str, Choice]]:
    return [(command.peer, command.choice) for command in sent if isinstance(command, ChoosePeer)]


def offered(page: PeersPage) -> dict[str, bool]:
    """The texts of visible buttons, and whether each is enabled."""
    return {button.text(): button.isEnabled() for button in page._strip._buttons.values() if not button.isHidden()}


def test_whoever_reads_the_table_stays_there_when_a_peer_comes(window_told: TellWindow, qapp: QApplication) -> None:
    many = [replace(WREN, id=f"12D3KooW{i}", name=f"Wren {i:02}") for i in range(40)]
    window = window_told(met(OTTER, *many))
    page, _ = page_of(window, OTTER.id)
    bar = page._view.verticalScrollBar()
    bar.setValue(20)
    tell(window, events.PeerChanged(peer=replace(WREN, name="Zwren"), at=NOW))
    qapp.processEvents()
    assert bar.value() == 20
    assert page._view.selectionModel().selectedRows()[0].data() == "Brisk Otter · ooWOtter"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "–"),
        ({"trusted": True}, "Trusted"),
        ({"doubted_until": NOW + 60, "reason": "too large"}, "Doubtful"),
        ({"doubted_until": NOW, "reason": "too large"}, "–"),
        ({"refusal": "runs Waggle 0.2"}, "Mismatch"),
        ({"choice": "muted", "trusted": True}, "Muted"),
        ({"choice": "blocked"}, "Blocked"),
    ],
)
def test_a_row_says_how_its_peer_stands(theme: Theme, fields: dict[str, object], word: str) -> None:
    table = PeerTableModel(theme)
    table.show_peers([replace(WREN, **fields)], NOW)
    assert table.index(0, STANDING_COLUMN).data() == word


def test_a_row_that_only_changes_its_standing_is_said_to_change(theme: Theme) -> None:
    table = PeerTableModel(theme)
    peers = [replace(OTTER, seen_at=0.0), replace(WREN, seen_at=0.0, doubted_until=NOW + 60, reason="too large")]
    table.show_peers(peers, NOW)
    assert table.index(1, STANDING_COLUMN).data() == "Doubtful"
    changed: list[int] = []
    table.dataChanged.connect(lambda top, _bottom: changed.append(top.row()))
    table.show_peers(peers, NOW + 30)
    assert changed == []
    table.show_peers(peers, NOW + 61)
    assert changed == [1]
    assert table.index(1, STANDING_COLUMN).data() == "–"


def test_the_sentence_is_read_out_and_shown_on_hovering(theme: Theme) -> None:
    table = PeerTableModel(theme)
    table.show_peers([replace(WREN, doubted_until=NOW + 60, reason="<b>\u202etoo large")], NOW)
    says = "It broke a rule (<b>\ufffdtoo large): it is asked again in 60 s."
    assert table.index(0, 0).data(Qt.ItemDataRole.AccessibleDescriptionRole) == says
    assert "&lt;b&gt;\ufffdtoo large" in str(table.index(0, STANDING_COLUMN).data(Qt.ItemDataRole.ToolTipRole))


def test_nothing_is_chosen_until_a_person_chooses(window_told: TellWindow) -> None:
    page, _ = page_of(window_told(met(OTTER, WREN)))
    assert page._strip.isHidden()
    assert offered(page) == {}
    assert not any(action.isEnabled() for action in page._strip.menu())


def test_the_chosen_peer_is_explained_in_plain_text(window_told: TellWindow) -> None:
    strange = replace(OTTER, name="<i>Otter\u202e", trusted=False, refusal="runs <b>0.2\n")
    page, _ = page_of(window_told(met(strange)), OTTER.id)
    assert page._strip._name.words() == "<i>Otter\ufffd · ooWOtter"
    assert page._strip._says.text() == "It runs <b>0.2."
    assert page._strip._says.textFormat() == Qt.TextFormat.PlainText


def is_grey(face: Avatar) -> bool:
    """Whether it is painted without a colour."""
    picture = face.grab().toImage()
    places = ((x, y) for x in range(picture.width()) for y in range(picture.height()))
    return max(picture.pixelColor(*place).hsvSaturation() for place in places) < 60


@pytest.mark.parametrize(("verb", "choice", "stands"), [("Mute", "muted", "Muted"), ("Block", "blocked", "Blocked")])
def test_a_choice_is_asked_for_told_and_taken_back(window_told: TellWindow, verb: str, choice: Choice, stands: str) -> None:
    window = window_told(met(OTTER, WREN))
    page, sent = page_of(window, OTTER.id)
    assert offered(page) == {"Mute": True, "Block": True}
    assert not is_grey(page._strip._avatar)
    page._strip._buttons[choice].click()
    assert choices_sent(sent) == [(OTTER.id, choice)]
    assert set(offered(page).values()) == {False}, "one press is one command"
    tell(window, events.PeerChanged(peer=replace(OTTER, delay_ms=3.0)))
    assert set(offered(page).values()) == {False}, "that was another change"
    tell(window, events.PeerChanged(peer=replace(OTTER, choice=choice)))
    assert offered(page) == {"Allow again": True}
    assert is_grey(page._strip._avatar)
    assert page._model.index(0, STANDING_COLUMN).data() == stands
    page._strip._buttons[""].click()
    tell(window, events.PeerChanged(peer=OTTER))
    assert choices_sent(sent) == [(OTTER.id, choice), (OTTER.id, "")]
    assert offered(page) == {"Mute": True, "Block": True}


def test_while_one_peer_waits_another_can_be_muted(window_told: TellWindow) -> None:
    page, sent = page_of(window_told(met(OTTER, WREN)), OTTER.id)
    page._strip._buttons["muted"].click()
    assert offered(page) == {"Muting…": False, "Block": False}
    page.choose(WREN.id)
    assert offered(page) == {"Mute": True, "Block": True}
    page._strip._buttons["blocked"].click()
    assert choices_sent(sent) == [(OTTER.id, "muted"), (WREN.id, "blocked")]


def test_a_refusal_is_shown_and_the_button_can_be_pressed_again(window_told: TellWindow) -> None:
    window = window_told(met(OTTER))
    page, _ = page_of(window, OTTER.id)
    page._strip._buttons["muted"].click()
    refuse(window, "The swarm is not joined yet.", "Try again in a moment.")
    assert offered(page) == {"Mute": True, "Block": True}
    assert window.status._notice._content[0] == "The swarm is not joined yet. Try again in a moment."


def test_a_replay_cannot_be_changed_and_says_so(window_told: TellWindow, recording: Path) -> None:
    window = window_told(met(OTTER))
    window.show_replay()
    page, _ = page_of(window, OTTER.id)
    window.commanded.connect(Replay(recording).send)
    assert offered(page) == {"Mute": False, "Block": False}
    assert page._strip._hindrance.words() == "A recorded run cannot be changed."
    assert page._strip._buttons["muted"].toolTip() == page._strip._buttons["muted"].accessibleDescription()
    assert [action.text() for action in page._strip.menu() if action.isEnabled()] == ["Copy peer id"]


@pytest.mark.parametrize(
    ("story", "why_not"),
    [
        ((events.EngineGone(code=9, restarts=1),), "Training is not running."),
        ((STARTING,), "Waggle is still starting."),
        ((STARTING, SwarmUndecided(why="unknown")), "Waiting for your choice on Home."),
        ((STARTING, ModelChanged(model="mine", rounds=120, fits=True, is_whole=True)), "Waiting for your choice on Home."),
    ],
)
def test_an_engine_that_cannot_answer_is_not_asked(window_told: TellWindow, story: tuple[AnyEvent, ...], why_not: str) -> None:
    window = window_told(met(OTTER))
    page, _ = page_of(window, OTTER.id)
    page._strip._buttons["muted"].click()
    tell(window, *story)
    run_coroutines()
    assert offered(page) == {"Mute": False, "Block": False}
    assert page._strip._hindrance.words() == why_not
    tell(window, events.PhaseChanged(phase="contributing", round=2))
    assert offered(page) == {"Mute": True, "Block": True}, "what the last engine was asked is forgotten"


def test_a_chosen_row_stays_chosen_when_peers_come(window_told: TellWindow) -> None:
    window = window_told(met(WREN))
    page, _ = page_of(window, WREN.id)
    tell(window, events.PeerChanged(peer=OTTER))
    assert page._model.place_of(WREN.id) == 1, "the newcomer stands before it"
    assert [index.row() for index in page._view.selectionModel().selectedRows()] == [1]
    assert page._strip._name.words() == "Clever Wren · KooWWren"


def test_all_of_it_is_done_by_keyboard(window_told: TellWindow, qtbot: QtBot, qapp: QApplication) -> None:
    window = window_told(met(OTTER, WREN))
    page, sent = page_of(window)
    with qtbot.waitActive(window, timeout=20_000):
        window.activateWindow()
    page._view.setFocus()
    qtbot.keyClick(page._view, Qt.Key.Key_Down)
    qtbot.keyClick(page._view, Qt.Key.Key_Down)
    assert page._strip._name.words() == "Clever Wren · KooWWren"
    qtbot.keyClick(page._view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert qapp.clipboard().text() == WREN.id
    qtbot.keyClick(page._view, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    tell(window, events.PeerChanged(peer=replace(WREN, choice="blocked")))
    qtbot.keyClick(page._view, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    assert choices_sent(sent) == [(WREN.id, "blocked"), (WREN.id, "")]
    tell(window, events.PeerChanged(peer=WREN))
    qtbot.keyClick(page._view, Qt.Key.Key_Tab)
    assert qapp.focusWidget() is page._strip._buttons["muted"]
    qtbot.keyClick(page._strip._buttons["muted"], Qt.Key.Key_Space)
    assert choices_sent(sent)[-1] == (WREN.id, "muted")
    assert qapp.focusWidget() is page._view, "the resting button hands the focus to the row"


def test_a_key_that_is_held_does_not_take_its_own_choice_back(window_told: TellWindow) -> None:
    page, _ = page_of(window_told(met(OTTER)), OTTER.id)
    assert not any(act.autoRepeat() for act in page._strip.menu())


def test_the_menu_of_a_row_offers_what_the_buttons_do(window_told: TellWindow) -> None:
    window = window_told(met(OTTER, replace(WREN, choice="muted")))
    page, sent = page_of(window, OTTER.id)
    assert page._view.contextMenuPolicy() == Qt.ContextMenuPolicy.ActionsContextMenu
    assert [act.text() for act in page._view.actions() if act.isVisible()] == ["Mute", "Block", "Copy peer id"]
    page.choose(WREN.id)
    assert [act.text() for act in page._view.actions() if act.isVisible()] == ["Allow again", "Copy peer id"]
    page._view.actions()[2].trigger()
    assert choices_sent(sent) == [(WREN.id, "")]


def test_columns_drop_out_so_that_names_keep_their_room(window_told: TellWindow) -> None:
    for width, dropped in ((1280, 0), (1024, 1), (900, 3)):
        page, _ = page_of(window_told(met(OTTER), width, 640))
        hidden = [column for column in DROPPED if page._view.isColumnHidden(column)]
        assert hidden == list(DROPPED[:dropped])
        assert page._view.columnWidth(0) >= NAME_ROOM


@pytest.mark.parametrize(("width", "height"), [(1024, 600), (1280, 800)])
def test_the_band_is_high_enough_for_every_line_of_the_reach(window_told: TellWindow, width: int, height: int) -> None:
    kinds: tuple[Connection, ...] = ("direct", "lan", "relay", "gone")
    peers = [replace(OTTER, id=f"12D3KooW{kind}", connection=kind) for kind in kinds]
    story = [
        *met(*peers),
        events.ReachChanged(
            reach="connected", peers=4, way="relay", address="/ip4/198.51.100.7/tcp/31337/p2p/12D3KooWMe", at=NOW
        ),
        events.RecordRejected(origin=OTTER.id, reason="signature", at=NOW),
    ]
    page, _ = page_of(window_told(story, width, height))
    copy, words = page._reach._copy, page._reach._words
    assert copy.isVisible()
    assert copy.height() >= copy.sizeHint().height()
    assert words.height() >= words.heightForWidth(words.width())
    assert page._reach.contentsRect().contains(copy.geometry())
    assert page._band.contentsRect().contains(page._reach.geometry())


def test_the_picture_of_few_peers_is_no_higher_than_it_is_read(window_told: TellWindow, theme: Theme, qapp: QApplication) -> None:
    page, _ = page_of(window_told(met(OTTER, WREN), 1440, 900))
    for _ in range(3):
        qapp.processEvents()
    assert page._band.height() == theme.px(HIGHEST)


def test_an_engine_behind_a_pipe_mutes_and_refuses(
    window_told: TellWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{Path(waggle.__file__).parents[1]}{os.pathsep}{FAKE.parents[1]}")
    window = window_told([])
    engine = EngineProcess(lambda: [sys.executable, str(FAKE), "met"], farewell=1.0)
    engine.event_received.connect(window._store.take)
    window.commanded.connect(engine.send)
    engine.start()
    qtbot.waitUntil(lambda: len(window._store.state.peers) == 2, timeout=20_000)
    page, _ = page_of(window, "12D3KooWKnown")
    page._strip._buttons["muted"].click()
    qtbot.waitUntil(lambda: offered(page) == {"Allow again": True}, timeout=20_000)
    page.choose("12D3KooWUnknown")
    page._strip._buttons["blocked"].click()
    qtbot.waitUntil(lambda: "no peer's id" in window.status._notice._content[0], timeout=20_000)
    assert offered(page) == {"Mute": True, "Block": True}
    with qtbot.waitSignal(engine.ended, timeout=20_000):
        engine.stop()


@pytest.mark.parametrize("spoken", ["en", "de"])
@pytest.mark.parametrize("percent", [100, 130, 200])
def test_the_window_as_it_opens_has_room_for_every_column(
    window_told: TellWindow,
    story: list[AnyEvent],
    theme: Theme,
    qapp: QApplication,
    spoken: Language,
    percent: int,
    request: pytest.FixtureRequest,
) -> None:
    """Beside a scroll bar, no head, connection, figure or standing is cut; with large text, this holds for visible columns."""
    request.addfinalizer(lambda: translator.use("en"))
    translator.use(spoken)
    theme.set_text(percent)
    window = window_told(with_peers(story), 1280, 800)
    window.show_page("peers")
    for _ in range(3):
        qapp.processEvents()
    view, model = window.pages.of(PeersPage)._view, window.pages.of(PeersPage)._model
    assert view.verticalScrollBar().isVisible()
    visible = [column for column in range(len(COLUMNS)) if not view.isColumnHidden(column)]
    assert len(visible) == {100: 10, 130: 8, 200: 4}[percent]
    assert sum(view.columnWidth(column) for column in visible) == view.viewport().width()
    assert view.columnWidth(0) >= theme.px(NAME_ROOM)
    small, caption = QFontMetricsF(theme.font("small")), QFontMetricsF(theme.font("caption"))
    for column in visible[1:]:
        room = view.columnWidth(column) - 24
        assert caption.horizontalAdvance(str(model.headerData(column, Qt.Orientation.Horizontal))) <= room
        icon = 22 if column in (1, STANDING_COLUMN) else 0
        words = [model.index(row, column).data() for row in range(model.rowCount())]
        assert COLUMNS[column] == "Model" or all(small.horizontalAdvance(each) + icon <= room for each in words), COLUMNS[column]


@pytest.mark.parametrize(("percent", "scrolls"), [(100, False), (130, False), (200, True)])
def test_in_the_smallest_window_too_larger_words_are_whole_and_all_is_reached(
    window_told: TellWindow, story: list[AnyEvent], theme: Theme, qtbot: QtBot, percent: int, scrolls: bool
) -> None:
    theme.set_text(percent)
    window = window_told(with_peers(story), 1024, 640)
    window.show_page("peers")
    page = window.pages.of(PeersPage)
    qtbot.waitUntil(lambda: (page._area.verticalScrollBar().maximum() > 0) == scrolls)
    assert page._area.widget().width() == page._area.viewport().width(), "nothing stands beyond its side"
    assert page._view.viewport().height() >= 2 * theme.size["row"]
    for line in (page._reach._head, *page._reach._lines.values()):
        assert line.height() >= line.sizeHint().height()
        assert not line.isVisible() or line.width() >= line.sizeHint().width(), line.words()


def refused(**by_reason: int) -> events.GroupsGathered:
    return events.GroupsGathered(round=1, local=1, external=1, waiting=0, refused_by_peer={OTTER.id: by_reason}, at=NOW)


def test_the_reasons_of_refusals_are_listed_and_counted(window_told: TellWindow) -> None:
    window = window_told(met(OTTER, WREN))
    page, _ = page_of(window, OTTER.id)
    assert page._strip._refusals.isHidden(), "nothing was refused yet"
    tell(window, refused(teaches_nothing=8), refused(teaches_nothing=2, too_long=1))
    tell(window, events.RecordRejected(origin=OTTER.id, reason=Fault.RESERVED_QUESTION, count=3, at=NOW))
    assert page._strip._refusals.text() == (
        "Left out: 10 taught nothing new, 1 was too long for your model. Dropped because it broke a rule: reserved question (3)."
    )
    page.choose(WREN.id)
    assert page._strip._refusals.isHidden(), "of another peer"


def test_the_reasons_of_refusals_are_read_in_german(window_told: TellWindow) -> None:
    translator.use("de")
    window = window_told([*met(OTTER), refused(teaches_nothing=1, unfamiliar=2)])
    page, _ = page_of(window, OTTER.id)
    words = "Ausgelassen: 2 mit ungewöhnlichem Text, 1 lehrte nichts Neues."
    assert page._strip._refusals.text() == words
    assert refusal_sentences({Fault.RESERVED_QUESTION: 1}) == "Verworfen, weil eine Regel verletzt war: Prüffrage (1)."


def test_every_reason_of_a_selection_has_words() -> None:
    assert all(group_words(reason.value, 2).startswith("2 ") for reason in Reason)
    assert not any(group_words(fault, 2) for fault in Fault)


def test_only_the_most_frequent_reasons_are_named() -> None:
    broken = {f"rule {number}": number for number in range(1, 6)}
    assert refusal_sentences(broken) == "Dropped because it broke a rule: rule 5 (5), rule 4 (4), rule 3 (3) and 3 more."
