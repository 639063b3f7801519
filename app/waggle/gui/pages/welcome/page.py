"""The page Welcome: set-up at the first start in two steps (what Waggle does and what leaves this computer; with whom)."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QLabel, QStackedWidget, QVBoxLayout, QWidget

from waggle.core import login_start
from waggle.core.errors import SwarmError
from waggle.core.settings import Value, profiles
from waggle.core.system.machine import usable_cores
from waggle.gui.charts.painted.waggle_dance import WaggleDance
from waggle.gui.coroutines import start
from waggle.gui.engine_client import picture_invite
from waggle.gui.i18n.formatting import later, one_line, size, tr
from waggle.gui.state import shortcuts
from waggle.gui.state.inputs.invite_link import invite_in
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets import system_tray
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.controls.inputs import Switch, TextField
from waggle.gui.widgets.controls.usage_profile import PROFILE_WORDS, PROFILES
from waggle.gui.widgets.file_dialogs import chosen_path, file_dialog
from waggle.gui.widgets.layout import FLUSH, as_widget, column, frame, restyle, row
from waggle.gui.widgets.painted_widgets import Icon, PaintedWidget
from waggle.gui.widgets.pasted_picture import PastedPicture
from waggle.gui.widgets.refusals import refusal_words
from waggle.gui.widgets.text import announce, say_in, set_tip, spoken, text
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.events_models import ModelOffer

STEPS = (later("What it does"), later("With whom"))
SWARM = 1  # the index of the step
FIRST_LIGHT, ALONE, INVITED, FIRST_STEPS = range(4)  # with whom
WIDEST, TALLEST = 1136, 780  # pixels of the card
# pixels of the window's width, and of its height, at a text size of 100%
LEAST_FOR_PICTURE, LEAST_FOR_AIR, LEAST_TO_SPREAD, LEAST_FOR_OFFER = 1100, 640, 780, 860
AIR = 20  # pixels above a title


class StepIndicator(PaintedWidget):
    """The steps in a row: a tick for a past step, a filled circle for the present one, a number for those to come."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.setFixedHeight(theme.px(28))
        self.show_step(0)

    def show_step(self, step: int) -> None:
        self._step = step
        words = tr("Step %1 of %2").replace("%1", str(step + 1)).replace("%2", str(len(STEPS)))
        self.setAccessibleName(f"{words}: {tr(STEPS[step])}")
        self.update()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        x, side = 0.0, self.theme.px(22)
        for i, words in enumerate(STEPS):
            here = i == self._step
            font = self.theme.font("label" if here else "small")
            width = QFontMetricsF(font).horizontalAdvance(tr(words))
            circle = QRectF(x + 1, place.center().y() - side / 2, side, side)
            self._circle(painter, circle, i)
            painter.setFont(font)
            painter.setPen(self.theme.colour("text" if here else "text_soft"))
            painter.drawText(QRectF(x + side + 10, 0, width + 4, place.height()), Qt.AlignmentFlag.AlignVCenter, tr(words))
            x += side + 10 + width + 14
            if i < len(STEPS) - 1:
                painter.setPen(QPen(self.theme.colour("border"), 1))
                painter.drawLine(int(x), round(place.center().y()), int(x + 14), round(place.center().y()))
            x += 28

    def _circle(self, painter: QPainter, circle: QRectF, step: int) -> None:
        here, behind = step == self._step, step < self._step
        painter.setPen(Qt.PenStyle.NoPen if here else QPen(self.theme.colour("accent_line" if behind else "control"), 1.2))
        painter.setBrush(self.theme.colour("accent" if here else "accent_soft" if behind else "surface"))
        painter.drawEllipse(circle)
        if behind:
            self.theme.draw_icon(painter, "check", "accent_text", circle.adjusted(4, 4, -4, -4))
            return
        painter.setFont(self.theme.font("label"))
        painter.setPen(self.theme.colour("on_accent" if here else "text_soft"))
        painter.drawText(circle, Qt.AlignmentFlag.AlignCenter, str(step + 1))


class WelcomePage(QWidget):
    """`done` carries the chosen settings, empty if set-up was skipped.

    Before it, `invited` carries an invite link to preview, `model_chosen` the name of a model of the hub to download, and
    `swarm_chosen` the charter of a swarm to begin in.
    """

    done = Signal(object)
    invited = Signal(str)
    model_chosen = Signal(str)
    swarm_chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("window")
        self._theme = theme
        self._steps, self._pages = StepIndicator(theme), QStackedWidget()
        self._profile = SegmentedControl(theme, [tr(words) for words in PROFILES.values()], tr("Use of this computer"))
        self._swarm_chosen = 0
        self._power = Switch(theme, tr("Pause on battery"))
        self._power.setChecked(True)
        self._at_login, self._in_tray = Switch(theme, tr("Start when I log in")), Switch(theme, _tray_words())
        self._in_tray.setChecked(True)
        self._link = TextField(theme, tr("Invite link"), tr("waggle://join?…"))
        self._refused = text(theme, "", "small", "bad", wrap=True)
        self._refused.hide()
        self._offer: ModelOffer | None = None  # a real model that this computer can train well
        self._trains_offer = self._finished = False
        self._art = WaggleDance(theme)
        self._art.setFixedWidth(380)
        self._skip = Button(theme, tr("Skip set-up"), "link")
        self._skip.clicked.connect(lambda: self._finish({}))
        self._back = Button(theme, tr("Back"))
        self._back.clicked.connect(lambda: self._go(self._pages.currentIndex() - 1))
        self._hint = text(theme, "", "small", "faint")
        self._next = Button(theme, tr("Continue"), "primary")
        self._next.clicked.connect(self._forward)
        self._link.returnPressed.connect(self._next.click)  # `click` does nothing while the button is disabled
        what = self._what()
        self._what_it_does = [label.text() for label in what.findChildren(QLabel) if label.text()]
        for page in (what, self._swarms()):
            self._pages.addWidget(page)
        foot = row(FLUSH, self._skip, None, self._hint, 8, self._back, self._next)
        self._room = column((self._pages, 1))
        self._words = column(12, self._steps, (self._room, 1), foot, gap=16)
        card = frame("card", row(self._art, (self._words, 1), gap=48, margins=(16, 16, 40, 28)))
        card.setMaximumSize(WIDEST, TALLEST)
        self._frame = row((card, 1))
        self.setLayout(column((self._frame, 1), gap=0))
        self.setFocusProxy(self._next)
        self._go(0)

    def _what(self) -> QWidget:
        theme = self._theme
        shared = frame("well", row(
            (_bullet_list(theme, tr("Shared with the swarm"), "good", "check", (
                tr("Your model's answers, as plain text"), tr("A made-up name and a public key"),
                tr("Your network address, to peers you meet"))), 1),
            (_bullet_list(theme, tr("Stays on this computer"), "text_soft", "lock", (
                tr("Your files"), tr("What you type, unless you share it"), tr("Your real name and e-mail address"),
                tr("The model itself, unless you export it"))), 1),
            gap=24, margins=(16, 14, 16, 14)))  # fmt: skip
        self._in_short = _step(
            text(theme, tr("Let your computer learn with others"), "hero", wrap=True),
            text(theme, tr("Waggle trains a small language model here, in the background, together with other computers."),
                 "body", "soft", wrap=True),
            _badge_row(theme, "answer", tr("It tries"),
                   tr("Your model answers small puzzles, eight ways each; Waggle checks which are right.")),
            _badge_row(theme, "share", tr("It tells"), tr("Like a bee back at the hive, it shows the others what it tried.")),
            _badge_row(theme, "learn", tr("It learns"),
                   tr("It learns from its own successes and from theirs, a little every round.")),
            10, shared,
        )  # fmt: skip
        return ScrollArea(self._in_short, "surface")

    def offer_model(self, offer: ModelOffer) -> None:
        """Offer a real model instead of the starter. Nothing is downloaded unless the person chooses it."""
        self._offer = offer
        title = tr("Train a bigger model: %1").replace("%1", one_line(offer.title))
        facts = tr("It already knows language. %1 to download; until it is here, Waggle trains its tiny starter.")
        facts = facts.replace("%1", size(offer.bytes))
        self._real_title.setText(title)
        self._real_facts.setText(facts)
        set_tip(self._real_facts, tr("Licence: %1").replace("%1", one_line(offer.licence)))
        self._question.setText(tr("Which model, and with whom?"))
        self.train_real.setAccessibleName(title)
        self.train_real.setAccessibleDescription(facts)
        self._trained.show()
        self._fit()
        self._choices[FIRST_STEPS].say_title(tr("First steps, suited to %1").replace("%1", one_line(offer.title)))

    def _choose_model(self, real: bool) -> None:
        self._trains_offer = real
        self._offer_first_steps()

    @property
    def _real(self) -> ModelOffer | None:
        """The real model, if the person chose it."""
        return self._offer if self._trains_offer else None

    @property
    def _better_swarm(self) -> SwarmSuggestion | None:
        """The swarm that suits the chosen real model better than First light."""
        return self._real.swarm if self._real is not None else None

    def _offer_first_steps(self) -> None:
        """Offer the swarm for small language models first if such a model is chosen; a swarm that a person chose stays chosen."""
        offered = self._better_swarm is not None
        self._choices[FIRST_STEPS].setVisible(offered)
        self._choices[FIRST_LIGHT].say_title(tr("First light") if offered else tr("First light, the default swarm"))
        if self._swarm_chosen in (FIRST_LIGHT, FIRST_STEPS):
            self._choose(FIRST_STEPS if offered else FIRST_LIGHT)

    def _swarms(self) -> QWidget:
        theme = self._theme
        self._trained = self._real_model()
        self._trained.hide()  # until this computer was measured
        self._choices = [
            SwarmChoice(
                theme,
                tr("First light, the default swarm"),
                tr("Nine specialties. Anyone may join; you train alone until someone does."),
                "swarms",
            ),
            SwarmChoice(theme, tr("Only this computer"), tr("No answers are shared. You can join a swarm later."), "you"),
            SwarmChoice(
                theme,
                tr("I was invited"),
                tr("Paste the link, then press Start. You'll see the swarm before you join."),
                "invite",
            ),
        ]
        steps = tr("Five easier kinds of question. Anyone may join; you train alone until someone does.")
        self._choices.append(SwarmChoice(theme, tr("First steps"), steps, "learn"))
        self._choices[FIRST_STEPS].hide()
        for place, choice in enumerate(self._choices):
            choice.chosen.connect(self._chooser(place))
        PastedPicture(self._link).pasted.connect(self._open_picture)
        picture = Button(theme, tr("Open QR picture"))
        picture.clicked.connect(lambda: start(self, self._choose_picture()))
        self._choices[INVITED].add(as_widget(column(row((self._link, 1), picture), self._refused, gap=6)))
        self._link.textChanged.connect(self._allow)
        self._choose(FIRST_LIGHT)
        self._swarm_box = column(self._choices[FIRST_STEPS], *self._choices[:FIRST_STEPS])
        self._question = text(theme, tr("Who should your model learn with?"), "hero", wrap=True)
        self._about = text(
            theme,
            tr("A swarm is a group of computers that practise the same specialties, such as fractions or logic."),
            "body",
            "soft",
            wrap=True,
        )
        self._pausing = text(theme, pausing_text(), "small", "faint", wrap=True)
        self._much = text(theme, "", "small", "soft", wrap=True)
        self._profile.chosen.connect(self._say_how_much)
        self._say_how_much(self._profile.index)
        self._use_box = row((column(self._use(), self._much), 1), self._switches(), margins=(16, 10, 16, 10))
        self._swarm_heading = text(theme, tr("With whom"), "heading")
        self._with_whom = _step(
            self._question,
            self._trained,
            as_widget(column(self._swarm_heading, self._about, gap=4)),
            as_widget(self._swarm_box),
            frame("well", self._use_box),
            self._pausing,
        )
        return ScrollArea(self._with_whom, "surface")

    def _real_model(self) -> QFrame:
        """What is offered instead of the starter. It is built before the choices: Tab goes in the order in which widgets came."""
        theme = self._theme
        self._real_title, self._real_facts = text(theme, "", "strong"), text(theme, "", "small", "soft", wrap=True)
        self.train_real = Switch(theme, tr("Model"))
        self.train_real.changed.connect(self._choose_model)
        words = column(self._real_title, self._real_facts, gap=2)
        self._trained_box = row((words, 1), self.train_real, gap=16, margins=(16, 4, 16, 4))
        return frame("well", self._trained_box)

    def _use(self) -> QWidget:
        """How much of this computer it takes: a good choice is made already."""
        theme = self._theme
        return as_widget(row(text(theme, tr("Use of this computer"), "strong"), self._profile, None, gap=12))

    def _say_how_much(self, profile: int) -> None:
        self._much.setText(tr(list(PROFILE_WORDS.values())[profile]))

    def _switches(self) -> QWidget:
        """Whether it runs on battery, when nobody opened it, and when its window was closed.

        Nothing starts unless the person says so.
        """
        theme = self._theme
        switches = (
            (tr("Pause on battery"), self._power), (tr("Start when I log in"), self._at_login), (_tray_words(), self._in_tray),
        )  # fmt: skip
        power, login, tray = (as_widget(row(text(theme, words, "strong"), switch, None, gap=10)) for words, switch in switches)
        login.setVisible(login_start.is_offered())
        tray.setVisible(system_tray.available())  # without a tray, closing the window ends Waggle
        return StretchRow((power, 1), (login, 1), (tray, 0), gap=20)

    def _go(self, step: int) -> None:
        self._pages.setCurrentIndex(step)
        self._steps.show_step(step)
        self._back.setVisible(step > 0)
        self._next.say(tr("Start") if step == len(STEPS) - 1 else tr("Continue"))
        self._allow()
        self._next.setFocus()
        if self.isVisible():
            self._read_out()

    def _read_out(self) -> None:
        """Read out what stands on this step, and of its choices the one that is made: the focus is behind all that."""
        choice = self._choices[self._swarm_chosen]
        with_whom = (self._about.text(), choice.title, choice.line)
        announce(self, spoken(self._steps.accessibleName(), *(with_whom if self._pages.currentIndex() else self._what_it_does)))

    def _allow(self) -> None:
        """Enable the next step, which needs a link if the person was invited."""
        step, invited = self._pages.currentIndex(), self._swarm_chosen == INVITED
        lacking = step == SWARM and invited and not self._link.text().strip()
        self._next.setEnabled(not lacking)
        say_in(self._refused, "", "bad")
        self._hint.setText(tr("Paste the link first.") if lacking else "" if step else tr("Takes under a minute"))

    async def _choose_picture(self) -> None:
        if path := await chosen_path(file_dialog(self, tr("Open a picture of the QR code"))):
            self._open_picture(path)

    def _open_picture(self, picture: Path | QImage) -> None:
        start(self, self._read_picture(picture))

    async def _read_picture(self, picture: Path | QImage) -> None:
        """Take the link from the QR code in a picture, or say why there is none."""
        try:
            self._link.setText(await picture_invite.invite_in(picture))
        except SwarmError as error:
            say_in(self._refused, refusal_words(error), "bad")
            announce(self, self._refused.text())

    def _forward(self) -> None:
        if self._pages.currentIndex() == SWARM and self._swarm_chosen == INVITED and not invite_in(self._link.text()):
            title = tr("This is not an invite link: one begins with waggle://join?")  # the engine's own words
            say_in(self._refused, f"{title} {tr('Ask for the link again, and copy it whole.')}", "bad")
            announce(self, self._refused.text())
            self._link.setFocus()
            return
        if self._pages.currentIndex() < len(STEPS) - 1:
            self._go(self._pages.currentIndex() + 1)
            return
        if self._swarm_chosen == INVITED:
            self.invited.emit(self._link.text().strip())
        if self._better_swarm is not None and self._swarm_chosen in (FIRST_STEPS, ALONE):
            self.swarm_chosen.emit(self._better_swarm.charter)
        if self._real is not None:
            self.model_chosen.emit(self._real.name)
        self._finish(self.values())  # after `invited`: this starts the engine

    def _finish(self, values: dict[str, Value]) -> None:
        """Once: a key that is held repeats itself."""
        if not self._finished:
            self._finished = True
            self.done.emit(values)

    def values(self) -> dict[str, Value]:
        """The choices made so far, as settings."""
        chosen = dict(profiles(usable_cores())[list(PROFILES)[self._profile.index]])
        chosen["when.only_on_power"] = self._power.isChecked()
        chosen["swarm.solo"] = self._swarm_chosen == ALONE
        chosen["window.at_login"] = "window" if self._at_login.isChecked() else "nothing"
        chosen["window.close_to_tray"] = self._in_tray.isChecked()
        return chosen

    def _choose(self, place: int) -> None:
        self._swarm_chosen = place
        for i, choice in enumerate(self._choices):
            choice.set_chosen(i == place)
        self._allow()
        if place == INVITED:
            self._link.setFocus()

    def _chooser(self, place: int) -> Callable[[], None]:
        return lambda: self._choose(place)

    def event(self, event: QEvent) -> bool:
        """Read the step out whenever the window comes to the front, as screen readers do with a dialog."""
        accepted = super().event(event)
        if event.type() == QEvent.Type.WindowActivate:
            self._read_out()
        return accepted

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Choose the space between the parts by the size of the window and by how much there is to choose."""
        wide, low = self.width() >= self._theme.px(LEAST_FOR_PICTURE), self.height() < self._theme.px(LEAST_FOR_AIR)
        self._room.setContentsMargins(0, 0 if low else AIR, 0, 0)
        tall = self.height() >= self._theme.px(LEAST_TO_SPREAD)
        dense = low or (self._offer is not None and self.height() < self._theme.px(LEAST_FOR_OFFER))
        airy = tall and self._offer is None  # with one, there is more to choose
        self._swarm_box.setSpacing(6 if dense else 12 if airy else 8)
        for choice in self._choices:
            choice.set_margins(3 if dense else 12 if airy else 6)
        self._in_short.setSpacing(12 if low else 28 if tall else 22)
        self._with_whom.setSpacing(8 if dense else 22 if airy else 12)
        self._trained_box.setContentsMargins(16, 4 if dense else 10, 16, 4 if dense else 10)
        self._about.setVisible(not low or self._offer is None)
        self._much.setVisible(not low)
        self._pausing.setVisible(not dense)
        self._swarm_heading.setVisible(self._offer is not None and not dense)
        ways = QBoxLayout.Direction
        self._use_box.setDirection(ways.LeftToRight if low else ways.TopToBottom)
        self._art.setVisible(wide)
        self._words.setContentsMargins(0 if wide else 24, 0, 0, 0)
        side = max(20 if not wide else 40, (self.width() - WIDEST) // 2)
        above = max(16 if not wide else 24, (self.height() - TALLEST) // 2)
        self._frame.setContentsMargins(side, above, side, above)


class SwarmChoice(QFrame):
    """One way to continue, as a box with a title and what it means."""

    chosen = Signal()

    def __init__(self, theme: Theme, title: str, line: str, icon: str) -> None:
        super().__init__()
        self.title, self.line = title, line
        self.setProperty("kind", "choice")
        self._button = Button(theme, title, "title")
        self._button.setCheckable(True)
        self._button.setAccessibleDescription(line)
        self._button.clicked.connect(self.chosen)
        self._tick, self._more = Icon(theme, "check", "accent_text"), None  # type: tuple[Icon, QWidget | None]
        self._box = column(
            row(Icon(theme, icon, "accent_text", 20), self._button, None, self._tick, gap=10),
            row(34, (text(theme, line, "small", "soft", wrap=True), 1), gap=0), gap=2, margins=(16, 6, 16, 8),
        )  # fmt: skip
        self.setLayout(self._box)

    def say_title(self, title: str) -> None:
        self.title = title
        self._button.say(title)

    def set_margins(self, above: int) -> None:
        self._box.setContentsMargins(16, above, 16, above + 2)

    def add(self, widget: QWidget) -> None:
        self._more = as_widget(row(34, (widget, 1), gap=0, margins=(0, 6, 0, 0)))
        self._box.addWidget(self._more)

    def set_chosen(self, chosen: bool) -> None:
        restyle(self, "chosen", "true" if chosen else "false")
        self._button.setAutoExclusive(False)  # else Qt would not uncheck it
        self._button.setChecked(chosen)
        self._button.setAutoExclusive(True)  # a screen reader calls it one of several
        self._tick.setVisible(chosen)
        if self._more is not None:
            self._more.setVisible(chosen)

    def mousePressEvent(self, _event: object) -> None:
        """The whole box can be clicked; the keyboard uses the button."""
        self.chosen.emit()


def _tray_words() -> str:
    return tr("Stay in the menu bar when closed") if sys.platform == "darwin" else tr("Stay in the tray when closed")


def pausing_text() -> str:
    """Where one pauses, by the names that the system gives them."""
    if not system_tray.available():  # without a tray, closing the window ends Waggle
        words = tr("Pause whenever you like: on Home or with %1.")
    elif sys.platform == "darwin":
        words = tr("Training continues while the window is closed. Pause on Home, in the menu bar, or with %1.")
    else:
        words = tr("Training continues while the window is closed. Pause on Home, in the tray, or with %1.")
    return words.replace("%1", shortcuts.native_text(shortcuts.PAUSE))


def _step(title: QLabel, *parts: QWidget | int) -> QVBoxLayout:
    """One step. Titles of all steps stand at the same height."""
    return column(title, *parts, None, gap=12)


def _badge_row(theme: Theme, icon: str, title: str, line: str) -> QWidget:
    badge = frame("badge", row(None, Icon(theme, icon, "accent_text", 20), None))
    badge.setFixedSize(40, 40)
    return as_widget(
        row(badge, (column(text(theme, title, "heading"), text(theme, line, "body", "soft", wrap=True), gap=2), 1), gap=16)
    )


def _bullet_list(theme: Theme, title: str, tone: str, icon: str, lines: Sequence[str]) -> QWidget:
    rows = [row(Icon(theme, icon, tone, 16), (text(theme, line, "small", "soft", wrap=True), 1)) for line in lines]
    return as_widget(column(text(theme, title, "label"), *rows, None, gap=6))
