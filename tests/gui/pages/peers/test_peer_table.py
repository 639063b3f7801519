"""Finding and ordering peers in the table."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gui.recorded import START, ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.peers.page import FEW, PeersPage
from waggle.gui.pages.peers.peer_table import COLUMNS, PEER, SORT_KEYS, WIDTHS, PeerTableModel
from waggle.gui.state import shortcuts
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.events import PeerInfo
from waggle.protocol.state import AnyEvent

OTTER = PeerInfo(
    id="idotter", name="Brisk Otter", connection="relay", model="SmolLM2", round=9, received=8, used=2, groups_pulled=1,
    mean_reward=0.5, trusted=True, delay_ms=300.0, seen_at=90.0,
)  # fmt: skip
WREN = PeerInfo(
    id="idwren", name="Amber Wren", connection="direct", model="Starter", round=3, received=4, used=4, groups_pulled=7,
    mean_reward=0.2, delay_ms=20.0, seen_at=10.0,
)  # fmt: skip
UNKNOWN = PeerInfo(id="idnameless", name="", connection="lan")


@pytest.fixture
def table(theme: Theme) -> PeerTableModel:
    table = PeerTableModel(theme)
    table.show_peers([OTTER, WREN, UNKNOWN], 100.0)
    return table


def ids(table: PeerTableModel) -> list[str]:
    return [table.index(row, 0).data(PEER).id for row in range(table.rowCount())]


def test_at_first_the_most_useful_come_first(table: PeerTableModel) -> None:
    assert ids(table) == ["idwren", "idotter", "idnameless"]
    table.sort(COLUMNS.index("Delay"))
    table.sort(-1)
    assert ids(table) == ["idwren", "idotter", "idnameless"]


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("Name", "wren otter nameless"), ("Connection", "nameless wren otter"), ("Model", "nameless otter wren"),
        ("Round", "nameless wren otter"), ("You used", "nameless otter wren"), ("You gave", "nameless otter wren"),
        ("Mean reward", "nameless wren otter"), ("Standing", "otter wren nameless"), ("Delay", "nameless wren otter"),
        ("Seen", "otter wren nameless"),
    ],
)  # fmt: skip
def test_each_column_orders_by_its_values_both_ways(table: PeerTableModel, column: str, order: str) -> None:
    rows = [f"id{name}" for name in order.split()]
    table.sort(COLUMNS.index(column))
    assert ids(table) == rows
    table.sort(COLUMNS.index(column), Qt.SortOrder.DescendingOrder)
    assert set(ids(table)) == set(rows)
    assert (ids(table)[0] == rows[-1]) == (column != "Standing"), "two without a standing keep their order"
    assert len(SORT_KEYS) == len(COLUMNS)


def test_a_new_value_moves_no_row_until_it_is_ordered_anew(table: PeerTableModel) -> None:
    table.sort(COLUMNS.index("Delay"))
    table.show_peers([replace(OTTER, delay_ms=1.0), WREN, UNKNOWN], 101.0)
    assert ids(table) == ["idnameless", "idwren", "idotter"]


@pytest.mark.parametrize(
    ("words", "matches"),
    [
        ("", {"idwren", "idotter", "idnameless"}), ("WREN", {"idwren"}), ("brisk smollm2", {"idotter"}), ("idwren", {"idwren"}),
        ("direct", {"idwren"}), ("  ", {"idwren", "idotter", "idnameless"}), ("brisk starter", set()),
    ],
)  # fmt: skip
def test_words_find_names_keys_models_and_connections(table: PeerTableModel, words: str, matches: set[str]) -> None:
    table.find(words)
    assert set(ids(table)) == matches
    table.show_peers([OTTER, WREN, UNKNOWN], 102.0)
    assert set(ids(table)) == matches, "also among peers that come"


@pytest.mark.parametrize(
    ("delay", "words"),
    [(None, "–"), (20.4, "20 ms"), (999.0, "999 ms"), (999.6, "1.0 s"), (12345.0, "12.3 s")],
)
def test_a_delay_is_never_cut(theme: Theme, delay: float | None, words: str) -> None:
    table, column = PeerTableModel(theme), COLUMNS.index("Delay")
    table.show_peers([replace(WREN, delay_ms=delay)], 100.0)
    assert table.index(0, column).data() == words
    assert QFontMetricsF(theme.font("small")).horizontalAdvance(words) <= theme.px(WIDTHS[column]) - 24  # its margins


def page_with(window_told: Callable[..., MainWindow], count: int) -> PeersPage:
    met = [PeerInfo(id=f"id{n:03}", name=f"Quiet Finch {n:03}", delay_ms=float(n), seen_at=START) for n in range(count)]
    story: list[AnyEvent] = [ready(round=0), events.PhaseChanged(phase="contributing", round=0)]
    window = window_told([*story, *(events.PeerChanged(peer=peer) for peer in met)])
    window.show_page("peers")
    return window.pages.of(PeersPage)


def test_many_peers_are_found_by_keys_alone_and_few_need_no_search(window_told: Callable[..., MainWindow], qtbot: QtBot) -> None:
    assert page_with(window_told, FEW)._search.isHidden()
    page = page_with(window_told, 40)
    QTest.keyClick(page.window(), Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert shortcuts.FIND == "Ctrl+F"
    qtbot.waitUntil(lambda: page._search.hasFocus() or page.window().focusWidget() is page._search)
    QTest.keyClicks(page._search, "finch 01")
    assert page._model.rowCount() == 11, "and 001"
    assert page._line.words() == "11 of 40 peers match"
    QTest.keyClicks(page._search, "x")
    assert page._line.words() == "None of 40 peers matches"
    page._search.clear()
    assert page._model.rowCount() == 40


def test_a_click_on_a_head_orders_and_the_third_gives_the_first_order_back(
    window_told: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    page = page_with(window_told, 40)
    head, first = page._view.horizontalHeader(), ids(page._model)
    column = COLUMNS.index("Delay")
    qtbot.waitUntil(lambda: head.sectionViewportPosition(column) > 0)
    orders = []
    for _ in range(3):
        spot = head.sectionViewportPosition(column) + 20
        QTest.mouseClick(head.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(spot, 10))
        orders.append(ids(page._model))
    ascending = [f"id{n:03}" for n in range(40)]
    assert orders == [ascending, ascending[::-1], first]


def test_the_keyboard_orders_by_a_column_too(window_told: Callable[..., MainWindow], qtbot: QtBot) -> None:
    page = page_with(window_told, 40)
    head, first = page._view.horizontalHeader(), ids(page._model)
    assert head.focusPolicy() == Qt.FocusPolicy.TabFocus
    head.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in [column for column in range(COLUMNS.index("Delay")) if not head.isSectionHidden(column)]:
        qtbot.keyClick(head, Qt.Key.Key_Right)
    orders = []
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Enter):
        qtbot.keyClick(head, key)
        orders.append(ids(page._model))
    ascending = [f"id{n:03}" for n in range(40)]
    assert orders == [ascending, ascending[::-1], first]
    for _ in COLUMNS:
        qtbot.keyClick(head, Qt.Key.Key_Left)
    qtbot.keyClick(head, Qt.Key.Key_Return)
    assert head.sortIndicatorSection() == 0


def test_no_row_is_cut_and_the_chosen_one_stays_in_sight(window_told: Callable[..., MainWindow], qtbot: QtBot) -> None:
    page = page_with(window_told, 40)
    view, head = page._view, page._view.verticalHeader()
    qtbot.waitUntil(lambda: view.viewport().height() > head.defaultSectionSize())
    assert view.viewport().height() % head.defaultSectionSize() == 0
    last = page._model.index(view.viewport().height() // head.defaultSectionSize() - 1, 0)
    view.selectRow(last.row())
    qtbot.waitUntil(lambda: page._strip.isVisible() and view.visualRect(last).bottom() <= view.viewport().height())
    assert view.viewport().height() % head.defaultSectionSize() == 0


def test_what_names_do_not_need_is_shared_by_all_columns(window_told: Callable[..., MainWindow]) -> None:
    view = page_with(window_told, 3)._view
    usual = view.columnWidth(1)
    view.resize(1800, view.height())
    widths = [view.columnWidth(column) for column in range(view.model().columnCount())]
    assert sum(widths) <= view.viewport().width()
    assert widths[0] < 3 * widths[1], "the eye finds the row's other end"
    assert widths[1] > usual
