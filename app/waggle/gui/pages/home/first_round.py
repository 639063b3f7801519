"""The first rounds as one large card: a question or two, the model's tries, and what they are worth."""

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.i18n.formatting import figure, one_line, plural, tr
from waggle.gui.state.tries import KIND_SIGNS, KIND_WORDS, Try, merged_tries, most_telling
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.highlighted_text import HighlightedText
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Chip
from waggle.gui.widgets.question_text import say_question
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import Card, State

QUESTIONS, MOST = 2, 3  # shown at most, and different tries of each


class TryRow(QFrame):
    """One answer, how many tries gave it, and what it is worth."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "well")
        self._count = ElidedLabel(theme, role="label", tone="text_soft")
        self._answer = HighlightedText(theme, 1)
        self._chip = Chip(theme)
        self.setLayout(row((self._answer, 1), self._count, self._chip, gap=12, margins=(14, 5, 8, 5)))

    def show_try(self, each: Try) -> None:
        self._answer.say(each.text, 0, len(each.text) if each.kind in ("right", "untagged") else 0)
        self._count.say(f"×{figure(each.count)}" if each.count > 1 else "")
        self._count.setVisible(each.count > 1)
        words = tr(KIND_WORDS[each.kind])
        self._chip.say(words, *KIND_SIGNS[each.kind])
        self.setAccessibleName(f"{figure(each.count)} × {self._answer.accessibleName()}: {words}")


class TryList(QWidget):
    """The most telling tries at one question."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._rows = [TryRow(theme) for _ in range(MOST)]
        self.setLayout(column(*self._rows, gap=5))

    def show_tries(self, tries: Sequence[Try]) -> None:
        for place, line in enumerate(self._rows):
            line.setVisible(place < len(tries))
            if place < len(tries):
                line.show_try(tries[place])


class TriedQuestion(QWidget):
    """A question, and the tries at it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._question, self._specialty = ElidedLabel(theme, role="heading"), Chip(theme)
        self._tries = TryList(theme)
        self.setLayout(column(row((self._question, 1), self._specialty), self._tries, gap=5))

    def show_card(self, card: Card) -> None:
        say_question(self._question, card.question)
        self._specialty.say(tr(one_line(card.specialty)), "plain")
        self._tries.show_tries(merged_tries(card.completions))


class FirstRound(QWidget):
    """Empty until the first round was judged. In the compact form it has one question."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._compact = False
        self._cards: list[Card] = []
        self._head = ElidedLabel(theme, role="label", tone="text_soft")
        self._questions = [TriedQuestion(theme) for _ in range(QUESTIONS)]
        self.meaning = text(theme, "", "body", wrap=True)
        self.setLayout(column(6, self.meaning, 2, self._head, *self._questions, None, gap=8))

    def set_compact(self, compact: bool) -> None:
        if compact != self._compact:
            self._compact = compact
            self._show_cards()

    def show_state(self, state: State) -> None:
        self._cards = most_telling(state.cards)
        self._show_cards()

    def _show_cards(self) -> None:
        cards = self._cards[: 1 if self._compact else QUESTIONS]
        self._head.setVisible(bool(cards))
        if cards:
            words = plural(len(cards[0].completions), "Round %1: %n try at each question", "Round %1: %n tries at each question")
            self._head.say(words.replace("%1", figure(cards[0].round + 1)))
        for place, question in enumerate(self._questions):
            question.setVisible(place < len(cards))
            if place < len(cards):
                question.show_card(cards[place])
        self.meaning.setText(_meaning(merged_tries(cards[0].completions)) if cards else tr("Its first answers appear here."))


def _meaning(tries: list[Try]) -> str:
    """What these tries mean for the model, in a sentence or two."""
    counts: dict[str, int] = {}
    for each in tries:
        counts[each.kind] = counts.get(each.kind, 0) + each.count
    whole = sum(counts.values())
    if counts.get("right"):
        words = tr("Right in %1 of %2 tries. It learns from what sets them apart from the others.")
        return words.replace("%1", figure(counts["right"])).replace("%2", figure(whole))
    if counts.get("untagged"):
        words = tr("Right in %1 of %2 tries, but not in the answer tags yet, so it earns nothing. It learns that first.")
        return words.replace("%1", figure(counts["untagged"])).replace("%2", figure(whole))
    return tr("None is right yet. It keeps trying, and learns from the first that are.")
