"""Groups move in the swarm graph while they are exchanged and it is visible; otherwise no timer runs."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QPaintEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.application.controller import Controller
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.painted.swarm_graph import SwarmGraph
from waggle.gui.charts.painted.swarm_graph_layout import (
    AROUND,
    MOST,
    NAMED,
    most_active_peers,
    place_peers,
    ring,
)
from waggle.gui.engine_client.replay import Replay
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.state.traffic_flow import Flow, flows
from waggle.gui.theme.theme import Theme
from waggle.protocol import events
from waggle.protocol.events import PeerInfo, ShownCompletion, ShownGroup
from waggle.protocol.state import AnyEvent, State, apply

TellWindow = Callable[..., MainWindow]
NOW = 1_790_000_000.0
OTTER = PeerInfo(id="12D3KooWBriskOtter", name="Brisk Otter", received=12, used=3, groups_pulled=8, delay_ms=18.0, seen_at=NOW)
WREN = PeerInfo(id="12D3KooWCleverWren", name="Clever Wren", connection="relay", received=2, delay_ms=90.0, seen_at=NOW)
MET: list[AnyEvent] = [ready(), events.PeerChanged(peer=OTTER, at=NOW), events.PeerChanged(peer=WREN, at=NOW)]
TOOK = events.PeerChanged(peer=replace(OTTER, groups_pulled=10), at=NOW)


def group(key: str, specialty: str) -> ShownGroup:
    return ShownGroup(key=key, specialty=specialty, question="q", completions=(ShownCompletion(text="x", judged=True),))


ARRIVED = events.PeerGroupsArrived(
    origin=OTTER.id, name=OTTER.name, round=4, model="m", at=NOW, groups=(group("a", "Fractions"), group("b", "Chain sum"))
)
LESSONS = (events.Lesson(key="a", effects=(1,)), events.Lesson(key="b", effects=(0,)))
LEARNED = events.PolicyUpdated(round=5, step=1, metrics=events.Metrics(), lessons=LESSONS)


def state_of(*story: AnyEvent) -> State:
    state = State()
    for event in story:
        state = apply(state, event)
    return state


class Counted(SwarmGraph):
    """A graph that counts its paints; only a test moves its clock."""

    def __init__(self, theme: Theme) -> None:
        self.painted, self.now = 0, 100.0
        super().__init__(theme, lambda: self.now)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.painted += 1
        super().paintEvent(event)


@pytest.fixture
def picture(theme: Theme, qtbot: QtBot) -> Iterator[Counted]:
    theme.less_motion = "off"
    graph = Counted(theme)
    qtbot.addWidget(graph)
    graph.resize(600, 200)
    with qtbot.waitExposed(graph):
        graph.show()
    graph.show_state(state_of(*MET), NOW)
    yield graph
    graph.hide()


def running(picture: SwarmGraph) -> list[QTimer]:
    return [timer for timer in picture.findChildren(QTimer) if timer.isActive()]


@pytest.mark.parametrize(
    ("changes", "trains", "blocked"),
    [({}, True, False), ({"received": 0, "groups_pulled": 0}, False, False), ({"choice": "blocked"}, False, True)],
)
def test_a_line_leads_to_who_trains_a_pale_one_to_who_is_idle_and_none_to_a_blocked_peer(
    picture: SwarmGraph, changes: dict[str, Any], trains: bool, blocked: bool
) -> None:
    (drawn,) = most_active_peers([replace(OTTER, **changes)], NOW)
    assert (drawn.trains, drawn.blocked) == (trains, blocked)
    picture.show_state(state_of(ready(), events.PeerChanged(peer=replace(OTTER, **changes), at=NOW)), NOW)
    picture._repaint_still()  # at once, not in an event of its own
    image = picture.grab().toImage()
    (node,) = place_peers((drawn,), QRectF(picture.rect()))
    middle = (QPointF(picture.rect().center()) + node.place) / 2
    near = [image.pixelColor(round(middle.x()) + x, round(middle.y()) + y) for x in range(-2, 3) for y in range(-2, 3)]
    assert (len({colour.lightness() for colour in near}) > 1) is not blocked, "something is drawn between both"


def test_what_flowed_is_read_off_two_states() -> None:
    met = state_of(*MET)
    here = apply(met, ARRIVED)
    assert flows(met, here) == (Flow(peer=OTTER.id, way="in", specialties=("Fractions", "Chain sum")),)
    assert flows(here, apply(here, LEARNED)) == (Flow(peer=OTTER.id, way="used", specialties=("Fractions",)),)
    assert flows(met, apply(met, TOOK)) == (Flow(peer=OTTER.id, way="out", specialties=("", "")),)
    assert flows(here, here) == ()


def test_what_a_peer_took_is_known_where_it_is_a_whole_round() -> None:
    mine = (group("me/5/0", "Fractions"), group("me/5/1", "Chain sum"))
    unjudged = tuple(replace(card, completions=()) for card in mine)
    judged = state_of(
        *MET, events.QuestionsDrawn(round=5, epoch=1, groups=unjudged, group_size=1), events.GroupsJudged(round=5, groups=mine)
    )
    assert flows(judged, apply(judged, TOOK))[0].specialties == ("Fractions", "Chain sum")


def test_what_was_exchanged_on_earlier_days_does_not_flow_when_a_peer_is_met_again() -> None:
    assert flows(state_of(ready()), state_of(*MET)) == ()


def test_nothing_runs_until_something_flows_and_nothing_after_it(picture: Counted, qtbot: QtBot) -> None:
    assert not running(picture)
    picture.show_state(state_of(*MET, ARRIVED), NOW)
    assert running(picture) == [picture.frames]
    before = picture.painted
    qtbot.waitUntil(lambda: picture.painted > before + 3)
    picture.now += 10
    qtbot.waitUntil(lambda: not running(picture))
    assert picture.travelling == []


def test_of_hundreds_that_a_peer_took_at_once_a_dozen_are_seen_on_their_way(picture: Counted) -> None:
    picture.show_state(state_of(*MET), NOW)
    picture.show_state(
        state_of(*MET, events.PeerChanged(peer=replace(WREN, groups_pulled=WREN.groups_pulled + 400), at=NOW)), NOW
    )
    assert len(picture.travelling) == 12
    assert picture.latest is not None
    assert "400 examples" in picture.latest[1]


def test_the_same_state_again_paints_nothing(picture: Counted, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: picture.painted > 0)
    QTest.qWait(0)
    before = picture.painted
    for passed in range(5):
        picture.show_state(state_of(*MET), NOW + passed)
        QTest.qWait(0)
    assert picture.painted == before


def test_others_are_painted_in_a_turn_of_their_own(picture: Counted, qtbot: QtBot) -> None:
    """Painting hundreds of peers takes long, so a click is handled before the graph is painted."""
    qtbot.waitUntil(lambda: not picture.changed.isActive())
    before = picture.grab().toImage()
    picture.show_state(state_of(*MET, events.PeerChanged(peer=replace(WREN, id="12D3KooWThird", delay_ms=4.0), at=NOW)), NOW)
    assert picture.grab().toImage() == before
    qtbot.waitUntil(lambda: picture.grab().toImage() != before)


def test_whoever_looks_away_sees_no_more_of_it_and_gets_nothing_made_up_for(picture: Counted) -> None:
    picture.show_state(state_of(*MET, ARRIVED), NOW)
    picture.hide()
    assert not running(picture)
    assert picture.travelling == []
    picture.show_state(state_of(*MET, ARRIVED, TOOK), NOW)
    picture.show()
    picture.show_state(state_of(*MET, ARRIVED, TOOK), NOW)
    assert not running(picture)


def test_with_less_motion_it_is_counted_and_stands_still(picture: Counted, theme: Theme, qtbot: QtBot) -> None:
    theme.less_motion = "on"
    picture.hold.setInterval(1)
    blank = picture.grab().toImage()
    picture.show_state(state_of(*MET, ARRIVED), NOW)
    assert running(picture) == [picture.hold]
    assert picture.grab().toImage() != blank
    qtbot.waitUntil(lambda: not running(picture))
    assert picture.grab().toImage() == blank


def test_the_same_facts_stand_there_as_text(picture: Counted) -> None:
    assert picture.accessibleName() == "Picture of the swarm: you in the middle, 2 peers around you, 1 of them through a relay"
    picture.show_state(state_of(*MET, ARRIVED), NOW)
    assert picture.accessibleDescription() == (
        "2 examples from Brisk Otter · iskOtter. Brisk Otter · iskOtter sent you 12 examples and took 8 of yours. "
        "Clever Wren · everWren sent you 2 examples and took 0 of yours."
    )


def test_a_hostile_name_is_only_ever_plain_text(theme: Theme, picture: Counted) -> None:
    evil = replace(OTTER, name="<b>\u202eetah\x1b[31m</b>")
    picture.show_state(state_of(ready(), events.PeerChanged(peer=evil, at=NOW)), NOW)
    (graph_peer,) = most_active_peers([evil], NOW)
    for words in (picture.accessibleDescription(), picture.about(evil.id), graph_peer.name):
        assert "\u202e" not in words
        assert "\x1b" not in words
    assert "<b>" in graph_peer.name


def test_of_five_hundred_the_liveliest_are_drawn(picture: Counted) -> None:
    crowd = [replace(OTTER, id=f"p{i}", name=f"Peer {i}", used=i, seen_at=NOW - (i % 2) * 9000) for i in range(500)]
    picture.show_state(state_of(ready(), *(events.PeerChanged(peer=peer, at=NOW) for peer in crowd)), NOW)
    drawn_peers = most_active_peers(crowd, NOW)
    assert {peer.id for peer in drawn_peers} == {f"p{i}" for i in range(498, 498 - 2 * MOST, -2)}
    assert picture._more == 460
    places = [placed.place for placed in place_peers(drawn_peers, picture.rect().toRectF())]
    assert len({(round(place.x()), round(place.y())) for place in places}) == MOST


@pytest.mark.parametrize(("width", "height"), [(600, 150), (760, 210), (1600, 500), (260, 420)])
def test_all_stand_on_one_ring_which_is_a_circle_unless_names_need_more(width: int, height: int) -> None:
    """Once, peers stood nearer the faster they were, on flat rings, where that could not be seen."""
    rect = QRectF(0, 0, width, height)
    few, many = (most_active_peers([replace(OTTER, id=f"p{i}") for i in range(count)], NOW) for count in (3, NAMED))
    for peers in (few, many):
        across, down = ring(rect, len(peers))
        assert across >= down
        for placed in place_peers(peers, rect):
            away = placed.place - rect.center()
            assert math.hypot(away.x() / across, away.y() / down) == pytest.approx(1.0)
    if height > 150:
        assert ring(rect, len(few))[0] == pytest.approx(ring(rect, len(few))[1])


@pytest.mark.parametrize(("width", "height"), [(560, 165), (350, 250), (830, 230), (1500, 560)])
def test_every_peer_has_its_name_where_all_have_one(
    theme: Theme, picture: Counted, qtbot: QtBot, width: int, height: int
) -> None:
    crowd = [replace(OTTER, id=f"p{i}", name=f"Patient Fern {i}") for i in range(NAMED)]
    picture.resize(width, height)
    picture.show_state(state_of(ready(), *(events.PeerChanged(peer=peer, at=NOW) for peer in crowd)), NOW)
    qtbot.waitUntil(lambda: len(picture._around) == len(crowd))
    assert len(picture.name_places(QFontMetricsF(theme.font("caption")))) == NAMED


@pytest.mark.parametrize(("width", "height"), [(830, 230), (560, 165), (340, 250)])
def test_as_many_as_are_drawn_do_not_hide_each_other(width: int, height: int) -> None:
    peers = most_active_peers([replace(OTTER, id=f"p{i}", seen_at=NOW) for i in range(MOST)], NOW)
    for peer, other in combinations(place_peers(peers, QRectF(0, 0, width, height)), 2):
        apart = peer.place - other.place
        assert math.hypot(apart.x(), apart.y()) > 0.6 * max(peer.radius, other.radius)


def test_no_avatar_and_no_line_around_the_chosen_one_is_cut(theme: Theme, picture: Counted) -> None:
    for count in range(1, MOST + 1):
        crowd = [replace(OTTER, id=f"p{i}", name=f"Peer {i}", delay_ms=400.0) for i in range(count)]
        for height in (picture.minimumHeight(), 200, 400):
            for placed in place_peers(most_active_peers(crowd, NOW), QRectF(0, 0, 600, height)):
                line = placed.radius + AROUND + 1
                assert line <= placed.place.y() <= height - line, (count, height)


def test_no_name_moves_when_a_peer_is_chosen_whose_name_has_room(theme: Theme, picture: Counted, qtbot: QtBot) -> None:
    crowd = [replace(OTTER, id=f"p{i}", name=f"Peer number {i}", used=i, delay_ms=40.0 * i) for i in range(16)]
    picture.resize(500, 170)
    picture.show_state(state_of(ready(), *(events.PeerChanged(peer=peer, at=NOW) for peer in crowd)), NOW)
    qtbot.waitUntil(lambda: len(picture._around) == len(crowd))
    metrics = QFontMetricsF(theme.font("caption"))
    before = picture.name_places(metrics)
    nameless = {peer.id for peer in crowd} - before.keys()
    assert before
    assert nameless, "some have no room"
    for peer in crowd:
        picture.mark(peer.id)
        named = picture.name_places(metrics)
        assert peer.id in named
        if peer.id not in nameless:
            assert named == before
    boxes = [box for box, _ in before.values()]
    assert not any(box.intersects(other) for box, other in combinations(boxes, 2))


def test_an_avatar_and_the_arrow_keys_choose_the_row_of_a_peer(window_told: TellWindow, qtbot: QtBot) -> None:
    window = window_told(MET)
    window.show_page("peers")
    QTest.qWait(0)
    drawn = window.pages.of(PeersPage)._picture
    drawn.grab()
    where = {node.peer.id: node.place.toPoint() for node in drawn._around}
    qtbot.mouseClick(drawn, Qt.MouseButton.LeftButton, pos=where[WREN.id])
    assert window.pages.of(PeersPage)._chosen == WREN.id
    qtbot.mouseClick(drawn, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    qtbot.keyClick(drawn, Qt.Key.Key_Right)
    assert window.pages.of(PeersPage)._chosen == OTTER.id
    assert drawn._marked == OTTER.id


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
def test_less_motion_can_be_chosen_while_the_window_is_open(theme: Theme, recording, qtbot: QtBot) -> None:
    choices = SettingsStore(None)
    shell = Controller(theme, StateStore(), Replay(recording), choices)
    assert theme.moves
    choices.set({"window.less_motion": "on"})
    assert not theme.moves
    choices.set({"window.less_motion": "off"})
    assert theme.moves
    shell.window.deleteLater()
    shell.deleteLater()


def test_only_namesakes_show_their_fingerprints_in_the_picture() -> None:
    peers = [
        PeerInfo(id=f"12D3KooW{key}", name=name, seen_at=NOW)
        for key, name in (("aaaaaaaa", "Brisk Otter"), ("bbbbbbbb", "Brisk Otter"), ("cccccccc", "Clever Wren"))
    ]
    assert {peer.name for peer in most_active_peers(peers, NOW)} == {
        "aaaaaaaa · Brisk Otter",
        "bbbbbbbb · Brisk Otter",
        "Clever Wren",
    }


def test_those_of_most_use_choose_first_where_their_names_stand_and_the_muted_and_gone_last() -> None:
    peers = [replace(OTTER, id=f"peer {used}", name=f"Peer {used}", used=used) for used in range(5)]
    peers[4] = replace(peers[4], choice="muted")
    peers[3] = replace(peers[3], connection="gone")
    placed = sorted(most_active_peers(peers, NOW), key=lambda peer: peer.place)
    assert [peer.name for peer in placed] == ["Peer 2", "Peer 1", "Peer 0", "Peer 4", "Peer 3"]


@pytest.mark.parametrize(("width", "lines"), [(900, 1), (352, 3)])
def test_a_long_name_stands_in_lines_where_it_has_no_room_in_one(
    theme: Theme, picture: Counted, qtbot: QtBot, width: int, lines: int
) -> None:
    long = replace(OTTER, name="Immeasurably Thoughtful Hippopotamus")
    picture.resize(width, 250)
    picture.show_state(state_of(ready(), events.PeerChanged(peer=long, at=NOW)), NOW)
    qtbot.waitUntil(lambda: [node.peer.name for node in picture._around] == [long.name])
    ((box, words),) = picture.name_places(QFontMetricsF(theme.font("caption"))).values()
    assert words.split("\n") == ([long.name] if lines == 1 else long.name.split())
    assert QRectF(picture.rect()).contains(box)
