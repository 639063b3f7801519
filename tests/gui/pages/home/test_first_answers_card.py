"""The first right answers beside a stopped training: those that fit, and how many there are in all."""

from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.gui.pages.home.first_answers_card import FirstAnswersCard
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import Aha
from waggle.protocol.state import State

AHAS = tuple(Aha(round=number, at=float(number), specialty=f"Skill {number}") for number in range(9))


def test_a_list_that_does_not_fit_says_how_much_of_it_is_seen(theme: Theme, qtbot: QtBot) -> None:
    card = FirstAnswersCard(theme)
    qtbot.addWidget(card)
    card.show()
    for high, words in ((240, "the newest 4 of 9"), (600, "")):
        card.resize(360, high)
        card.show_state(State(phase="problem", ready=ready(), ahas=AHAS))
        qtbot.waitUntil(lambda words=words: card._part.words() == words)
