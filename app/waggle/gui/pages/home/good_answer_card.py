"""The newest right answer and whose it is, on a wide Home."""

from PySide6.QtWidgets import QFrame

from waggle.gui.i18n.formatting import ago, peer_name, reward, tr
from waggle.gui.state.story.tries import essence
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import column, frame, row
from waggle.gui.widgets.painted_widgets import Chip
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.gui.widgets.typeset.highlighted_text import HighlightedText
from waggle.gui.widgets.typeset.question_text import say_question
from waggle.protocol.events import RIGHT, ShownCompletion
from waggle.protocol.state import Card, State


class GoodAnswerCard(QFrame):
    """The newest right answer, even when its card has left the feed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._when = ElidedLabel(theme, role="small", tone="text_faint", right=True)
        self._question = ElidedLabel(theme, role="body", tone="text_soft")
        self._nothing = text(theme, tr("The next right answer, yours or a peer's, appears here."), "body", "soft", wrap=True)
        self._answer = HighlightedText(theme, 1)
        self._reward, self._who = Chip(theme), Chip(theme)
        self._well = frame("well", column(self._answer, margins=(12, 7, 12, 7)))
        self._box = column(
            row((text(theme, tr("Latest right answer"), "heading"), 1), self._when),
            self._nothing, self._question, self._well, None,
            row(self._reward, self._who, None), gap=6, margins=(20, 14, 20, 14),
        )  # fmt: skip
        self.setLayout(self._box)
        self._latest: tuple[Card, ShownCompletion] | None = None
        self._model = ("", "")  # the base and name of the model that was trained when the answer came

    def show_state(self, state: State, now: float) -> None:
        model = (state.ready.base, state.ready.model) if state.ready is not None else self._model
        if model != self._model:  # the answer is not of this model
            self._model, self._latest = model, None
        latest = latest_good_answer(state)
        self._latest = latest or self._latest
        for widget in (self._question, self._well, self._reward, self._who):
            widget.setVisible(self._latest is not None)
        self._nothing.setVisible(self._latest is None)
        if self._latest is None:
            self._when.say("")
            return
        card, answer = self._latest
        self._when.say(ago(card.at, now))
        if latest is None or not self._is_shown(card):
            self._show(card, answer)

    def _is_shown(self, card: Card) -> bool:
        return bool(self._answer.property("key") == card.key)

    def _show(self, card: Card, answer: ShownCompletion) -> None:
        self._answer.setProperty("key", card.key)
        say_question(self._question, card.question)
        words = essence(answer)
        self._answer.say(words, 0, len(words), match="match" if card.mine else "match_peer")
        self._reward.say(reward(answer), "good", "check")
        if card.mine:
            self._who.say(tr("by your model"), "accent", "on")
        else:
            self._who.say(tr("by %1").replace("%1", peer_name(card.name, card.origin)), "peer", "peers")


def latest_good_answer(state: State) -> tuple[Card, ShownCompletion] | None:
    """The newest card with a right answer by a model (not by a person), and the shortest of its right answers.

    Only this computer's model and trusted peers stand here: a stranger's text may stand anywhere in a right answer.
    """
    trusted = {peer.id for peer in state.peers.values() if peer.trusted and not peer.choice}
    for question in state.cards:
        if not question.mine and question.origin not in trusted:
            continue
        right = [answer for answer in question.completions if answer.judged and answer.reward >= RIGHT and not answer.human]
        if right:
            return question, min(right, key=lambda answer: len(answer.text))
    return None
