"""Does sharing help?, on Home: the picture of the swarm, or a row of peers where it has no room; neither without an engine."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.charts.painted.swarm_graph_layout import NAME_ROOM, most_active_peers, place_peers
from waggle.gui.pages.home.sharing_card import APART, AVATAR, AvatarRow, SharingCard
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import PeerInfo
from waggle.protocol.state import State

PEERS = {name: PeerInfo(id=name, name=name, connection="direct", received=1) for name in ("first", "second", "third")}
IDLE = {name: replace(peer, received=0) for name, peer in PEERS.items()}
CROWD = {f"p{number}": PeerInfo(id=f"p{number}", name=f"Peer {number}", connection="direct") for number in range(12)}
RUNNING = State(phase="contributing", ready=ready(), reach="connected", peers=PEERS)


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize(
    ("state", "high", "pictured", "listed"),
    [
        (RUNNING, 560, True, False),
        (RUNNING, 290, False, True),
        (replace(RUNNING, peers=CROWD), 290, False, True),
        (replace(RUNNING, peers={}), 290, False, False),
        (replace(RUNNING, phase="problem"), 560, False, False),
    ],
)
def test_peers_stand_as_there_is_room_for_them(
    theme: Theme, qtbot: QtBot, state: State, high: int, pictured: bool, listed: bool
) -> None:
    card = SharingCard(theme)
    qtbot.addWidget(card)
    card.resize(392, high)
    card.show()
    card.show_state(state, 1.0)
    qtbot.waitUntil(lambda: (card._picture.isVisible(), card._row.isVisible()) == (pictured, listed))


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
def test_where_their_picture_has_no_room_few_peers_are_named(theme: Theme, qtbot: QtBot) -> None:
    rows = AvatarRow(theme)
    qtbot.addWidget(rows)
    rows.show_peers(PEERS.values(), halts=False)
    assert rows.accessibleName() == "first, second and third"

    def ends_at(high: int) -> int:
        """The last column of pixels with anything drawn."""
        rows.resize(300, high)
        picture = rows.grab().toImage()
        ground = picture.pixel(299, 0)
        drawn = [x for x in range(300) for y in range(picture.height()) if picture.pixel(x, y) != ground]
        return max(drawn)

    low, high = theme.px(2 * APART), theme.px(3 * APART)
    assert abs(ends_at(low) - theme.px(2 * APART + 2 * AVATAR)) < 3, "side by side, without names"
    words = QFontMetricsF(theme.font("small")).horizontalAdvance("second")
    assert abs(ends_at(high) - (theme.px(2 * AVATAR) + 8 + words)) < 4, "each with its name"


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize("peers", [{"first": PEERS["first"]}, PEERS, CROWD])
def test_no_name_is_cut_off_where_peers_are_pictured(theme: Theme, qtbot: QtBot, peers: dict[str, PeerInfo]) -> None:
    card, metrics = SharingCard(theme), QFontMetricsF(theme.font("caption"))
    qtbot.addWidget(card)
    card.show()
    card.show_state(replace(RUNNING, peers=peers), 1.0)
    pictured = 0
    for high in range(240, 561, 10):
        card.resize(392, high)
        qtbot.waitUntil(lambda high=high: card.height() == high)
        if card._picture.isVisible():
            pictured += 1
            card._picture.grab()
            boxes = [box for box, _ in card._picture.name_places(metrics).values()]
            assert boxes
            room = QRectF(-1000, 0, 3000, card._picture.height())
            assert all(room.contains(box.adjusted(0, 4, 0, -4)) for box in boxes), f"at {high} pixels"
    assert pictured


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so
@pytest.mark.parametrize("high", [290, 560])
def test_who_trains_alone_stands_in_the_comb(theme: Theme, qtbot: QtBot, high: int) -> None:
    card = SharingCard(theme)
    qtbot.addWidget(card)
    card.resize(392, high)
    card.show()
    for peers in ({}, PEERS, IDLE):
        card.show_state(replace(RUNNING, peers=peers), 1.0)
        qtbot.waitUntil(lambda alone=peers is not PEERS: card._free.isVisible() is alone)
    assert card._free._peers == tuple(sorted(IDLE)), "who is only connected stands beside it"


def test_who_is_alone_reads_so_only_while_an_engine_runs(theme: Theme, qtbot: QtBot) -> None:
    card = SharingCard(theme)
    qtbot.addWidget(card)
    for phase, words in (("contributing", "Nobody else is here yet"), ("problem", "")):
        card.show_state(replace(RUNNING, phase=phase, peers={}), 1.0)
        assert card._here.text() == words


def test_the_card_says_how_many_train_with_you_and_nothing_else(theme: Theme, qtbot: QtBot) -> None:
    card = SharingCard(theme)
    qtbot.addWidget(card)
    members = {name: replace(peer, received=9, groups_pulled=2) for name, peer in PEERS.items() if name != "third"}
    state = replace(RUNNING, peers=IDLE | members)
    for phase, words in (("contributing", "2 computers train with you"), ("paused", "2 computers trained with you")):
        card.show_state(replace(state, phase=phase), 1.0)
        assert card._here.text() == words
        assert {peer.id for peer in card._picture._peers} == set(members), "the picture shows those that are counted"


def test_the_picture_takes_other_peers_only_when_those_in_it_change(theme: Theme, qtbot: QtBot) -> None:
    card = SharingCard(theme)
    qtbot.addWidget(card)
    peer = PeerInfo(id="12D3KooWA", name="Brisk Otter", received=3, seen_at=1.0)
    state = State(ready=ready(), phase="contributing", peers={peer.id: peer})
    card.show_state(state, 1.0)
    before = card._picture._known[0]
    assert list(before) == [peer.id]
    card.show_state(replace(state, round=2), 1.0)
    assert card._picture._known[0] is before
    card.show_state(replace(state, peers={peer.id: replace(peer, received=4)}), 1.0)
    assert card._picture._known[0][peer.id].received == 4


def test_beside_each_peer_there_is_room_for_the_beginning_of_a_name() -> None:
    place = QRectF(0, 0, 352, 250)
    for node in place_peers(most_active_peers(list(PEERS.values()), 1.0), place):
        outside = place.right() - node.place.x() if node.right else node.place.x() - place.left()
        assert outside >= NAME_ROOM + node.radius
