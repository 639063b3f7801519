"""Invented events for screenshots that no recording has: an answered question, and a race and a conversation in every state."""

import math
from collections.abc import Callable, Iterator, Mapping

from gui.answers import answer
from waggle.core.message import Message
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.playground.chat import ChatView
from waggle.gui.pages.playground.page import PlaygroundPage
from waggle.gui.pages.playground.race import RaceView
from waggle.protocol import events_chat, events_race
from waggle.protocol.events import RIGHT, UNTAGGED, ShownCompletion
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed, SnapshotAnswer
from waggle.protocol.state import AnyEvent
from waggle.tasks.shipped_swarms import first_swarm

RACERS, ROUNDS, MOMENTS = 4, 80, (0, 1, 2, 4, 8, 16, 32, 64, 128, 217)
LONG = "x" * 180  # one word, wider than any line


def _raced(rounds: int) -> Iterator[events_race.RaceEvent]:
    titles = tuple(specialty.title for specialty in first_swarm().specialties)
    yield events_race.RaceBegan(rounds=ROUNDS, racers=RACERS, specialties=titles)
    for number in range(1, rounds + 1):
        rise = 1 / (1 + math.exp(-(number - 30) / 7)) - 1 / (1 + math.exp(29 / 7))  # 0 in the first round of both
        wave = 0.05 * rise * math.sin(number * 1.7)
        yield events_race.RoundRaced(
            round=number, alone=0.03 + 0.05 * rise, sharing=0.03 + 0.25 * rise + max(0, wave), seconds=number * 1.9
        )
        place = number // 3 - 1
        if number % 3 == 0 and place < RACERS * len(titles):
            racer, specialty = place % RACERS, place // RACERS
            teacher = None if racer == 0 else 0
            yield events_race.FirstSolved(lane="sharing", round=number, racer=racer, specialty=specialty, learned_from=teacher)
        if number % 12 == 0:
            yield events_race.FirstSolved(lane="alone", round=number, racer=number // 12 % RACERS, specialty=number // 12)


def _take(view: RaceView, rounds: int) -> None:
    for event in _raced(rounds):
        view.take(event)


def _won(view: RaceView) -> None:
    _take(view, ROUNDS)
    view.take(events_race.Examined(alone=61, sharing=219, total=864))


def _failed(view: RaceView) -> None:
    _take(view, 17)
    title, advice = Message("There is too little free memory for the race."), Message("Close other programs, then race again.")
    view.take(events_race.RaceFailed(title=title, advice=advice))


RACES: Mapping[str, Callable[[RaceView], None]] = {
    "idle": lambda view: None,
    "running": lambda view: _take(view, 48),
    "failed": _failed,
    "done": _won,
}


def _turn(words: str, now: str, before: str, *, finished: bool = True, stopped: bool = False) -> events_chat.Turn:
    replies = (
        events_chat.Reply(rounds=MOMENTS[-1], text=now, ended=finished),
        events_chat.Reply(rounds=0, text=before, ended=not stopped),
    )
    return events_chat.Turn(words=words, replies=replies, finished=finished, stopped=stopped)


def _tell(window: MainWindow, *events: AnyEvent) -> None:
    for event in events:
        window._store.take(event)
    window._store.flush()


def _first(*, finished: bool = True) -> events_chat.TurnProgress:
    now = "<answer>3/7</answer>" if finished else "<answer>3"
    return events_chat.TurnProgress(number=0, turn=_turn("Simplify the fraction 36/84.", now, "3/7", finished=finished))


def _grown(window: MainWindow, _view: ChatView) -> None:
    second = _turn("Hello, who are you?\nTell me about yourself.", "<answer>22</answer>", f"22 {LONG}", stopped=True)
    _tell(window, _first(), events_chat.TurnProgress(number=1, turn=second))


def _writing(window: MainWindow, view: ChatView) -> None:
    view.message.setPlainText(_first().turn.words)
    view.message.sent.emit()
    _tell(window, _first(finished=False))


def _guessed(window: MainWindow, view: ChatView) -> None:
    view.blind.setChecked(True)
    other = _turn("Which fraction is larger, 2/3 or 3/4?", "<answer>3/4</answer>", "2/3")
    _tell(window, _first(), events_chat.TurnProgress(number=1, turn=other))


def _too_long(window: MainWindow, view: ChatView) -> None:
    _tell(window, _first())
    view.message.setPlainText("why " * 600)


TALKS: Mapping[str, Callable[[MainWindow, ChatView], None]] = {
    "empty": lambda window, view: None,
    "writing": _writing,
    "turns": _grown,
    "guess": _guessed,
    "long": _too_long,
}


def _answer(text: str, reward: float, reason: str) -> ShownCompletion:
    """A judged answer; what stands in its tags is marked."""
    tagged = text.removeprefix("<answer>").removesuffix("</answer>")
    start, length = (len("<answer>"), len(tagged)) if tagged != text else (0, 0)
    return ShownCompletion(text=text, judged=True, reward=reward, reason=reason, start=start, length=length)


def show_answered_question(window: MainWindow) -> None:
    """Show a question that was answered by snapshots of the model, in each way that an answer can be judged, and by hand."""
    right = _answer("<answer>3/7</answer>", RIGHT, "right")
    answers = (
        (0, _answer("3/7", 0.0, UNTAGGED)),
        (32, _answer("<answer>4/7</answer>", 0.0, "wrong")),
        (64, _answer("<answer>36/84 is 3 / 7 because 12 is the gre", 0.0, "cut off")),
        (96, _answer("<answer>3 over 7</answer>", 0.0, "could not be judged")),
        (128, _answer("<answer>18/42</answer>", 0.3, "close")),
        (217, right),
    )
    window.show_page("playground", "question")
    specialty = "fraction_simplification"
    answer(window, QuestionPosed(specialty=specialty, title="Fractions", number=7, question="Simplify the fraction 36/84."))
    _tell(
        window,
        QuestionAnswered(
            specialty=specialty,
            number=7,
            answers=tuple(SnapshotAnswer(rounds=rounds, completion=answer) for rounds, answer in answers),
            mine=right,
        ),
    )


def show_race(window: MainWindow, state: str) -> None:
    """Show the race in this state."""
    window.show_page("playground", "race")
    RACES[state](window.pages.of(PlaygroundPage).race)


def show_talk(window: MainWindow, state: str) -> None:
    """Show the chat in this state."""
    window.show_page("playground", "chat")
    _tell(window, events_chat.ChatOffer(moments=MOMENTS, taught=False))
    TALKS[state](window, window.pages.of(PlaygroundPage).chat)
