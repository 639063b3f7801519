"""The chat: a message is visible at once, both answers grow side by side, and an unanswered message can be sent again."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QActionGroup
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QMenu, QWidget

from gui.answers import refuse, run_coroutines
from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.playground.blind_labels import TextBlock
from waggle.gui.pages.playground.chat import ChatView, first_messages, guesses_summary, model_notice
from waggle.gui.pages.playground.chat_turn import ChatTurn, Guess, ReplyTile
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.theme.theme import Theme
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events_chat import LONGEST, SENT, TURNS, ChatCleared, ChatOffer, Reply, Turn, TurnProgress
from waggle.protocol.state import AnyEvent, Card, State

Make = Callable[..., MainWindow]
OFFERED = ChatOffer(moments=(0, 64, 613), taught=True)
RUNNING: tuple[AnyEvent, ...] = (ready(), events.PhaseChanged(phase="paused", round=613))
Chat = tuple[MainWindow, ChatView, list[AnyCommand]]


def turn(words: str = "Hello", now: str = "Hi.", before: str = "22", **fields: object) -> Turn:
    replies = (Reply(rounds=613, text=now, ended=True), Reply(rounds=0, text=before, ended=True))
    return replace(Turn(words=words, replies=replies, finished=True), **fields)


def tell(window: MainWindow, *new_events: AnyEvent) -> None:
    for event in new_events:
        window._store.take(event)
    window._store.flush()


@pytest.fixture
def chat(window_told: Make) -> Chat:
    """The chat in a window with a paused engine, which still answers messages."""
    window = window_told(RUNNING)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("playground")
    window.pages.of(PlaygroundPage).which.choose(1)
    window.redraw()
    assert isinstance(sent[-1], commands.OfferChat)
    tell(window, OFFERED)
    return window, window.pages.of(PlaygroundPage).chat, sent


def boxes(view: ChatView) -> list[ChatTurn]:
    return [box for box in view.findChildren(ChatTurn) if not box.isHidden()]


def names(box: ChatTurn) -> list[str]:
    return [tile._who.words() for tile in box.findChildren(ReplyTile)]


def texts(box: ChatTurn) -> list[str]:
    return [tile.findChild(TextBlock).toPlainText() for tile in box.findChildren(ReplyTile)]  # type: ignore[union-attr]


def say(view: ChatView, words: str) -> None:
    view.message.setPlainText(words)
    QTest.keyClick(view.message, Qt.Key.Key_Return)


def test_enter_sends_and_shift_enter_begins_a_line(chat: Chat) -> None:
    _, view, sent = chat
    QTest.keyClicks(view.message, "Hello")
    QTest.keyClick(view.message, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(view.message, "there")
    assert isinstance(sent[-1], commands.OfferChat)
    QTest.keyClick(view.message, Qt.Key.Key_Return)
    assert sent[-1] == commands.SendMessage(id=sent[-1].id, words="Hello\nthere", number=0)
    assert view.message.toPlainText() == ""
    (box,) = boxes(view)
    assert texts(box) == ["", ""], "what was said is seen before anybody answers"


def test_answers_grow_under_their_names_and_the_next_message_takes_the_conversation_along(chat: Chat) -> None:
    window, view, sent = chat
    say(view, "Hello")
    tell(window, TurnProgress(number=0, turn=turn(now="H", before="", finished=False)))
    assert view.button.text() == "Stop"
    tell(window, TurnProgress(number=0, turn=turn()))
    (box,) = boxes(view)
    assert (names(box), texts(box)) == (["Now, 613 rounds", "Before any training"], ["Hi.", "22"])
    assert box.spoken_text() == "Now, 613 rounds: Hi. Before any training: 22", "for whoever listens"
    say(view, "And you?")
    assert sent[-1] == commands.SendMessage(id=sent[-1].id, words="And you?", number=1, earlier=(turn(),))
    tell(window, TurnProgress(number=1, turn=turn("And you?", left_out=1)))
    assert "1 earlier turn was left out" in boxes(view)[1]._note.words()


def test_a_long_conversation_takes_its_newest_turns_along_and_ends_in_words(chat: Chat) -> None:
    window, view, sent = chat
    tell(window, *(TurnProgress(number=number, turn=turn(str(number))) for number in range(TURNS - 1)))
    say(view, "last")
    command = sent[-1]
    assert isinstance(command, commands.SendMessage)
    assert (command.number, len(command.earlier), command.earlier[-1].words) == (TURNS - 1, SENT, str(TURNS - 2))
    tell(window, TurnProgress(number=TURNS - 1, turn=turn("last")))
    assert "as long as one can be" in view._message.words()
    assert not view.button.isEnabled()


def test_a_message_that_is_too_long_is_kept_and_not_sent(chat: Chat) -> None:
    _, view, sent = chat
    say(view, "x" * (LONGEST + 2))
    assert view._message.words() == "This message is 2 characters too long."
    assert isinstance(sent[-1], commands.OfferChat)
    assert len(view.message.toPlainText()) == LONGEST + 2
    view.message.setPlainText("x" * LONGEST)
    assert view.button.isEnabled()


def test_only_a_message_with_words_can_be_sent(chat: Chat) -> None:
    _, view, _ = chat
    assert not view.button.isEnabled()
    view.message.setPlainText("  \n")
    assert not view.button.isEnabled()
    view.message.setPlainText("Hello")
    assert view.button.isEnabled()


def test_what_was_not_answered_can_be_said_again(chat: Chat) -> None:
    window, view, _ = chat
    say(view, "Hello")
    refuse(window, "This model is too large.", "")
    assert (view.message.toPlainText(), boxes(view)) == ("Hello", [])
    assert view._message.words() == "This model is too large."
    say(view, "Hello")
    tell(window, TurnProgress(number=0, turn=turn(now="H", finished=False)), events.EngineGone(code=9, restarts=1))
    run_coroutines()
    assert (view.message.toPlainText(), boxes(view)) == ("Hello", []), "the engine is gone"
    assert not view.button.isEnabled()


def test_a_recording_answers_nothing_and_what_was_said_is_not_lost(chat: Chat) -> None:
    window, view, sent = chat
    window.show_replay()
    sent_before = len(sent)
    say(view, "Hello")
    assert (view.message.toPlainText(), boxes(view), len(sent)) == ("Hello", [], sent_before)
    assert view._empty.text() == "This is a recorded run: there is no model to ask."


def test_an_answer_is_stopped_by_its_button_or_by_escape_and_all_is_cleared(chat: Chat) -> None:
    window, view, sent = chat
    for stop in (view.button.click, lambda: QTest.keyClick(view, Qt.Key.Key_Escape)):
        say(view, "Hello")
        stop()
        assert isinstance(sent[-1], commands.StopReplies)
        tell(window, TurnProgress(number=0, turn=turn(stopped=True, replies=(Reply(rounds=613, text="H"), Reply(rounds=0)))))
        assert [tile._state.words() for tile in boxes(view)[0].findChildren(ReplyTile)] == ["stopped by you", "stopped by you"]
        assert texts(boxes(view)[0]) == ["H", "It said nothing."]
    view._clear.click()
    assert isinstance(sent[-1], commands.ClearChat)
    tell(window, ChatCleared())
    assert boxes(view) == []
    assert view._empty.isVisible()
    assert window.focusWidget() is view.message


def test_without_names_they_are_told_after_a_choice(chat: Chat) -> None:
    window, view, _ = chat
    view.blind.setChecked(True)
    say(view, "Hello")
    tell(window, TurnProgress(number=0, turn=turn(finished=False)))
    (box,) = boxes(view)
    assert not box._question.isVisible()
    tell(window, TurnProgress(number=0, turn=turn()))
    assert box._question.isVisible()
    assert names(box) == ["Answer A", "Answer B"]
    assert box.guess is not None
    box._asks[box.guess.now].click()
    assert sorted(names(box)) == ["Before any training", "Now, 613 rounds"]
    assert texts(box)[box.guess.now] == "Hi."
    assert view._tally.words() == "1 of 1 guess was right."
    say(view, "More")
    tell(window, TurnProgress(number=1, turn=turn("More")))
    assert names(boxes(view)[1]) == ["Answer A", "Answer B"]
    view.blind.setChecked(False)
    assert "Before any training" in names(boxes(view)[1]), "whoever wants names gets them"


def test_the_same_answer_of_both_leaves_nothing_to_guess(chat: Chat) -> None:
    window, view, _ = chat
    view.blind.setChecked(True)
    say(view, "Hello")
    tell(window, TurnProgress(number=0, turn=turn(now="<answer>22</answer>", before="22")))
    (box,) = boxes(view)
    assert (box._question.isVisible(), box._same.isVisible()) == (False, True)
    assert sorted(names(box)) == ["Before any training", "Now, 613 rounds"]
    assert view._tally.words() == ""


def test_who_cannot_tell_has_not_guessed() -> None:
    guesses = [Guess(now=1, chosen=-1), Guess(now=0, chosen=0), Guess(now=0, chosen=1), Guess(now=0)]
    assert guesses_summary(guesses) == "1 of 2 guesses were right."
    assert guesses_summary([]) == ""


def test_the_model_of_before_is_chosen_among_those_that_are_kept(chat: Chat) -> None:
    window, view, sent = chat
    menu = view._moments.menu()
    assert [action.text() for action in menu.actions()] == ["Before any training", "After 64 rounds"]
    menu.actions()[1].trigger()
    assert view._moments.text() == "Compared with: After 64 rounds"
    say(view, "Hello")
    command = sent[-1]
    assert isinstance(command, commands.SendMessage)
    assert command.before == 64
    tell(window, TurnProgress(number=0, turn=turn()))
    assert not view._moments.isEnabled(), "a conversation is with two models"
    assert "Clear this conversation" in view._about.words()
    tell(window, ChatOffer(moments=(0, 64, 613), taught=False))
    assert view._moments.isEnabled(), "each message is read without the ones before"
    tell(window, ChatCleared(), ChatOffer(moments=(0, 700), taught=True))
    assert view._moments.text() == "Compared with: Before any training"


def test_the_menu_of_moments_is_filled_anew_and_not_made_anew(chat: Chat, qapp: QApplication) -> None:
    window, view, _ = chat
    for newest in range(614, 620):
        tell(window, ChatOffer(moments=(0, 64, newest), taught=True))
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    (menu,) = view._moments.findChildren(QMenu)
    assert [action.text() for action in menu.actions()] == ["Before any training", "After 64 rounds"]
    assert len(menu.findChildren(QActionGroup)) == 1


@pytest.mark.parametrize("spoken", ["en", "de"])
def test_no_button_above_the_conversation_is_cut_in_a_small_window(window_told: Make, theme: Theme, spoken: Language) -> None:
    translator.use(spoken)
    theme.set_text(130)
    try:
        window = window_told((*RUNNING, OFFERED), 960, 600)
        window.show_page("playground")
        window.pages.of(PlaygroundPage).which.choose(1)
        screenshot_when_still(window)
        chat = window.pages.of(PlaygroundPage).chat
        for button in chat.tools.findChildren(QAbstractButton):
            assert button.width() >= button.sizeHint().width(), button.text()
        assert chat.tools.mapTo(window, chat.tools.rect().bottomRight()).x() <= window.width()
        assert tr("Compared with: %1").partition("%")[0] in chat._moments.accessibleName()
    finally:
        translator.use("en")


def test_it_is_said_what_a_model_cannot_do() -> None:
    state = State(ready=ready(), offered=replace(OFFERED, taught=False))
    assert "won't chat well" in model_notice(state)
    assert "never taught to chat" in model_notice(replace(state, ready=ready(parameters=500_000_000)))
    assert "the same model" in model_notice(replace(state, offered=replace(OFFERED, moments=(0,))))
    assert model_notice(replace(state, offered=OFFERED)) == ""


def test_what_a_model_says_is_never_markup_and_never_wider_than_its_place(chat: Chat, qapp: QApplication) -> None:
    window, view, _ = chat
    tell(window, TurnProgress(number=0, turn=turn(now="<b>x</b>\u202e\n" + "y" * 900)))
    qapp.processEvents()
    (box,) = boxes(view)
    first = box.findChild(ReplyTile).findChild(TextBlock)  # type: ignore[union-attr]
    assert first.toPlainText().startswith("<b>x</b>\ufffd\nyyy")
    assert first.height() > 6 * first.fontMetrics().lineSpacing(), "all of it is seen"
    assert view.width() <= window.width()
    focusable = [widget for widget in view.findChildren(QWidget) if widget.focusPolicy() & Qt.FocusPolicy.TabFocus]
    assert first in focusable, "an answer can be read and copied by keyboard"
    assert [widget for widget in focusable if not widget.accessibleName() and not widget.objectName().startswith("qt_")] == []


def test_a_chat_begins_with_short_questions_of_the_swarm_and_a_press_sends_one(chat: Chat) -> None:
    _window, view, sent = chat
    questions = [("Logic", "Is it so?"), ("Logic", "Is it?"), ("Sums", "2 + 3?"), ("Stories", "long " * 40)]
    cards = tuple(
        Card(key=str(i), round=1, at=0.0, specialty=specialty, question=question, completions=())
        for i, (specialty, question) in enumerate(questions)
    )
    assert first_messages(State(cards=cards)) == ("Is it?", "2 + 3?", "What is 7 × 6?")
    view._firsts[1].click()
    assert isinstance(sent[-1], commands.SendMessage)
    assert sent[-1].words == view._firsts[1].accessibleName() == "Simplify the fraction 12/18."
    assert not view._beginning.isVisible()
