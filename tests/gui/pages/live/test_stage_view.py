"""Live opens on the stage: one question, its tries and its lesson, which stay while a person reads, and rounds to go back to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.recorded import PEERS, ready
from waggle.core import settings
from waggle.core.settings import ModelSettings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.live.page import ALL_ANSWERS, NOTHING, STAGE, LivePage
from waggle.gui.pages.live.question_card import QuestionCard
from waggle.gui.pages.live.round_stepper import SHORTEST_LINK
from waggle.gui.pages.live.scene_card import LONGEST_ANSWER, LONGEST_QUESTION
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.story.stage import DWELL, LINGER, beginning_of
from waggle.gui.state.story.tries import essence
from waggle.gui.theme.theme import LessMotion, Theme
from waggle.protocol import events
from waggle.protocol.state import AnyEvent, State, apply

TellWindow = Callable[..., MainWindow]
LONG = "If box 1 is open, then box 2 is closed. " * 60
GRID = "1 0 1\n0 1 0"


def completion(text: str, reward: float = 0.0) -> events.ShownCompletion:
    reason = "right" if reward else f"wrong: {text}"
    return events.ShownCompletion(
        text=f"<answer>{text}</answer>", judged=True, reward=reward, reason=reason, start=8, length=len(text)
    )


class Theatre:
    """A window on Live with a clock that the test moves; each round has one question."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.time = window, 0.0
        window.show_page("live")
        live = window.pages["live"]
        assert isinstance(live, LivePage)
        self.live, self.view = live, live.stage
        self.view.stage.clock = lambda: self.time
        self.scene = self.view._scene
        self.leave()

    def leave(self) -> None:
        """Move the pointer away from the stage."""
        QTest.mouseMove(self.window.windowHandle(), QPoint(20, 20))
        QApplication.processEvents()

    def take(self, *engine_events: AnyEvent) -> None:
        for event in engine_events:
            self.window._store.take(event)
        self.window._store.flush()

    def play(self, number: int, question: str = "", *answers: events.ShownCompletion, lessons: tuple[str, ...] = ()) -> None:
        answers = answers or (completion("1/2", 1.0), completion("1/3"), completion("1/2", 1.0))
        group = events.ShownGroup(
            key=f"me/{number}", specialty="Fractions", question=question or f"{number}?", completions=answers
        )
        blank = replace(group, completions=())
        moved = tuple(1 if answer.reward else -1 for answer in answers)
        effects = [events.Lesson(key=key, effects=moved) for key in (group.key, *lessons)]
        self.take(
            events.QuestionsDrawn(round=number, epoch=0, groups=(blank,), group_size=len(answers)),
            events.GroupsJudged(round=number, groups=(group,)),
            events.PolicyUpdated(round=number, step=1, metrics=events.Metrics(), lessons=tuple(effects)),
            events.RoundCompleted(summary=events.RoundSummary(round=number, at=1.0, reward=0.5, solved=0.5, seconds=1.0)),
        )

    def later(self, seconds: float) -> str:
        self.time += seconds
        self.window._store.flush()
        return self.asks

    @property
    def asks(self) -> str:
        return self.scene._question.accessibleName()

    @property
    def says(self) -> str:
        return self.live._line.words()


@pytest.fixture
def theatre(window_told: TellWindow) -> Theatre:
    return Theatre(window_told([ready(round=0), events.PhaseChanged(phase="contributing", round=0)]))


def test_live_opens_on_a_question_with_its_tries_merged_and_its_lesson(theatre: Theatre) -> None:
    assert theatre.live._views.currentIndex() == NOTHING
    otter = events.ShownGroup(
        key="p/1", specialty="Fractions", question="Simplify 4/6. Give only the fraction.", completions=(completion("2/3", 1.0),)
    )
    theatre.take(events.PeerGroupsArrived(origin=PEERS[0][0], name="Brisk Otter", round=1, model="m", groups=(otter,)))
    theatre.play(0, "Simplify 2/4.", lessons=("p/1",))
    assert theatre.live._views.currentWidget() is theatre.view
    assert theatre.asks == "Simplify 2/4."
    assert theatre.scene._tries.accessibleDescription() == "2 × 1/2: right, more likely next time. 1 × 1/3: wrong, less likely"
    assert theatre.scene._lesson.text() == "Your model learned from 1 question of its own and 1 example from Brisk Otter."
    teacher, *others = theatre.scene._teachers
    assert teacher._about.text() == "Simplify 4/6. → 2/3"
    assert not any(line.isVisible() for line in others)


def test_the_right_answer_stands_beside_tries_of_which_none_is_right(theatre: Theatre) -> None:
    wrong = completion("121")
    groups = tuple(
        events.ShownGroup(key=f"me/{place}", specialty="Sums", question=f"{place} + 1?", completions=(wrong, wrong), truth=truth)
        for place, truth in enumerate(("212", ""))
    )
    blank = tuple(replace(group, completions=()) for group in groups)
    theatre.take(events.QuestionsDrawn(round=0, epoch=0, groups=blank, group_size=2), events.GroupsJudged(round=0, groups=groups))
    assert theatre.scene._tries.accessibleDescription() == "2 × 121: wrong. right answer: 212"
    assert [line._question.words() for line in theatre.scene._others._lines if line.isVisible()] == []
    assert "Right answer: 212" in QuestionCard(theatre.live.theme, set()).as_text(theatre.window._store.state.cards[0])
    third = replace(groups[1], key="me/3", question="3 + 1?", completions=(completion("4", 1.0), wrong))
    drawn = events.QuestionsDrawn(round=1, epoch=0, groups=(*blank, replace(third, completions=())), group_size=2)
    theatre.take(drawn, events.GroupsJudged(round=1, groups=(*groups, third)))
    theatre.view._go_to(1)
    lines = [line for line in theatre.scene._others._lines if line.isVisible()]
    assert [(line._question.words(), line._right.words()) for line in lines] == [
        ("0 + 1?", "0 of 2 right"),
        ("1 + 1?", "0 of 2 right"),
    ]


def several(theatre: Theatre, count: int) -> list[str]:
    """Play a round of some questions, of which the first two are solved, and give the keys of its cards."""
    groups = tuple(
        events.ShownGroup(
            key=f"me/{n}", specialty="Sums", question=f"{n} + 1?", completions=(completion(f"{n + 1}", float(n < 2)),)
        )
        for n in range(count)
    )
    blank = tuple(replace(group, completions=()) for group in groups)
    theatre.take(events.QuestionsDrawn(round=0, epoch=0, groups=blank, group_size=1), events.GroupsJudged(round=0, groups=groups))
    return [group.key for group in groups]


def test_a_click_brings_another_question_of_the_round_onto_the_stage(theatre: Theatre, qtbot: QtBot) -> None:
    several(theatre, 4)
    first = theatre.asks
    line = next(line for line in theatre.scene._others._lines if line.isVisible())
    question = line._question.words()
    qtbot.mouseClick(line, Qt.MouseButton.LeftButton)
    assert (theatre.asks, line._question.words()) == (question, first)


def test_the_tries_of_unsolved_questions_stand_there_only_if_all_have_room(theatre: Theatre) -> None:
    several(theatre, 9)
    theatre.window.resize(1280, 1400)
    QApplication.processEvents()
    lines = [line for line in theatre.scene._others._lines if line.isVisible()]
    assert len(lines) == 8
    assert all(line.tries.isVisible() for line in lines)
    theatre.window.resize(1280, 820)
    QApplication.processEvents()
    lines = [line for line in theatre.scene._others._lines if line.isVisible()]
    assert [line.tries.isVisible() for line in lines] == [not line.is_fruitless for line in lines]
    assert [line.is_fruitless for line in lines].count(False) == 1


def test_questions_without_room_are_one_press_away(theatre: Theatre, qtbot: QtBot) -> None:
    several(theatre, 6)
    assert not theatre.scene._missing.isVisible()
    theatre.window.resize(1024, 600)
    QApplication.processEvents()
    listed = sum(line.isVisible() for line in theatre.scene._others._lines)
    assert 0 < listed < 5
    assert theatre.scene._missing.text() == f"{5 - listed} other questions"
    qtbot.mouseClick(theatre.scene._missing, Qt.MouseButton.LeftButton)
    assert theatre.live._views.currentIndex() == ALL_ANSWERS


def test_before_the_first_round_the_parts_of_the_start_stand_above_and_an_example_is_offered(
    window_told: TellWindow, qtbot: QtBot
) -> None:
    theatre = Theatre(window_told([events.Preparing(part="Loading the model", done=2, parts=5)]))
    stepper, nothing = theatre.live._stepper, theatre.live.nothing
    assert stepper.accessibleName() == "Looking for the model, Starting the answer checker, Loading the model"
    assert (nothing.says.text(), theatre.says) == ("Your model is getting ready.", ""), "the stepper says the part"
    assert nothing.when.text() == "Questions and answers appear here as soon as the first round begins."
    with qtbot.waitSignal(theatre.live.context.requests.example):
        qtbot.mouseClick(nothing._example, Qt.MouseButton.LeftButton)
    around = theatre.live._views
    assert nothing.height() <= nothing.sizeHint().height(), "it is as high as its content"
    assert abs(nothing.geometry().center().y() - around.height() / 2) < 20, "in the middle"


def test_while_the_first_test_runs_both_views_show_how_far_it_is(theatre: Theatre) -> None:
    theatre.take(events.HeldOutProgress(done=96, total=270))
    live, nothing = theatre.live, theatre.live.nothing
    for view in (STAGE, ALL_ANSWERS):
        live.show_view(view)
        assert nothing.isVisible()
        assert (nothing.says.text(), nothing.test.text()) == (
            "Your model is taking its first test.",
            "96 of 270 questions answered.",
        )
        assert nothing.bar.value() == round(nothing.bar.maximum() * 96 / 270)
        assert not any(control.isVisible() for control in live.answers.controls), "there is nothing to filter or to freeze"
    assert theatre.window.status._word.words() == "Testing"
    theatre.play(0)
    assert not nothing.isVisible()
    assert all(control.isVisible() for control in live.answers.controls)


def test_the_steps_are_of_the_running_round_and_the_card_is_of_one_that_is_finished(theatre: Theatre) -> None:
    theatre.play(0)
    assert theatre.scene._round.words() == "Last finished round: 1"
    blank = events.ShownGroup(key="me/1", specialty="Fractions", question="1?", completions=())
    theatre.take(events.QuestionsDrawn(round=1, epoch=0, groups=(blank,), group_size=2))
    assert theatre.live._stepper.accessibleName().startswith("Round 2: ")
    assert theatre.says == "Round 2: your model is answering"


def test_every_step_of_the_start_is_linked_to_the_next_one(theatre: Theatre) -> None:
    stepper = theatre.live._stepper
    for done in range(5):
        stepper.show_state(State(preparing=events.Preparing(part="Loading the model", done=done, parts=5)))
        for width in (1440, 1112, 862):
            stepper.resize(width, stepper.height())
            widths, bare = stepper.widths()
            spare = [
                wide - stepper._needed_width(step.title, step.words) for wide, step in zip(widths, stepper._steps, strict=True)
            ]
            assert bare or min(spare[:-1]) > SHORTEST_LINK + 6, (done, width)


def test_what_failed_can_be_tried_again_from_here(theme: Theme, qtbot: QtBot) -> None:
    live = LivePage(PageContext(theme, engine=EngineHost(can_start=lambda: True)))
    qtbot.addWidget(live)
    live.show_state(State(), 0.0)
    assert live.nothing.remedy.isHidden()
    failed = apply(State(), events.EngineFailed(title="The disk is full.", advice="Make room."))
    live.show_state(failed, 0.0)
    assert (live.nothing.remedy.text(), live._retry.isHidden()) == ("Try again", True)
    with qtbot.waitSignal(live.context.requests.engine_start):
        live.nothing.remedy.click()


def test_where_memory_ran_short_the_starter_is_offered_as_on_home(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    settings.change(path, {"model.name": "bees/large"})
    live = LivePage(PageContext(theme, settings=SettingsStore(path), engine=EngineHost(can_start=lambda: True)))
    qtbot.addWidget(live)
    short = events.EngineFailed(title="Too little memory.", advice="", short_of_memory=True)
    live.show_state(apply(State(), short), 0.0)
    assert live.nothing.remedy.text() == "Train Waggle's tiny starter"
    with qtbot.waitSignal(live.context.requests.engine_start):
        live.nothing.remedy.click()
    assert settings.read(path).model == ModelSettings()


def test_after_a_failure_the_last_round_stays_and_is_called_that(theatre: Theatre) -> None:
    theatre.play(0)
    theatre.take(events.EngineFailed(title="The disk is full.", advice="Make room."))
    assert theatre.says == "The disk is full. Below: round 1, the last one before that."
    assert theatre.asks == "0?"


def test_the_view_that_was_chosen_is_there_at_the_next_start(theatre: Theatre) -> None:
    live, context = theatre.live, theatre.live.context
    live._view.choose(ALL_ANSWERS)
    assert context.views == {"live": ALL_ANSWERS}
    assert LivePage(context)._view.index == ALL_ANSWERS
    context.views["live"] = 7  # of another version
    assert LivePage(context)._view.index == STAGE


def test_a_swift_model_changes_it_no_faster_than_a_person_reads(theatre: Theatre, qtbot: QtBot) -> None:
    theatre.play(0)
    for number in range(1, 20):
        theatre.play(number)
        assert theatre.asks == "0?"
    assert theatre.says.startswith("Round 21")
    theatre.time += DWELL
    qtbot.waitUntil(lambda: theatre.asks == "19?")  # also if no event comes any more


def test_it_never_changes_under_the_pointer_or_the_focus(theatre: Theatre, qtbot: QtBot) -> None:
    theatre.play(0)
    QApplication.processEvents()
    middle = theatre.scene.mapTo(theatre.window, theatre.scene.rect().center())
    QTest.mouseMove(theatre.window.windowHandle(), middle)
    QApplication.processEvents()
    theatre.play(1)
    assert theatre.later(10 * DWELL) == "0?"
    assert theatre.says == "Stage held while the pointer is on it. 1 newer round is waiting"
    theatre.leave()
    assert theatre.later(LINGER / 2) == "0?"
    assert theatre.later(LINGER) == "1?"
    theatre.window.activateWindow()
    theatre.view._strip.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(theatre.view._strip.hasFocus)
    theatre.play(2)
    assert theatre.later(10 * DWELL) == "1?"
    assert theatre.says.startswith("Stage held while you are in it. ")


def test_rounds_are_gone_back_to_by_keys_and_mouse_and_now_returns(theatre: Theatre, qtbot: QtBot) -> None:
    for number in range(4):
        theatre.play(number)
        theatre.later(DWELL)
    strip, back = theatre.view._strip, theatre.view._now_button
    assert (strip.value(), strip.maximum(), back.isVisible()) == (3, 3, False)
    qtbot.keyClick(strip, Qt.Key.Key_Left)
    assert theatre.asks == "2?"
    assert strip.accessibleDescription() == "Round 3: reward 0.50"
    qtbot.keyClick(strip, Qt.Key.Key_Home)
    assert theatre.asks == "0?"
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.cell(1).center().toPoint())
    assert theatre.asks == "1?"
    theatre.play(4)
    assert theatre.later(100 * DWELL) == "1?"
    assert theatre.says == "You went back to an earlier round. 3 newer rounds are waiting"
    qtbot.mouseClick(back, Qt.MouseButton.LeftButton)
    assert theatre.asks == "4?"
    assert QApplication.focusWidget() is not back
    assert not back.isVisible()
    theatre.leave()
    theatre.play(5)
    assert theatre.later(DWELL + LINGER) == "5?"


def test_rounds_are_remembered_while_another_page_is_open(theatre: Theatre) -> None:
    theatre.play(0)
    theatre.window.show_page("home")
    for number in range(1, 30):
        theatre.play(number)
    theatre.window.show_page("live")
    theatre.window._store.flush()
    assert theatre.asks == "29?"
    assert theatre.view._strip.maximum() == 29


def test_a_long_question_is_cut_and_can_be_read_whole_while_the_stage_waits(theatre: Theatre, qtbot: QtBot) -> None:
    theatre.play(0, LONG)
    question, reader = theatre.scene._question, theatre.scene._reader
    assert question.is_cut
    assert question.height() < theatre.view._area.viewport().height() / 2
    before = question.height()
    qtbot.mouseClick(reader, Qt.MouseButton.LeftButton)
    assert (question.is_cut, reader.text()) == (False, "Show less")
    assert question.height() > before
    theatre.play(1)
    assert theatre.later(10 * DWELL) == LONG
    qtbot.mouseClick(reader, Qt.MouseButton.LeftButton)
    assert question.is_cut
    theatre.leave()
    assert theatre.later(DWELL + LINGER) == "1?"
    assert not reader.isVisible()


def test_grids_and_words_of_strangers_are_tries_too(theatre: Theatre) -> None:
    theatre.play(0, f"Copy:\n{GRID}", completion(GRID, 1.0), completion("<b>bold</b>\u202e"))
    chips = theatre.scene._tries._chips
    assert [chip.each.grid is not None for chip in chips] == [True, False]
    description = "1 × 1 0 1 0 1 0: right, more likely next time. 1 × <b>bold</b>\ufffd: wrong, less likely"
    assert theatre.scene._tries.accessibleDescription() == description
    picture = theatre.scene._tries.grab().toImage()
    colours = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}
    assert theatre.live.theme.colour("good_soft").name() in colours


@pytest.mark.parametrize(("less_motion", "moves"), [("on", False), ("off", True)])
def test_a_lesson_is_seen_as_it_happens_unless_motion_is_reduced(
    theatre: Theatre, qtbot: QtBot, less_motion: LessMotion, moves: bool
) -> None:
    theatre.live.theme.less_motion = less_motion
    theatre.play(0)
    theatre.play(1)
    QApplication.processEvents()
    flight = theatre.scene._flight
    assert flight.isVisible() == moves
    assert len(flight._flights) == moves
    qtbot.waitUntil(lambda: not flight.isVisible())
    assert not flight._frames.isActive()


def test_a_long_example_of_a_stranger_is_cut_and_widens_nothing(theatre: Theatre) -> None:
    card = events.ShownGroup(key="p/1", specialty="Fractions", question="why" * 1300, completions=(completion("x" * 3000, 1.0),))
    theatre.take(events.PeerGroupsArrived(origin=PEERS[0][0], name="Brisk Otter", round=1, model="m", groups=(card,)))
    theatre.play(0, "Simplify 2/4.", lessons=("p/1",))
    about = theatre.scene._teachers[0]._about
    assert len(about.text().replace("\u200b", "")) <= LONGEST_QUESTION + LONGEST_ANSWER + len("… → …")
    assert about.minimumSizeHint().width() <= theatre.scene._lesson_side.width()


@pytest.mark.parametrize("wide", [True, False])
def test_the_example_of_a_peer_comes_from_its_picture(theatre: Theatre, qtbot: QtBot, wide: bool) -> None:
    theatre.live.theme.less_motion = "off"
    theatre.window.resize(1600 if wide else 1024, 900)
    theatre.take(events.PeerChanged(peer=events.PeerInfo(id=PEERS[0][0], name="Brisk Otter")))
    lessons = (f"{beginning_of(PEERS[0][0])}/logic/0/1",)
    theatre.play(0, lessons=lessons)
    theatre.play(1, lessons=lessons)
    flight, face = theatre.scene._flight, theatre.scene._teachers[0]._face
    qtbot.waitUntil(flight.isVisible)
    flight._advance()
    (theirs,) = [way for way in flight._flights if way.role == "peer"]
    assert theirs.start == QPointF(face.mapTo(theatre.scene, face.rect().center()))
    assert theatre.scene.rect().contains(theirs.start.toPoint())


def test_all_answers_is_one_press_away_and_back(theatre: Theatre, qtbot: QtBot) -> None:
    theatre.play(0)
    stage, feed = theatre.live._view.parts()
    assert not theatre.live.answers.freeze.isVisible()
    qtbot.mouseClick(feed, Qt.MouseButton.LeftButton)
    assert theatre.live._views.currentIndex() == ALL_ANSWERS
    assert theatre.live.answers.freeze.isVisible()
    assert [card._card.key for card in theatre.live.answers.feed._cards if card._card] == ["me/0"]
    qtbot.mouseClick(stage, Qt.MouseButton.LeftButton)
    assert theatre.live._views.currentIndex() == STAGE


def test_the_stage_of_before_goes_on_in_a_window_that_is_built_again(theatre: Theatre, window_told: TellWindow) -> None:
    theatre.play(0)
    theatre.play(1)
    theatre.view.stage.go_to(0)
    theatre.live.show_view(ALL_ANSWERS)
    other = Theatre(window_told([ready(round=0)]))
    other.live.take_over(theatre.live)
    assert other.live._views.currentIndex() == ALL_ANSWERS
    other.live.show_view(STAGE)
    assert other.asks == "0?"


def test_a_recording_that_starts_again_leaves_no_round(theatre: Theatre) -> None:
    theatre.play(0)
    theatre.live.forget_run()
    assert not theatre.view.stage.scenes


def test_an_answer_that_counts_for_nothing_because_of_its_tags_shows_them() -> None:
    twice = replace(completion("0"), text="<answer><answer>0</answer>", reason="several answers", start=0, length=0)
    stray = replace(completion("0"), text="<answer>0", reason="cut off", start=0, length=0)
    assert [essence(answer) for answer in (twice, stray)] == ["<answer><answer>0</answer>", "0"]
