"""A swarm before it is joined: what is known of it, what joining means, and the button that joins."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QWidget

from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import figure, one_line, plural, tr
from waggle.gui.pages.swarms.stranger_questions import stranger_questions
from waggle.gui.pages.swarms.swarm_facts import (
    Fact,
    has_unchecked,
    head_line,
    sample_questions,
    trains_on,
)
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import SingleClickButton
from waggle.gui.widgets.layout import as_widget, column, row, rule
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_swarms import InviteRead, SwarmDetails
from waggle.protocol.text.privacy_text import SHARED, STAYS
from waggle.protocol.text.swarm_text import CLASS_PAGE, UNCHECKED

LONGEST_NAME = 24  # characters, as in an announcement


def created_words() -> str:
    """The introduction to a swarm that was just created."""
    return tr("It is ready: its charter is written and its questions are agreed on. Switch to it, then invite others.")


def remembered_words(swarm: SwarmDetails) -> str:
    """The introduction to a remembered or shipped swarm, with the members at the last query."""
    if swarm.shipped and not swarm.members:
        return tr("It comes with Waggle and is open to all. It may be empty: then you train alone until you invite someone.")
    there = plural(swarm.members, "%n computer was there when last asked.", "%n computers were there when last asked.") if (
        swarm.members) else tr("Not asked yet who is there.")  # fmt: skip
    return f"{there} {tr('You know this swarm.')}"


def answered_words(read: InviteRead) -> str:
    """The introduction to a swarm whose computers were just asked, with its members."""
    if not read.answered:
        return tr("Nobody answered at its addresses just now, but it was met before. You can join, and wait for others there.")
    there = plural(read.swarm.members, "%n computer is there now.", "%n computers are there now.") if read.swarm.members else tr(
        "It answers; nobody has announced anything just now.")  # fmt: skip
    return f"{there} {tr('Nothing has been joined yet.')}"


class SwarmPreviewCard(QFrame):
    """What is known of a swarm, what joining means, and the button for it; the active swarm has the facts only, unless its invite
    leads to others.

    `accepted` carries the charter to join, and the name that the members of a private swarm shall see (None in others).
    `about`: the introduction; `leaving`: the name of the active swarm; `why_not`: why it cannot be left.
    """

    accepted = Signal(str, object)
    declined = Signal()

    def __init__(
        self, theme: Theme, swarm: SwarmDetails, *, about: str, leaving: str, round_: int, why_not: str,
        leads_to_others: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.setProperty("kind", "card")
        title = one_line(swarm.name)
        title_line = row(Icon(theme, "swarms", "accent_text", 24), (ElidedLabel(theme, title, "title"), 1))
        head = head_line(theme, title_line, swarm)
        self._stays = swarm.active and not leads_to_others
        introduction = tr("You are in this swarm already.") if self._stays else about
        parts: list[QWidget | int | None] = [head, text(theme, introduction, "body", "soft", wrap=True), 4]
        parts.append(Fact(theme, tr("It trains on"), trains_on(swarm)))
        if has_unchecked(swarm):
            parts.append(Fact(theme, tr("Answers not verified"), tr(UNCHECKED)))
        if swarm.model_hint:
            parts.append(Fact(theme, tr("Made for"), tr(one_line(swarm.model_hint))))
        shared = tr("Shared") if self._stays else tr("You will share")
        parts += [Fact(theme, shared, tr(SHARED)), Fact(theme, tr("Stays here"), tr(STAYS))]
        if (own_box := stranger_questions(theme, swarm)) is not None:
            parts += [2, text(theme, tr("Own questions"), "label", "soft"), own_box]
        if (samples := sample_questions(theme, swarm, tr("For example"))) is not None:
            parts += [2, samples]
        self._name: QLineEdit | None = None
        if swarm.private and not swarm.active:
            self._name = self._name_field(theme, swarm)
            parts += [2, text(theme, tr("Your name in this swarm (optional)"), "label", "soft"), self._name]
        if swarm.for_class:
            parts.append(Fact(theme, tr("On this computer"), tr(CLASS_PAGE)))
        parts += [4, rule()]
        if not self._stays:
            parts += [2, text(theme, self._what_happens(swarm, leaving, round_), "small", "soft", wrap=True)]
        hindrance = ElidedLabel(theme, "" if self._stays else why_not, "small", "text_soft")
        parts.append(as_widget(row((hindrance, 1), *self._buttons(theme, swarm, why_not), gap=8, margins=(0, 6, 0, 0))))
        self.setLayout(column(*parts, gap=7, margins=(24, 20, 24, 20)))

    def _buttons(self, theme: Theme, swarm: SwarmDetails, why_not: str) -> tuple[Button, ...]:
        self.no = Button(theme, tr("Done") if self._stays else tr("Not now"))
        self.no.clicked.connect(self.declined)
        if self._stays:
            return (self.no,)
        words = tr("Join %1") if swarm.active or not swarm.known else tr("Switch to %1")
        self.join = SingleClickButton(theme, words.replace("%1", one_line(swarm.name)[:40]), "primary")
        self.join.setEnabled(not why_not)
        self.join.setToolTip(why_not)
        self.join.clicked.connect(lambda: self.accepted.emit(swarm.charter, self._name.text().strip() if self._name else None))
        return self.no, self.join

    @staticmethod
    def _name_field(theme: Theme, swarm: SwarmDetails) -> QLineEdit:
        field = QLineEdit(one_line(swarm.member_name))
        field.setFont(theme.font("body"))
        field.setFixedHeight(theme.size["control"])
        field.setMaxLength(LONGEST_NAME)
        field.setAccessibleName(tr("Your name in this swarm (optional)"))
        field.setPlaceholderText(tr("Only its members see it, beside eight characters of your key"))
        return field

    @staticmethod
    def _what_happens(swarm: SwarmDetails, leaving: str, round_: int) -> str:
        words = (
            tr("You are in this swarm, but have not met these computers yet. Joining them takes a few seconds. "
               "Your model keeps what it learned; round %2 continues.")
            if swarm.active
            else tr("Switching from %1 takes a few seconds. Your model keeps what it learned and goes on with round %2.")
        )  # fmt: skip
        consequence = "" if swarm.active else tr("You can come back at any time.")
        alone = tr("You chose to train on this computer only: going there ends that.") if swarm.ends_solo else ""
        private = tr("It is private: whoever has the link can join, and a link cannot be taken back.") if swarm.private else ""
        going = words.replace("%1", leaving).replace("%2", figure(round_number(round_)))
        return " ".join(filter(None, (alone, going, consequence, private)))
