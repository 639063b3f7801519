"""Live, Progress and Peers show the State, and say so when it is empty."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPersistentModelIndex, QPoint, Qt
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

from gui.answers import run_coroutines, without_engine
from gui.pages.live.test_page import show_all_answers
from gui.recorded import PEERS, ready
from pictures.screenshots import failed
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import figure
from waggle.gui.pages.home.good_answer_card import latest_good_answer
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.live.page import LivePage
from waggle.gui.pages.live.question_card import answer_chip, footer
from waggle.gui.pages.live.round_stepper import step_progress, step_state
from waggle.gui.pages.peers.page import PeersPage, headline
from waggle.gui.pages.peers.peer_table import PeerTableModel
from waggle.gui.pages.progress.page import ProgressPage, score_headline
from waggle.gui.pages.progress.round_size_words import round_size_words
from waggle.gui.pages.progress.round_table import COLUMNS, RoundTableModel, RoundTableView, rows
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.state import chart_series
from waggle.gui.state.story.feed_pacing import learned_from_first
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.text import ElidedLabel
from waggle.gui.widgets.typeset.question_text import gist
from waggle.protocol import events
from waggle.protocol.events import UNTAGGED, HeldOutScore, PeerInfo, ShownCompletion
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.state import AnyEvent, Card, Snapshot, State, apply

TellWindow = Callable[..., MainWindow]


def state_of(story: list[AnyEvent]) -> State:
    state = State()
    for event in story:
        state = apply(state, event)
    return state


def card(*rewards: float, effects: tuple[int, ...] = (), origin: str = "") -> Card:
    answers = tuple(ShownCompletion(text="x", judged=True, reward=value, reason="") for value in rewards)
    return Card(key="k", origin=origin, round=4, at=0.0, specialty="s", question="q", completions=answers, effects=effects)


NOW = State(phase="contributing", round=4)


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (card(1.0, 0.0, 0.0, effects=(1, -1, -1)), "1 answer more likely next time, 2 less likely."),
        (card(1.0, 1.0, 0.0, effects=(1, 1, -1)), "2 answers more likely next time, 1 less likely."),
        (card(0.0, 0.0, effects=(0, 0)), "No answer stood out, so nothing was learned."),
        (card(0.0, 0.0), "Waiting to be used for learning."),
        (
            card(1.0, 1.0, 0.0, 0.0, effects=(1, 1, 0, 0), origin="p"),
            "Judged again on this computer. You learned from 2 right answers and ignored 2 misses.",
        ),
        (card(1.0, 0.0, origin="p"), "Judged again on this computer. Waiting to be used for learning."),
    ],
)
def test_a_card_says_what_was_learned(card: Card, words: str) -> None:
    assert footer(card, NOW)[2] == words


def test_a_persons_own_shared_answer_says_so_and_is_no_good_answer_of_the_model() -> None:
    by_hand = replace(card(1.0), by_hand=True, completions=(replace(card(1.0).completions[0], human=True),))
    assert footer(by_hand, NOW)[2] == "Your own answer, shared and labelled as human. Your model does not learn from it."
    assert latest_good_answer(State(cards=(by_hand,))) is None


def test_a_card_of_an_earlier_round_was_not_drawn() -> None:
    assert footer(card(0.0, 1.0), State(phase="contributing", round=5))[2] == "Not used for learning this round."


@pytest.mark.parametrize(
    ("answer", "going", "chip"),
    [
        (ShownCompletion(text="", ended=False), True, ("writing", "bare", "pen")),
        (ShownCompletion(text="", ended=False), False, ("not finished", "bare", "cut")),
        (ShownCompletion(text="x"), True, ("written", "bare", "check")),
        (ShownCompletion(text="x", judged=True, reward=1.0, reason="right"), True, ("right", "good", "check")),
        (ShownCompletion(text="x", judged=True, reason="wrong: 3", length=1), True, ("wrong: 3", "bare", "cross")),
        (ShownCompletion(text="x", judged=True, reason="no answer tag"), True, ("no answer tag", "bare", "cross")),
        (ShownCompletion(text="9", judged=True, reason=UNTAGGED), True, ("right, wrong format", "accent", "pen")),
        (
            ShownCompletion(text="x", judged=True, reward=1.0, reason="right", human=True),
            True,
            ("human  right", "good", "check"),
        ),
    ],
)
def test_a_chip_has_sign_and_word(answer: ShownCompletion, going: bool, chip: tuple[str, str, str]) -> None:
    assert answer_chip(answer, going=going) == chip


def test_the_stepper_counts_what_is_done() -> None:
    state = State(stage="judge", questions_drawn=8, answered=64, answers_expected=64, judged=0, waiting=23)
    assert [step_state(stage, state) for stage in ("draw", "judge", "learn")] == ["done", "now", "next"]  # type: ignore[arg-type]
    assert [step_progress(stage, state) for stage in ("draw", "answer", "judge", "share", "gather")] == [  # type: ignore[arg-type]
        "8 questions", "64 of 64", "judging", "", "23 waiting",
    ]  # fmt: skip


def test_the_feed_is_bounded_and_newest_first(window_told: TellWindow, story: list[AnyEvent]) -> None:
    window = window_told(story)
    live = show_all_answers(window)
    cards = [card_widget for card_widget in live.answers.feed._cards if not card_widget.isHidden()]
    assert 0 < len(cards) <= 12
    assert cards[0]._card is learned_from_first(window._store.state.cards)[0]


def test_the_same_widgets_serve_the_next_round(window_told: TellWindow, written: list[AnyEvent], qtbot: QtBot) -> None:
    window = window_told(written)
    live = show_all_answers(window)
    qtbot.waitUntil(lambda: not live.answers.feed._later.isActive())
    before = list(live.answers.feed._cards)
    for event in written[-40:]:
        window._store.take(event)
    window._store.flush()
    assert live.answers.feed._cards == before


def test_filters_choose_and_freezing_holds(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told(written)
    live = show_all_answers(window)
    live.answers.whose.choose(2)
    assert all(
        not card_widget._card.mine for card_widget in live.answers.feed._cards if not card_widget.isHidden() and card_widget._card
    )
    live.answers.freeze.setChecked(True)
    top = live.answers.feed._cards[0]._card
    late = events.ShownGroup(key="late", specialty="s", question="q", completions=(ShownCompletion(text="x", judged=True),))
    window._store.take(events.PeerGroupsArrived(origin="p", name="P", round=1, model="m", groups=(late,)))
    window._store.flush()
    assert live.answers.feed._cards[0]._card is top
    assert "1 newer question" in live._line.words()
    live.answers.freeze.setChecked(False)
    first = live.answers.feed._cards[0]._card
    assert first is not None
    assert first.key == "late"


def test_a_specialty_that_another_swarm_does_not_have_is_chosen_no_longer(
    window_told: TellWindow, written: list[AnyEvent], qapp: QApplication
) -> None:
    window = window_told(written)
    live = show_all_answers(window)
    menu = live.answers._menu_button.menu()
    menu.actions()[1].trigger()
    chosen = menu.actions()[1].text()
    assert (live.answers._specialty, live.answers._menu_button.text()) == (chosen, chosen)
    other = ready(charter="cd" * 32, specialties=(events.SpecialtyInfo(dataset="bf", title="Tiny programs"),))
    for event in (StartedAgain(reason="Another swarm was chosen."), other):
        window._store.take(event)
    window._store.flush()
    assert (live.answers._specialty, live.answers._menu_button.text()) == ("", "All specialties")
    assert [action.text() for action in live.answers._menu_button.menu().actions()] == ["All specialties", "Tiny programs"]
    assert live.answers._menu_button.menu().actions()[0].isChecked()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(live.answers._menu_button.findChildren(QMenu)) == 1, "it is filled anew, not made anew"


def test_the_menu_has_all_kinds_that_a_swarm_can_have(window_told: TellWindow) -> None:
    titles = [f"Kind {number}" for number in range(64)]
    window = window_told([ready(specialties=tuple(events.SpecialtyInfo(dataset=f"k{n}", title=n) for n in titles))])
    live = show_all_answers(window)
    assert [action.text() for action in live.answers._menu_button.menu().actions()] == ["All specialties", *titles]


def test_an_empty_feed_can_be_frozen_too(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told([])
    live = show_all_answers(window)
    live.answers.freeze.setChecked(True)
    for event in written:
        window._store.take(event)
    window._store.flush()
    assert not any(card_widget._card for card_widget in live.answers.feed._cards)
    assert "newer questions are waiting" in live._line.words()


def test_the_verdict_is_a_sentence() -> None:
    scores = (HeldOutScore(round=0, at=0, right=100, total=1000), HeldOutScore(round=811, at=0, right=384, total=1000))
    played = events.RoundSummary(round=811, at=0.0, reward=0.4, solved=0.3, seconds=2.0)
    state = State(rounds=(played,), held_out=scores)
    assert score_headline(state) == "After 811 rounds your model gets 38 of 100 new questions right; it began at 10", (
        "when it was scored"
    )
    assert score_headline(State(rounds=(played,), held_out=scores[:1])).startswith("Before its first round your model gets 10 of")
    assert "reward of 0.40" in score_headline(State(rounds=(played,)))
    assert score_headline(State(ready=ready(round=0))) == "Charts appear after the first round"


def test_the_verdict_on_few_questions_says_how_sure_it_is() -> None:
    first = HeldOutScore(round=0, at=0, right=3, total=63, exam="few", early=True)
    begun = State(ready=ready(round=0), held_out=(first,))
    assert score_headline(begun) == (
        "Before its first round your model gets 3 of 63 new questions right, which suggests 2 to 13 of 100"
    )
    played = events.RoundSummary(round=5, at=0.0, reward=0.4, solved=0.3, seconds=2.0)
    later = HeldOutScore(round=4, at=0, right=21, total=63, exam="few", early=True)
    assert score_headline(State(rounds=(played,), held_out=(first, later))) == (
        "After 4 rounds your model gets 21 of 63 new questions right, which suggests 23 to 46 of 100"
    )
    whole = HeldOutScore(round=24, at=0, right=90, total=270, exam="all")
    assert score_headline(State(rounds=(played,), held_out=(first, later, whole))) == (
        "After 24 rounds your model gets 33 of 100 new questions right"
    )


def test_progress_says_how_much_a_round_asks_and_why() -> None:
    length = events.AnswerLength(tokens=40, why="trial")
    state = State(ready=ready(questions=8, answer_length=length))
    assert round_size_words(state) == (
        "A round asks 8 questions, and 8 answers to each, of at most 40 tokens: as much as its readable answers need."
    )
    raised = apply(state, events.AnswersLengthened(length=events.AnswerLength(tokens=80, why="raised")))
    assert "80 tokens: raised, because many answers were cut off." in round_size_words(raised)
    assert round_size_words(State(ready=ready())) == "", "of an engine of an earlier version"
    assert round_size_words(State()) == ""


def test_the_verdict_compares_within_one_exam() -> None:
    exams = ((0, 0, 270, "a"), (25, 20, 270, "a"), (50, 3, 60, "b"), (75, 9, 60, "b"))
    scores = tuple(HeldOutScore(round=number, at=0, right=right, total=of, exam=exam) for number, right, of, exam in exams)
    state = State(rounds=(events.RoundSummary(round=85, at=0.0, reward=0.4, solved=0.3, seconds=2.0),), held_out=scores)
    assert (
        score_headline(state) == "After 75 rounds your model gets 15 of 100 new questions right; on these questions it began at 5"
    )
    state = State(rounds=state.rounds, held_out=scores[:3])
    assert score_headline(state) == "After 50 rounds your model gets 5 of 100 new questions right"


def test_what_a_person_opened_stays_open_wherever_it_stands(window_told: TellWindow) -> None:
    answer = events.ShownCompletion(text="step by step " * 200, judged=True)
    groups = [events.ShownGroup(key=about, specialty=about, question="Q", completions=(answer,)) for about in ("Logic", "Sums")]
    window = window_told([events.PeerGroupsArrived(origin="p", name="Brisk Otter", round=1, model="m", groups=tuple(groups))])
    live = show_all_answers(window)
    live.answers.feed._cards[1]._reader.click()
    live.answers._menu_button.menu().actions()[2].trigger()
    first = live.answers.feed._cards[0]
    assert first._card is not None
    assert (first._card.key, first._reader.text()) == ("Sums", "Show less")


@pytest.mark.parametrize("name", ["progress.csv", "progress.png"])
def test_progress_is_saved(window_told: TellWindow, written: list[AnyEvent], tmp_path: Path, name: str) -> None:
    window = window_told(written)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    with without_engine(window):
        page.save(tmp_path / name)
    window.redraw()
    remark = ". Some older rounds are missing because the engine did not answer." if name.endswith("csv") else ""
    assert window.status._notice.accessibleName() == f"Saved to {tmp_path / name}{remark}"
    if name.endswith("csv"):
        rows = list(csv.reader((tmp_path / name).open()))
        assert rows[0][:6] == ["round", "finished", "held_out_right", "held_out_total", "reward", "right"]
        assert len(rows) - 1 == len(chart_series.rounds(window._store.state))
        assert rows[-1][0] == str(window._store.state.rounds[-1].round)


@pytest.mark.parametrize(
    ("name", "kind", "saved"),
    [
        ("waggle-progress.csv", "Picture (*.png)", "waggle-progress.png"),
        ("waggle-progress.csv", "Table (*.csv)", "waggle-progress.csv"),
        ("mine.png", "Table (*.csv)", "mine.png"),
        ("run v1.2", "Picture (*.png)", "run v1.2.png"),
        ("20.11.2026", "Table (*.csv)", "20.11.2026.csv"),
        ("mine", "Picture (*.png)", "mine.png"),
    ],
)
def test_the_kind_that_was_chosen_is_saved_unless_a_person_wrote_another(
    window_told: TellWindow, written: list[AnyEvent], tmp_path: Path, name: str, kind: str, saved: str
) -> None:
    window = window_told(written)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    with without_engine(window):
        page.save(tmp_path / name, kind)
    assert [path.name for path in tmp_path.iterdir()] == [saved]
    assert (tmp_path / saved).read_bytes().startswith(b"\x89PNG" if saved.endswith("png") else b"round")


@pytest.mark.parametrize("name", ["waggle-progress.csv", "waggle-progress"])
def test_a_picture_that_nobody_was_asked_about_is_not_overwritten(
    window_told: TellWindow, written: list[AnyEvent], tmp_path: Path, name: str
) -> None:
    window = window_told(written)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    (tmp_path / "waggle-progress.png").write_text("mine")
    for number in (2, 3):
        page.save(tmp_path / name, "Picture (*.png)")
        window.redraw()
        assert window.status._notice.accessibleName() == f"Saved to {tmp_path / f'waggle-progress-{number}.png'}"
    assert (tmp_path / "waggle-progress.png").read_text() == "mine"


def test_a_score_stands_beside_the_last_round_before_it_and_nowhere_else() -> None:
    played = tuple(events.RoundSummary(round=n, at=float(n), reward=0.4, solved=0.3, seconds=2.0) for n in (0, 1, 2, 3, 8))
    scores = tuple(events.HeldOutScore(round=n, at=0.0, right=n, total=50) for n in (0, 2, 6, 9))
    table = [(summary.round, score and score.right) for summary, score, _ in rows(State(rounds=played, held_out=scores))]
    assert table == [(8, 9), (3, 6), (2, None), (1, 2), (0, 0)]


@pytest.mark.parametrize("spoken", ["en", "de"])
@pytest.mark.parametrize(("width", "height"), [(1024, 640), (1280, 800)])
def test_nothing_in_the_table_is_cut(
    window_told: TellWindow, story: list[AnyEvent], spoken: translator.Language, width: int, height: int
) -> None:
    translator.use(spoken)
    try:
        window = window_told(story, width, height)
        window.show_page("progress")
        page = window.pages["progress"]
        assert isinstance(page, ProgressPage)
        page._as_table.click()
        view, head = page._table_view, page._table_view.horizontalHeader()
        visible = [place for place in range(len(COLUMNS)) if not view.isColumnHidden(place)]
        assert len(visible) >= (7 if width == 1024 else 9)
        view.grab()  # takes its place
        for place in visible:
            assert max(head.sectionSizeHint(place), view.sizeHintForColumn(place)) <= view.columnWidth(place), COLUMNS[place]
    finally:
        translator.use("en")


def test_what_is_chosen_in_the_table_stays_chosen_when_a_round_ends(theme: Theme) -> None:
    played = [events.RoundSummary(round=n, at=float(n), reward=0.4, solved=0.3, seconds=2.0) for n in range(4)]
    table, score = RoundTableModel(theme), events.HeldOutScore(round=3, at=0.0, right=9, total=50)
    table.show_rows(rows(State(rounds=tuple(played[:3]))))
    chosen, changed = QPersistentModelIndex(table.index(1, 0)), list[int]()
    table.dataChanged.connect(lambda top, _bottom: changed.append(top.row()))
    table.show_rows(rows(State(rounds=tuple(played), held_out=(score,))))
    assert (chosen.row(), table.index(2, 0).data(), table.rowCount()) == (2, "2", 4)
    assert changed == [1], "the score came to a round that was there"
    table.show_rows(rows(State(rounds=tuple(played[2:]))))
    assert (chosen.isValid(), table.rowCount()) == (False, 2)


def test_what_is_read_in_a_long_history_keeps_its_place_when_a_round_ends(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    """A long history has every second round, the recent ones all: each new round pushes one out."""
    played = [events.RoundSummary(round=n, at=float(n), reward=0.4, solved=0.3, seconds=2.0) for n in range(1300)]
    table, history = RoundTableModel(theme), tuple(played[:1200:2])
    view = RoundTableView(theme, table)
    qtbot.addWidget(view)
    view.show()
    table.show_rows(rows(State(history=history, rounds=tuple(played[1000:1200]))))
    qapp.processEvents()
    view.selectRow(400)
    view.scrollTo(table.index(400, 0), view.ScrollHint.PositionAtTop)
    read, resets = view.indexAt(QPoint(4, 4)).data(), list[int]()
    table.modelReset.connect(lambda: resets.append(1))
    for newest in range(1200, 1210):
        table.show_rows(rows(State(history=history, rounds=tuple(played[newest - 199 : newest + 1]))))
        qtbot.waitUntil(lambda: view.indexAt(QPoint(4, 4)).data() == read)
        assert [index.data() for index in view.selectionModel().selectedRows()] == [read]
        assert table.index(0, 0).data() == figure(newest + 1)
    assert not resets


def test_a_disk_that_says_no_is_said(window_told: TellWindow, written: list[AnyEvent], tmp_path: Path) -> None:
    window = window_told(written)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    with without_engine(window):
        page.save(tmp_path / "nowhere" / "x.csv")
    window.redraw()
    assert window.status._notice.accessibleName().startswith("Not saved:")


def test_charts_and_table_show_every_axis(window_told: TellWindow, story: list[AnyEvent], qapp: QApplication) -> None:
    window = window_told(story)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    for axis in range(3):
        page._axis.choose(axis)
        qapp.processEvents()
    page._as_table.setChecked(True)
    assert page._table.rowCount() >= len(window._store.state.rounds)


def test_both_charts_stand_on_one_axis(window_told: TellWindow, story: list[AnyEvent], qtbot: QtBot) -> None:
    window = window_told(story)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    assert page._score_chart is not None
    assert page._reward is not None

    def ends() -> list[list[float]]:
        """Of both charts."""
        return [chart.viewRange()[0] for chart in (page._score_chart, page._reward) if chart is not None]

    window.resize(1280, 800)
    qtbot.waitUntil(lambda: ends()[0] == ends()[1])
    wide = ends()[0]
    window.resize(1000, 800)
    qtbot.waitUntil(lambda: ends()[0] == ends()[1] and ends()[0][1] > wide[1])  # the names of the lines keep their room


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_the_saving_dialog_does_not_block(window_told: TellWindow, written: list[AnyEvent], qapp: QApplication) -> None:
    window = window_told(written)
    window.show_page("progress")
    page = window.pages["progress"]
    assert isinstance(page, ProgressPage)
    page._save.click()
    run_coroutines()
    (dialog,) = page.findChildren(QFileDialog)
    assert dialog.isVisible()
    dialog.findChild(QComboBox, "fileTypeCombo").setFocus()
    dialog.filterSelected.emit("Picture (*.png)")
    assert [Path(path).name for path in dialog.selectedFiles()] == ["waggle-progress.png"], "it asks about what will be written"
    dialog.selectFile("run v1.2")
    dialog.filterSelected.emit("Table (*.csv)")
    assert [Path(path).name for path in dialog.selectedFiles()] == ["run v1.2.csv"]
    dialog.reject()


def test_only_changed_rows_are_said_to_change(theme: Theme) -> None:
    table = PeerTableModel(theme)
    peers = [PeerInfo(id=name, name=name, received=3, used=2, seen_at=50.0) for name in ("a", "b", "c")]
    table.show_peers(peers, 60.0)
    changed: list[tuple[int, int]] = []
    table.dataChanged.connect(lambda top, bottom: changed.append((top.row(), bottom.row())))
    assert [table.index(row, 4).data() for row in (0, 1)] == ["2 of 3"] * 2
    peers[1:] = [PeerInfo(id=name, name=name, received=9, used=4, seen_at=50.0) for name in ("b", "c")]
    table.show_peers(peers, 60.0)
    assert changed == [(1, 1)], "nobody has looked at the last one yet"
    assert [table.index(row, 4).data() for row in (1, 2)] == ["4 of 9"] * 2


def test_strangers_names_are_neutral_in_the_table(theme: Theme) -> None:
    table = PeerTableModel(theme)
    table.show_peers([PeerInfo(id="a", name="\u202e<b>Evil</b>\n")], 0.0)
    assert table.index(0, 0).data() == "\ufffd<b>Evil</b> · a"


def test_peers_are_counted_in_a_sentence(written: list[AnyEvent]) -> None:
    state = state_of(list(written))
    here = sum(kind != "gone" for _, _, kind, _ in PEERS)
    assert headline(state).startswith(f"{here} computers train with you")


def test_home_offers_to_invite_someone_where_nobody_is(window_told: TellWindow) -> None:
    window = window_told([ready(), events.PhaseChanged(phase="contributing", round=1)])
    sharing = window.pages.of(HomePage).sharing
    for reach, offered in (("connecting", False), ("alone", True), ("connected", True), ("solo", False)):
        window._store.take(events.ReachChanged(reach=reach, peers=0))  # type: ignore[arg-type]
        window._store.flush()
        assert (sharing.link.text() == "Invite someone") == offered, reach
    window._store.take(events.ReachChanged(reach="alone", peers=0))
    window._store.flush()
    sharing.link.click()
    assert (window.page, window.pages.of(SwarmsPage)._invite_view.isVisible()) == ("swarms", True)
    window.show_page("home")
    window._store.take(events.PeerChanged(peer=PeerInfo(id="a", name="Brisk Otter", received=3)))
    window._store.flush()
    assert sharing.link.text() != "Invite someone"


@pytest.mark.parametrize(("reward", "right"), [(0.3, 0), (0.0, 30)])
def test_what_is_said_of_a_beginner_gives_way_to_trying_it(window_told: TellWindow, reward: float, right: int) -> None:
    window = window_told([ready(), events.PhaseChanged(phase="contributing", round=1)])
    card = window.pages.of(HomePage).next
    assert card.title.text() == "Why it begins so low"
    window._store.take(events.HeldOutMeasured(score=HeldOutScore(round=1, at=1.0, right=right, total=100)))
    summary = events.RoundSummary(round=1, at=1.0, reward=reward, solved=reward, seconds=1.0, completions=64)
    window._store.take(events.RoundCompleted(summary=summary))
    window._store.flush()
    assert card.title.text() == "Try your model"
    card.button.click()
    assert window.page == "playground"


@pytest.mark.parametrize(
    ("reach", "title", "invites"),
    [
        ("connecting", "Looking for peers", True),
        ("alone", "Nobody else is here yet", True),
        ("connected", "Nobody else is here yet", True),
        ("solo", "This computer only", False),
    ],
)
def test_nobody_here_is_said_in_words(window_told: TellWindow, reach: events.Reach, title: str, invites: bool) -> None:
    running = events.PhaseChanged(phase="contributing", round=1)
    window = window_told([ready(), running, events.ReachChanged(reach=reach, peers=0, tried=2)])
    window.show_page("peers")
    page = window.pages["peers"]
    assert isinstance(page, PeersPage)
    assert not page._table.isVisible()
    assert page.nobody.title.text() == title
    assert page.nobody.invite.isVisible() == invites
    assert not page._invite.isVisible(), "it stands in the middle"
    window._store.take(events.PeerChanged(peer=PeerInfo(id="a", name="Brisk Otter")))
    window._store.flush()
    assert not page.nobody.isVisible()
    assert page._invite.isVisible() == invites


def test_an_address_is_offered_only_where_somebody_is_connected(window_told: TellWindow) -> None:
    window = window_told([ready(), events.PhaseChanged(phase="contributing", round=1)])
    window.show_page("peers")
    for reach, offered in (("alone", False), ("connected", True)):
        event = events.ReachChanged(reach=reach, peers=0, address="/ip4/192.0.2.1/tcp/4001/p2p/12D3")  # type: ignore[arg-type]
        window._store.take(event)
        window._store.flush()
        assert window.pages.of(PeersPage)._reach._copy.isVisible() == offered


PUZZLES = (
    ("Calculate 9 * 0.", "Calculate 9 * 0."),
    ("Convert a number.\n\nUse letters.\n\nNow, convert 41 to base-6\n", "…Now, convert 41 to base-6"),
    ("This is a program. What is the output?\n\n>[-]>+.<\n\nRespond only with the exact output.", "…>[-]>+.<"),
    ("Please solve this. Only reply with the value.\n(8.5-5.9) = ?", "…(8.5-5.9) = ?"),
    ("Find the distance for each cell below:\n1 0\n0 1\n", "Find the distance for each cell below: 1 0 0 1"),
    ("Two words.\n\nReturn True if they are alike:\negg add", "…Return True if they are alike: egg add"),
    ("Compute 2^2.\nGive three figures.", "Compute 2^2. Give three figures."),
    ("", ""), ("\n \n", ""), ("Give it.\n\nGive it.", "Give it."),
)  # fmt: skip


@pytest.mark.parametrize(("question", "essence"), PUZZLES)
def test_one_line_says_what_makes_it_this_question(question: str, essence: str) -> None:
    assert gist(question) == essence


def test_the_whole_of_a_question_is_in_the_tooltip_and_read_out(window_told: TellWindow) -> None:
    question = PUZZLES[1][0]
    long_card = replace(card(1.0), question=question)
    window = window_told([ready(), Snapshot(state=State(phase="contributing", ready=ready(), cards=(long_card,)))])
    window.grab()
    line = window.pages.of(HomePage).good._question
    assert (line.words(), line.accessibleName()) == (PUZZLES[1][1], " ".join(question.split()))
    assert "Use letters." in line.toolTip()


def test_the_latest_good_answer_is_the_newest_and_shortest() -> None:
    assert latest_good_answer(State(cards=(card(0.0, 0.5), card(0.0, 1.0), card(1.0)))) is not None
    assert latest_good_answer(State(cards=(card(0.0),))) is None


@pytest.mark.parametrize(
    ("changes", "appears"), [({}, False), ({"trusted": True}, True), ({"trusted": True, "choice": "muted"}, False)]
)
def test_only_a_trusted_peers_good_answer_stands_on_home(changes: dict[str, Any], appears: bool) -> None:
    answer, own = card(1.0, origin="p"), card(1.0)
    peers = {"p": events.PeerInfo(id="p", name="P", **changes)}
    assert (latest_good_answer(State(cards=(answer,), peers=peers)) is not None) is appears
    assert latest_good_answer(State(cards=(answer,))) is None
    chosen = latest_good_answer(State(cards=(answer, own), peers=peers))
    assert chosen is not None
    assert chosen[0] is (answer if appears else own)


def test_a_good_answer_of_the_model_before_is_not_shown_as_this_ones(window_told: TellWindow, written: list[AnyEvent]) -> None:
    window = window_told(written)
    good = window.pages.of(HomePage).good
    assert good._latest is not None
    window._store.take(ready(model="Another", base="ff"))
    window._store.flush()
    assert good._latest is None or not good._latest[0].mine
    for mine in (ready(model="A third", base="ee"), StartedAgain(reason="Another swarm was chosen.")):
        window._store.take(mine)
    window._store.flush()
    assert good._latest is None
    assert (good._nothing.isHidden(), good._question.isHidden(), good._when.words()) == (False, True, "")


RESTORING = [events.Preparing(part="Preparing the model", done=2, parts=4, at=5.0)]


def words_on(page: QWidget) -> str:
    """All words in the labels of a page."""
    labels = [label.text() for label in page.findChildren(QLabel) if not label.isHidden()]
    return "\n".join([*labels, *(line.words() for line in page.findChildren(ElidedLabel) if not line.isHidden())])


def test_who_returns_does_not_read_that_all_is_lost(window_told: TellWindow, qapp: QApplication) -> None:
    window = window_told(RESTORING)
    texts = {}
    for page in ("home", "live", "progress", "peers", "swarms", "you"):
        window.show_page(page)
        qapp.processEvents()
        texts[page] = words_on(window.pages[page])
    assert "–" in texts["you"].splitlines()
    for page in ("home", "you"):
        assert "0" not in texts[page].splitlines()
    assert texts["you"].splitlines().count("Not read yet") == 4
    assert "You, as the swarm sees you" not in texts["you"]
    assert "Questions and answers appear here as soon as the first round begins." in texts["live"]
    assert "The charts appear here once training runs." in texts["progress"]
    assert "Waggle looks for peers once it has started." in texts["peers"]
    assert "Training does not wait for peers" not in texts["peers"]
    assert "Waggle is starting; your swarms appear in a few seconds" in texts["swarms"]


def test_the_rounds_of_before_are_awaited(story: list[AnyEvent]) -> None:
    assert score_headline(State(phase="contributing", ready=ready(round=613))) == "The rounds so far are being asked for."


def test_a_dead_engine_is_connected_to_nobody(window_told: TellWindow, story: list[AnyEvent], qapp: QApplication) -> None:
    window = window_told(failed(story))
    texts = {}
    for page in ("home", "live", "peers", "swarms"):
        window.show_page(page)
        qapp.processEvents()
        texts[page] = words_on(window.pages[page])
    assert "Training is not running. These are the peers of before." in texts["peers"]
    assert "Not connected" in texts["peers"]
    peers = window.pages["peers"]
    assert isinstance(peers, PeersPage)
    assert {peers._model.data(peers._model.index(row, 1)) for row in range(peers._model.rowCount())} == {"Gone"}
    assert "waiting" not in texts["home"]
    live = window.pages["live"]
    assert isinstance(live, LivePage)
    assert not any(words for *_, words in live._stepper._steps)
    assert "you included" not in texts["home"] + texts["swarms"]


def test_a_head_that_is_too_long_keeps_its_beginning_and_says_the_rest(window_told: TellWindow, written: list[AnyEvent]) -> None:
    page = window_told(written).pages.of(PeersPage)
    assert page._view.horizontalHeader().textElideMode() == Qt.TextElideMode.ElideRight
    head, tip = (
        page._model.headerData(6, Qt.Orientation.Horizontal, role)
        for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
    )
    assert head == "Mean reward"
    assert tip == "Mean reward: how right its answers were, 0 to 1"
