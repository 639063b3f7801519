"""The page Live with a model much faster than a person: cards that are read, pointed at or pressed stay in place."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.status_card import progress_words
from waggle.gui.pages.live.page import ALL_ANSWERS, NOTHING, STAGE, LivePage
from waggle.gui.pages.live.question_card import QuestionCard, merged_answers
from waggle.gui.pages.live.round_stepper import RoundStepper
from waggle.gui.state.story.feed_pacing import LINGER, SHORTEST_STAY, learned_from_first
from waggle.gui.state.story.round_steps import TITLES
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.painted_widgets import PaintedWidget, StageProgress
from waggle.gui.widgets.typeset.highlighted_text import lines_of
from waggle.protocol import events
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.state import STAGES, Card, Stage, State

LONG = "step by step " * 200
AWAY = QPoint(20, 20)  # from the feed
TellWindow = Callable[..., MainWindow]


def show_all_answers(window: MainWindow) -> LivePage:
    """Open the feed of Live."""
    window.show_page("live")
    live = window.pages["live"]
    assert isinstance(live, LivePage)
    live.show_view(ALL_ANSWERS)
    return live


def judged_answers(*lengths: int) -> tuple[events.ShownCompletion, ...]:
    """Answers of so many characters: the first is right, so that their card is no single line, and the others are wrong."""
    wrong = [events.ShownCompletion(text=LONG[:length], judged=True, reason=f"wrong: {i}") for i, length in enumerate(lengths)]
    return (replace(wrong[0], reward=1.0, reason="right"), *wrong[1:])


class Swift:
    """A window on Live that gets whole rounds of eight questions; `later` moves the clock that paces the feed."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.time, self.round = window, 0.0, 0
        live = show_all_answers(window)
        self.live, self.feed = live, live.answers.feed
        live.answers.pace.clock = lambda: self.time
        self.play()

    def play(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.round += 1
            blank = tuple(
                events.ShownGroup(key=f"{self.round}/{i}", specialty="Logic", question=f"Which, {self.round} or {i}?")
                for i in range(8)
            )
            self.window._store.take(events.QuestionsDrawn(round=self.round, epoch=1, groups=blank, group_size=4))
        self.window._store.flush()

    def judge(self) -> None:
        answers = judged_answers(*4 * [len(LONG)])
        judged = tuple(
            events.ShownGroup(key=f"{self.round}/{i}", specialty="Logic", question="Which?", completions=answers)
            for i in range(8)
        )
        self.window._store.take(events.GroupsJudged(round=self.round, groups=judged))
        self.window._store.flush()

    def later(self, seconds: float) -> None:
        self.time += seconds
        self.window._store.flush()

    def settle(self, qtbot: QtBot) -> None:
        """Wait until each card has its widget in place."""
        qtbot.waitUntil(lambda: not self.feed._later.isActive())
        QApplication.processEvents()

    @property
    def keys(self) -> list[str]:
        return [card._card.key for card in self.feed._cards if card._card and not card.isHidden()]

    @property
    def says(self) -> str:
        return self.live._line.words()


def test_whoever_comes_back_finds_the_newest_whatever_was_open_before(swift: Swift, qtbot: QtBot) -> None:
    swift.judge()
    swift.settle(qtbot)
    swift.feed._cards[0]._toggle()
    swift.later(SHORTEST_STAY + LINGER)
    swift.play()
    assert swift.keys[0].startswith("1/"), "an open card holds the feed"
    swift.window.show_page("home")
    swift.play()
    swift.window.show_page("live")
    swift.window._store.flush()
    swift.settle(qtbot)
    assert swift.keys[0].startswith("3/")


@pytest.fixture
def swift(window_told: TellWindow, qtbot: QtBot) -> Swift:
    swift_feed = Swift(window_told([ready(round=0), events.PhaseChanged(phase="contributing", round=0)]))
    swift_feed.settle(qtbot)
    rest_on(swift_feed.window, AWAY)
    return swift_feed


def rest_on(window: MainWindow, place: QPoint) -> None:
    """Move the pointer there, as a hand does."""
    QTest.mouseMove(window.windowHandle(), place)
    QApplication.processEvents()


def test_cards_stand_for_as_long_as_it_takes_to_look_and_go_on_growing(swift: Swift) -> None:
    assert swift.keys == [f"1/{i}" for i in range(8)]
    swift.judge()
    assert all(answer.judged for card in swift.feed._cards if card._card for answer in card._card.completions)
    swift.play(3)
    swift.later(SHORTEST_STAY / 2)
    assert swift.keys == [f"1/{i}" for i in range(8)]
    assert "Round 5" in swift.says, "nothing is held: they only stand for a moment"
    swift.later(SHORTEST_STAY / 2)
    assert swift.keys[0] == "4/0"


def test_nothing_that_waits_is_forgotten_when_the_swarm_falls_silent(swift: Swift, qtbot: QtBot) -> None:
    swift.play()
    swift.time += SHORTEST_STAY
    qtbot.waitUntil(lambda: swift.keys[0] == "2/0")


def test_the_card_under_the_pointer_is_the_one_that_is_pressed(swift: Swift, qtbot: QtBot) -> None:
    swift.judge()
    swift.settle(qtbot)  # its button has come
    top = swift.feed._cards[0]
    place = top._reader.mapTo(swift.window, top._reader.rect().center())
    rest_on(swift.window, place)
    for _ in range(20):
        swift.play()
        swift.later(SHORTEST_STAY)
    assert swift.keys[0] == "1/0"
    assert swift.says.startswith("Feed held while the pointer is on it. ")
    QTest.mouseClick(swift.window.windowHandle(), Qt.MouseButton.LeftButton, pos=place)
    assert swift.feed._opened == {"1/0"}
    rest_on(swift.window, AWAY)
    swift.later(LINGER + SHORTEST_STAY)
    assert swift.keys[0] == "1/0"
    assert swift.says.startswith("Feed held while a card is open. ")
    top._reader.click()
    swift.later(LINGER)
    assert swift.keys[0] == "21/0"
    assert swift.says == "Round 22: your model is answering"


def test_a_pointer_that_only_passes_or_slips_turns_nothing(swift: Swift) -> None:
    inside = swift.feed.mapTo(swift.window, swift.feed.rect().center())
    swift.play()
    rest_on(swift.window, inside)
    swift.later(SHORTEST_STAY / 2)
    assert swift.says.startswith("Round 3"), "no newer card was due"
    swift.later(SHORTEST_STAY / 2)
    sentence = swift.says
    assert sentence == "Feed held while the pointer is on it. 8 newer questions are waiting"
    rest_on(swift.window, AWAY)
    swift.later(LINGER / 2)
    assert (swift.keys[0], swift.says) == ("1/0", sentence)
    rest_on(swift.window, inside)
    swift.later(LINGER / 2)
    assert (swift.keys[0], swift.says) == ("1/0", sentence)


def test_the_keyboard_and_the_scroll_bar_hold_it_too(swift: Swift, qtbot: QtBot) -> None:
    swift.judge()
    swift.settle(qtbot)
    swift.window.activateWindow()
    reader = swift.feed._cards[0]._reader
    reader.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is reader)
    swift.play()
    swift.later(SHORTEST_STAY)
    assert swift.says.startswith("Feed held while you are in it. ")
    bar = swift.feed.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(50)
    swift.live.answers.freeze.setFocus(Qt.FocusReason.TabFocusReason)
    swift.later(LINGER)
    assert swift.says.startswith("Feed held while it is scrolled down. ")
    bar.setValue(0)
    swift.later(LINGER)
    assert swift.keys[0] == "2/0"


def test_a_click_leaves_no_focus_behind_that_would_hold_it(swift: Swift, qtbot: QtBot) -> None:
    swift.judge()
    swift.settle(qtbot)
    swift.window.activateWindow()
    qtbot.waitUntil(swift.window.isActiveWindow)
    before = QApplication.focusWidget()
    for _ in range(2):  # opened, and closed again
        qtbot.mouseClick(swift.feed._cards[0]._reader, Qt.MouseButton.LeftButton)
    assert not swift.feed._opened
    assert QApplication.focusWidget() is before


def test_what_is_frozen_is_what_was_seen(swift: Swift) -> None:
    swift.play(2)
    swift.live.answers.freeze.setChecked(True)
    swift.later(10 * SHORTEST_STAY)
    assert swift.keys[0] == "1/0"
    assert swift.says == "Feed held. 16 newer questions are waiting"
    swift.live.answers.freeze.setChecked(False)
    assert swift.keys[0] == "3/0"


def test_another_swarms_cards_are_held_for_nobody(swift: Swift) -> None:
    swift.feed._cards[0]._toggle()
    swift.window._store.take(StartedAgain(reason="Another swarm was chosen."))
    swift.window._store.flush()
    assert not swift.keys


def test_equal_answers_stand_as_one_once_they_are_judged(theme: Theme, qtbot: QtBot) -> None:
    answer = events.ShownCompletion(text="<answer>1/1</answer>", judged=True, reward=1.0, reason="right", start=8, length=3)
    other = events.ShownCompletion(text="9", judged=True, reason=events.UNTAGGED)
    group = Card(key="k", round=1, at=1.0, specialty="s", question="q", completions=(answer, other, answer, answer))
    assert [count for *_, count in merged_answers(group)] == [3, 1]
    assert [count for *_, count in merged_answers(replace(group, effects=(1, 0, 1, 0)))] == [2, 1, 1], "learned from differently"
    writing = replace(group, completions=(replace(answer, judged=False),) * 4)
    assert [count for *_, count in merged_answers(writing)] == [1] * 4, "while they are written, none jumps"
    question_card = QuestionCard(theme, set())
    qtbot.addWidget(question_card)
    question_card.show_card(group, State(round=2), 2.0)
    assert question_card._tries.accessibleDescription() == "3 × 1/1: right. 1 × 9: right, wrong format"
    assert question_card._right.words() == "3 of 4 right"
    question_card._toggle()
    names = [tile.accessibleName() for tile in question_card._tiles if not tile.isHidden()]
    assert names == ["right  ×3: <answer>1/1</answer>", "right, wrong format: 9"]
    assert question_card.as_text(group).count("<answer>1/1</answer>") == 3, "a copy has all of them"


def test_what_a_card_says_is_copied_as_plain_text(swift: Swift) -> None:
    answers = (
        events.ShownCompletion(text="So it is\n<b>7</b>.\u202e", judged=True, reward=1.0, reason="right"),
        events.ShownCompletion(text="9", judged=True, reason="wrong: 9"),
        events.ShownCompletion(text="", judged=True, reason="no answer tag"),
    )
    group = events.ShownGroup(key="p/1", specialty="Logic", question="Which?\nThis\u200b?", completions=answers)
    swift.window._store.take(events.PeerGroupsArrived(origin="p", name="Brisk\nOtter", round=7, model="m", groups=(group,)))
    lesson = events.Lesson(key="p/1", effects=(1, -1, 0))
    swift.window._store.take(events.PolicyUpdated(round=1, step=1, metrics=events.Metrics(), lessons=(lesson,)))
    swift.later(SHORTEST_STAY)
    top = swift.feed._cards[0]
    (copy,) = top._menu.actions()
    copy.trigger()
    head, *rest = QGuiApplication.clipboard().text().split("\n\n")
    assert head.startswith("Brisk Otter, Logic, round 8, ")
    assert rest == [
        "Which?\nThis\ufffd?",
        "1. right  \u2191\nSo it is\n<b>7</b>.\ufffd",
        "2. wrong: 9  \u2193\n9",
        "3. no answer tag",
        "Judged again on this computer. 1 answer more likely next time, 1 less likely.  1 of 3 right",
    ]
    assert not QGuiApplication.clipboard().mimeData().hasHtml()


@pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of a menu
def test_a_right_click_opens_the_menu_alone_and_the_feed_waits_for_it(swift: Swift, qtbot: QtBot) -> None:
    swift.judge()
    top = swift.feed._cards[0]
    place = top._tries.rect().center()
    QTest.mouseClick(top._tries, Qt.MouseButton.RightButton, pos=place)
    right_click = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, top._tries.mapToGlobal(place))
    QApplication.sendEvent(top._tries, right_click)
    assert top._menu.isVisible()
    assert not swift.feed._opened
    swift.play()
    swift.later(SHORTEST_STAY)
    assert swift.keys[0] == "1/0"
    top._menu.close()
    swift.later(LINGER)
    assert swift.keys[0] == "2/0"


def test_each_card_and_each_of_its_buttons_is_told_apart_by_its_question(swift: Swift) -> None:
    swift.judge()
    names = [(card.accessibleName(), card._reader.accessibleName(), card._more.accessibleName()) for card in swift.feed._cards]
    assert names[:2] == [(f"You: {q}", f"Show full answers: {q}", f"More: {q}") for q in ("Which, 1 or 0?", "Which, 1 or 1?")]
    swift.feed._cards[1]._reader.click()
    assert swift.feed._cards[1]._reader.accessibleName() == "Show less: Which, 1 or 1?"


def arrived(*lengths: int) -> events.PeerGroupsArrived:
    """A short question of a peer whose answers have so many characters and arrive at once."""
    answers = judged_answers(*lengths)
    group = events.ShownGroup(key=f"p/{lengths}", specialty="Logic", question="Which?", completions=answers)
    return events.PeerGroupsArrived(origin="p", name="Otter", round=7, model="m", groups=(group,))


def is_cut(card: QuestionCard) -> bool:
    """Whether an answer needs more room than it has: more width in a closed card, more lines in an open one."""
    tiles = [tile for tile in card._tiles if tile.isVisible()]
    if tiles:
        return any(lines_of(tile.theme, tile._words(), tile.width() - 20, 99) > tile._lines for tile in tiles)
    chips, metrics = card._tries._chips, QFontMetricsF(card._theme.font("body"))
    return any(metrics.horizontalAdvance(chip.each.text.strip()) > chip.size.width() for chip in chips)


def test_an_answer_that_is_cut_can_be_read_whole_also_in_a_card_that_is_new(window_told: TellWindow, qtbot: QtBot) -> None:
    """Parts of a card are wider before their first layout than after it."""
    story = [arrived(30, length, 40, 30) for length in (30, 55, 62, 75, 100, 137)]
    swift = Swift(window_told([ready(round=0), *story], 1024, 640))
    swift.settle(qtbot)
    cut = [is_cut(card) for card in swift.feed._cards]
    assert sum(cut) == 3
    assert [card._reader.isVisible() for card in swift.feed._cards] == cut


def test_a_card_that_is_open_stays_whole_in_a_window_that_becomes_narrower_and_settles(swift: Swift, qtbot: QtBot) -> None:
    swift.window.resize(1500, 640)
    swift.window._store.take(arrived(137, 62, 40, 100))
    swift.later(SHORTEST_STAY)
    swift.settle(qtbot)
    card = swift.feed._cards[0]
    card._reader.click()
    assert not is_cut(card)
    before = card._tiles[0]._lines
    swift.window.resize(900, 640)
    for _ in range(5):  # the rail becomes narrow, which leaves more room again
        QApplication.processEvents()
    assert not is_cut(card)
    assert card._tiles[0]._lines > before
    counted = Arrangements(card)
    for _ in range(5):
        QApplication.processEvents()
    assert counted.number == 0, "nothing goes on being arranged"


class Arrangements(QObject):
    """How often a widget is asked to lay out its parts."""

    def __init__(self, widget: QuestionCard) -> None:
        super().__init__()
        self.number = 0
        widget.installEventFilter(self)

    def eventFilter(self, _widget: QObject, event: QEvent) -> bool:
        self.number += event.type() == QEvent.Type.LayoutRequest
        return False


def test_reading_all_is_offered_and_withdrawn_as_a_card_is_made_narrower_and_wider(theme: Theme, qtbot: QtBot) -> None:
    answers = judged_answers(70, 70, 70, 70)
    room = QWidget()
    qtbot.addWidget(room)
    card = QuestionCard(theme, set())
    card.setParent(room)
    card.resize(1700, 300)
    room.show()
    card.show_card(Card(key="k", origin="p", round=1, at=0.0, specialty="s", question="q", completions=answers), State(), 0.0)
    for width, cut in ((1700, False), (900, True), (1700, False), (900, True)):
        card.resize(width, 300)
        QApplication.processEvents()
        assert (is_cut(card), card._reader.isVisible()) == (cut, cut)


def test_a_card_without_a_try_worth_a_look_is_a_line_that_a_click_opens(theme: Theme, qtbot: QtBot) -> None:
    wrong = tuple(events.ShownCompletion(text=f"{i}", judged=True, reason=f"wrong: {i}") for i in range(4))
    folded = Card(key="k", round=1, at=0.0, specialty="s", question="Which?", completions=wrong, truth="7")
    room = QWidget()
    qtbot.addWidget(room)
    card = QuestionCard(theme, set())
    card.setParent(room)
    card.resize(1100, 300)
    room.show()
    card.show_card(folded, State(round=2), 0.0)
    low = card.sizeHint().height()
    assert (card._brief.isVisible(), card._brief.words(), card._tries.isVisible()) == (True, "Which?", False)
    QTest.mouseClick(card, Qt.MouseButton.LeftButton)
    assert (card._brief.isVisible(), card._question.isVisible(), card._tries.isVisible()) == (False, True, True)
    assert card._foot.words() == "No answer stood out, so nothing was learned."
    assert card.sizeHint().height() > low
    card._reader.click()
    assert (card._brief.isVisible(), card._tries.isVisible()) == (True, False)
    for better in (replace(wrong[0], reward=1.0, reason="right"), replace(wrong[0], reason=events.UNTAGGED)):
        card.show_card(replace(folded, completions=(better, *wrong[1:])), State(round=2), 0.0)
        assert not card._brief.isVisible()


def test_of_each_round_the_questions_that_were_learned_from_come_first() -> None:
    def card(key: str, number: int, *effects: int) -> Card:
        return Card(key=key, round=number, at=0.0, specialty="s", question="q", completions=(), effects=effects)

    newest = (card("a", 2), card("b", 2, 0, 1), card("c", 2, 0), card("d", 1), card("e", 1, -1))
    assert "".join(each.key for each in learned_from_first(newest)) == "baced"


def is_honey(widget: PaintedWidget) -> bool:
    picture, honey = widget.grab().toImage(), widget.theme.colour("accent")
    return any(picture.pixelColor(x, y) == honey for x in range(picture.width()) for y in range(picture.height()))


@pytest.mark.parametrize("phase", ["paused", "waiting"])
@pytest.mark.parametrize("stage", STAGES)
def test_what_is_held_says_where_it_stands_and_nothing_in_honey(theme: Theme, phase: events.Phase, stage: Stage) -> None:
    going = State(phase="contributing", stage=stage, questions_drawn=8, answers_expected=64)
    stopped = replace(going, phase=phase)
    assert progress_words(stopped)[0].startswith(f"Stopped at: {TITLES[stage]}")
    done = progress_words(stopped)[1:]
    assert done == (STAGES.index(stage), len(STAGES))
    assert progress_words(going) == ("", 0, 0), "the sentence says it"
    stepper, cells = RoundStepper(theme), StageProgress(theme)
    stepper.resize(900, 40)
    for state in (going, stopped):
        stepper.show_state(state)
        cells.show_stage(*done, paused=state is stopped)
        assert is_honey(stepper) == (state is going)
        assert is_honey(cells) == (state is going and stage != "draw")
    assert not {"picking", "judging", "sharing"} & set(stepper.accessibleName().split())


@pytest.mark.parametrize(
    ("phase", "round_", "when"),
    [
        ("contributing", 0, "as soon as the first round begins"),
        ("paused", 33, "when you resume"),
        ("waiting", 33, "as soon as the next round begins"),
        ("contributing", 33, "as soon as the next round begins"),
    ],
)
def test_an_empty_feed_says_when_something_comes(theme: Theme, qtbot: QtBot, phase: events.Phase, round_: int, when: str) -> None:
    live = LivePage(PageContext(theme))
    qtbot.addWidget(live)
    live.show_state(State(phase=phase, round=round_, ready=ready(round=round_)), 0.0)
    for view in (STAGE, ALL_ANSWERS):
        live.show_view(view)
        assert live._views.currentIndex() == NOTHING
        assert live.nothing.when.text() == f"Questions and answers appear here {when}."


def test_after_a_failure_the_reason_stands_where_questions_would(window_told: TellWindow) -> None:
    failed = events.EngineFailed(title="Training stopped.", advice="This computer may have too little memory for this model.")
    window = window_told([ready(round=0), failed])
    window.show_page("live")
    when = window.pages.of(LivePage).nothing.when.text()
    assert when.startswith("This computer may have too little memory for this model. ")
    assert when.endswith(" Questions and answers appear here when training runs again.")


def test_a_heading_says_whose_questions_follow_and_of_which_round(swift: Swift, qtbot: QtBot) -> None:
    def headings() -> list[str]:
        both = zip(swift.feed._headings, swift.feed._cards, strict=True)
        visible = [heading.text() if heading.isVisible() else "" for heading, card in both if not card.isHidden()]
        return [", ".join(words.split(", ")[:2]) for words in visible]  # without the time

    swift.judge()
    swift.later(SHORTEST_STAY + LINGER)
    swift.settle(qtbot)
    assert headings() == ["Your model, round 2", *7 * [""]], "people count from 1"
    own = swift.feed._cards[0]
    assert [part.isVisible() for part in (own._face, own._who, own._when)] == 3 * [False]
    swift.window._store.take(arrived(3, 4))
    swift.later(SHORTEST_STAY + LINGER)
    swift.settle(qtbot)
    assert headings()[:3] == ["From peers", "Your model, round 2", ""]
    theirs = swift.feed._cards[0]
    assert (theirs._face.isVisible(), theirs._who.words()) == (True, "Otter")
    assert theirs._when.words().startswith("round 8")
