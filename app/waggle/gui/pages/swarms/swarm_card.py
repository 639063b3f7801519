"""The card of one swarm that this computer remembers."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.pages.swarms.stranger_questions import stranger_questions
from waggle.gui.pages.swarms.swarm_facts import (
    Fact,
    has_unchecked,
    head_line,
    members_words,
    sample_questions,
    trains_on,
)
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import ConfirmLink
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, say_in, set_tip, text
from waggle.protocol.events_swarms import SwarmDetails
from waggle.protocol.text.privacy_text import SHARED
from waggle.protocol.text.swarm_text import UNCHECKED

CARD_MARGINS = (20, 14, 20, 14)
LONGEST_NAME = 40  # characters of a swarm's name on a button


def forget_link(theme: Theme, swarm: SwarmDetails) -> ConfirmLink:
    """The link that forgets a swarm; it asks twice if nobody else can invite back to it."""
    title, sure = one_line(swarm.name), ""
    if swarm.private or swarm.created:
        sure = tr("Forget its key for good") if swarm.private else tr("Forget it for good")
    name = tr("Forget %1").replace("%1", title)
    return ConfirmLink(theme, tr("Forget"), name, question=sure, question_name=f"{sure}: {title}")


class SwarmCard(QFrame):
    """A remembered swarm. `chosen` and `forgotten` carry its charter."""

    chosen = Signal(str)
    forgotten = Signal(str)

    def __init__(
        self, theme: Theme, swarm: SwarmDetails, why_not: str, *, must_choose: bool = False, first: bool = False
    ) -> None:
        """`must_choose`: the person has to choose a swarm; `first`: this one is most likely the one that was trained in."""
        super().__init__()
        self._must_choose, self._first = must_choose, first
        self.setProperty("kind", "card")
        self._swarm, self._members = swarm, ElidedLabel(theme, members_words(swarm, None), "small", "text_soft")
        name = ElidedLabel(theme, one_line(swarm.name), "title" if swarm.active else "heading")
        sign = Icon(theme, "swarms", "accent_text" if swarm.active else "text_soft", 24 if swarm.active else 20)
        head = head_line(theme, row(sign, name, 4, (self._members, 1)), swarm)
        facts = [Fact(theme, tr("It trains on"), trains_on(swarm))]
        set_tip(facts[0], f"{tr('Answers not verified')}: {tr(UNCHECKED)}" if has_unchecked(swarm) else "")
        if swarm.model_hint:
            facts.append(Fact(theme, tr("Made for"), tr(one_line(swarm.model_hint))))
        if swarm.active:
            facts.append(Fact(theme, tr("You share"), tr(SHARED)))
        parts: list[QWidget | None] = [head, *facts]
        if swarm.active and (own_box := stranger_questions(theme, swarm)) is not None:
            parts += [text(theme, tr("Own questions"), "label", "soft"), own_box]
        if swarm.active and (samples := sample_questions(theme, swarm, tr("For example"))) is not None:
            parts.append(samples)
        if first:
            parts.append(text(theme, tr("Probably this one: you joined it yourself."), "small", "soft", wrap=True))
        if not swarm.active:
            parts += [None, self._buttons(theme, swarm, why_not)]
        self.setLayout(column(*parts, gap=7, margins=CARD_MARGINS))

    def show_members(self, members: int | None) -> None:
        self._members.say(members_words(self._swarm, members))

    def _buttons(self, theme: Theme, swarm: SwarmDetails, why_not: str) -> QWidget:
        title = one_line(swarm.name)
        words = tr("Train in %1") if self._must_choose else tr("Switch to %1")
        go = Button(theme, words.replace("%1", title[:LONGEST_NAME]), "primary" if self._first else "plain", small=True)
        go.setFixedHeight(theme.size["control_small"])  # the primary one is as high as those of the cards beside it
        go.setEnabled(not why_not)
        go.setToolTip(why_not)
        go.clicked.connect(lambda: self.chosen.emit(swarm.charter))
        forget, warning = forget_link(theme, swarm), text(theme, "", "small", "bad", wrap=True)
        say_in(warning, "", "bad")
        words = tr("Without an invite to it you can never come back.")
        forget.asking_changed.connect(lambda is_asking: say_in(warning, words if is_asking else "", "bad"))
        forget.confirmed.connect(lambda: self.forgotten.emit(swarm.charter))
        if swarm.shipped:
            forget.hide()
        return as_widget(column(row(go, forget, None, gap=8), warning, gap=4, margins=(0, 4, 0, 0)))
