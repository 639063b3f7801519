"""Swarms as a person meets them: a card of one that is known, the sheet of one to be joined, and the invite to this one."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QWidget

from waggle.gui.i18n.formatting import later, one_line, plural, tr, tr_sentence, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import ConfirmLink, SingleClickButton
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.layout import as_widget, column, frame, row, rule
from waggle.gui.widgets.painted import Chip, Icon
from waggle.gui.widgets.qr_code import QrCode
from waggle.gui.widgets.responsive_row import ResponsiveRow, StretchRow
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.events_swarms import InviteRead, InviteWritten, SwarmShown

MOST_TITLES = 9
MOST_SAMPLES = 3
SAMPLE = 220  # characters
DIFFICULTIES = {"easy": later("easy"), "standard": later("standard"), "hard": later("hard")}
SHARED = (
    "Your model's answers as plain text, a made-up name and a public key, your network address to those you meet, and answers of "
    "your own where you choose to share them."
)
STAYS = "Your files, your real name, the model itself, and what you type, unless you choose to share your answers."


def trains_on(swarm: SwarmShown) -> str:
    """Its specialties in one line, with their difficulty where it is one for all."""
    titles = [tr_sentence(one_line(specialty.title)) for specialty in swarm.specialties]
    listed_titles = ", ".join(titles[:MOST_TITLES])
    if len(titles) > MOST_TITLES:
        listed_titles += plural(len(titles) - MOST_TITLES, " and %n more", " and %n more")
    levels = {specialty.difficulty for specialty in swarm.specialties}
    level = levels.pop() if len(levels) == 1 else ""
    return f"{listed_titles} ({tr(DIFFICULTIES[level])})" if level in DIFFICULTIES else listed_titles


def here(swarm: SwarmShown, members: int | None) -> str:
    """How many are there, as far as that is known."""
    if members is not None:
        return plural(members, "only you", "%n, you included")
    if swarm.active:
        return "–"
    if swarm.members:
        return plural(swarm.members, "%n when last asked", "%n when last asked")
    return tr("not asked yet")


def chips(theme: Theme, swarm: SwarmShown) -> list[Chip]:
    """What sort of swarm it is."""
    chip_widgets = []
    if swarm.active:
        chip_widgets.append(Chip(theme, tr("You are here"), "accent", "on"))
    if swarm.private:
        chip_widgets.append(Chip(theme, tr("Private"), "plain", "shield"))
    if swarm.shipped:
        chip_widgets.append(Chip(theme, tr("Comes with Waggle"), "plain"))
    elif swarm.created:
        chip_widgets.append(Chip(theme, tr("Created here"), "plain"))
    return chip_widgets


class Fact(QWidget):
    """One line of a card: what, and how it is."""

    def __init__(self, theme: Theme, title: str, words: str) -> None:
        super().__init__()
        self._title, name = title, text(theme, title, "small", "soft")
        self._value = text(theme, "", "small", wrap=True)
        name.setFixedWidth(theme.px(112))
        name.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setLayout(row(name, (self._value, 1), gap=8))
        self.say(words)

    def say(self, words: str) -> None:
        self._value.setText(words)
        self._value.setAccessibleName(f"{self._title}: {words}")


def samples(theme: Theme, swarm: SwarmShown) -> QFrame | None:
    """What is asked there, in its own words: plain text, cut short."""
    with_samples = [specialty for specialty in swarm.specialties if specialty.sample][:MOST_SAMPLES]
    if not with_samples:
        return None
    parts: list[QWidget] = []
    for specialty in with_samples:
        words = " ".join(specialty.sample.split())
        cut = words if len(words) <= SAMPLE else f"{words[:SAMPLE]}…"
        parts.append(
            as_widget(
                column(
                    text(theme, tr_sentence(one_line(specialty.title)), "tag", "soft"),
                    text(theme, visible(cut), "mono", wrap=True),
                    gap=1,
                )
            )
        )
    return frame("well", column(*parts, gap=8, margins=(12, 9, 12, 10)))


def forget_link(theme: Theme, swarm: SwarmShown) -> ConfirmLink:
    """Asked twice where the way back goes too."""
    title, sure = one_line(swarm.name), ""
    if swarm.private or swarm.created:
        sure = tr("Forget its key for good") if swarm.private else tr("Forget it for good")
    name = tr("Forget %1").replace("%1", title)
    return ConfirmLink(theme, tr("Forget"), name, question=sure, question_name=f"{sure}: {title}")


class SwarmCard(QFrame):
    """A swarm that is remembered. `chosen` and `forgotten` carry its charter."""

    chosen = Signal(str)
    forgotten = Signal(str)

    def __init__(self, theme: Theme, swarm: SwarmShown, why_not: str) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._swarm, self._members = swarm, Fact(theme, tr("Members"), here(swarm, None))
        name = ElidedLabel(theme, one_line(swarm.name), "heading")
        head = row(Icon(theme, "swarms", "accent_text" if swarm.active else "text_soft", 20), (name, 1), *chips(theme, swarm))
        facts = [Fact(theme, tr("It trains on"), trains_on(swarm)), self._members]
        if swarm.model_hint:
            facts.append(Fact(theme, tr("Meant for"), one_line(swarm.model_hint)))
        if swarm.active:
            facts.append(Fact(theme, tr("Shared"), tr(SHARED)))
        parts: list[QWidget] = [as_widget(head), *facts]
        if swarm.active and (sample_box := samples(theme, swarm)) is not None:
            parts += [text(theme, tr("Questions of this kind are asked"), "label", "soft"), sample_box]
        if not swarm.active:
            parts.append(self._buttons(theme, swarm, why_not))
        self.setLayout(column(*parts, None, gap=7, margins=(20, 14, 20, 14)))

    def show_members(self, members: int | None) -> None:
        self._members.say(here(self._swarm, members))

    def _buttons(self, theme: Theme, swarm: SwarmShown, why_not: str) -> QWidget:
        title = one_line(swarm.name)
        go = Button(theme, tr("Go there"), small=True)
        go.setAccessibleName(tr("Go to %1").replace("%1", title))
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


def as_created() -> str:
    """Who is in a swarm that was made a moment ago."""
    return tr("It is ready: its charter is written and its questions are agreed on. Go there, then invite others.")


def as_remembered(swarm: SwarmShown) -> str:
    """Who is in a known one: nobody was asked just now."""
    there = plural(swarm.members, "%n computer was there when last asked.", "%n computers were there when last asked.") if (
        swarm.members) else tr("Not asked yet who is there.")  # fmt: skip
    return f"{there} {tr('You know this swarm.')}"


def as_answered(read: InviteRead) -> str:
    """Who is in one that was just asked."""
    if not read.answered:
        return tr("Nobody answered at its addresses just now, but it was met before. You can join, and wait for others there.")
    there = plural(read.swarm.members, "%n computer is there now.", "%n computers are there now.") if read.swarm.members else tr(
        "It answers; nobody has announced anything just now.")  # fmt: skip
    return f"{there} {tr('Nothing has been joined yet.')}"


class Sheet(QFrame):
    """A swarm that could be gone to: all that is known of it, what going there means, and the one button that does it.

    Of the swarm that one is in already, only what is known of it.
    """

    accepted = Signal(str)
    declined = Signal()

    def __init__(self, theme: Theme, swarm: SwarmShown, *, about: str, leaving: str, round_: int, why_not: str) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        title = one_line(swarm.name)
        head = row(Icon(theme, "swarms", "accent_text", 24), (ElidedLabel(theme, title, "title"), 1), *chips(theme, swarm))
        introduction = tr("You are in this swarm already.") if swarm.active else about
        parts: list[QWidget | int | None] = [as_widget(head), text(theme, introduction, "body", "soft", wrap=True), 4]
        parts.append(Fact(theme, tr("It trains on"), trains_on(swarm)))
        if swarm.model_hint:
            parts.append(Fact(theme, tr("Meant for"), one_line(swarm.model_hint)))
        shared, questions = tr("You will share"), tr("Questions of this kind will be asked")
        if swarm.active:
            shared, questions = tr("Shared"), tr("Questions of this kind are asked")
        parts += [Fact(theme, shared, tr(SHARED)), Fact(theme, tr("Never leaves"), tr(STAYS))]
        if (sample_box := samples(theme, swarm)) is not None:
            parts += [2, text(theme, questions, "label", "soft"), sample_box]
        parts += [4, rule()]
        if not swarm.active:
            parts += [2, text(theme, self._what_happens(swarm, leaving, round_), "small", "soft", wrap=True)]
        hindrance = ElidedLabel(theme, "" if swarm.active else why_not, "small", "text_soft")
        parts.append(as_widget(row((hindrance, 1), *self._buttons(theme, swarm, why_not), gap=8, margins=(0, 6, 0, 0))))
        self.setLayout(column(*parts, gap=7, margins=(24, 20, 24, 20)))

    def _buttons(self, theme: Theme, swarm: SwarmShown, why_not: str) -> tuple[Button, ...]:
        self.no = Button(theme, tr("Done") if swarm.active else tr("Not now"))
        self.no.clicked.connect(self.declined)
        if swarm.active:
            return (self.no,)
        words = tr("Join %1") if not swarm.known else tr("Go to %1")
        self.join = SingleClickButton(theme, words.replace("%1", one_line(swarm.name)[:40]), "primary")
        self.join.setEnabled(not why_not)
        self.join.setToolTip(why_not)
        self.join.clicked.connect(lambda: self.accepted.emit(swarm.charter))
        return self.no, self.join

    @staticmethod
    def _what_happens(swarm: SwarmShown, leaving: str, round_: int) -> str:
        words = tr("Going there takes a few seconds: this step is finished and saved, %1 is left, and round %2 goes on there.")
        consequence = tr("Your model keeps all that it has learned. You can come back at any time.")
        alone = tr("You chose to train on this computer only: going there ends that.") if swarm.ends_solo else ""
        private = tr("It is private: whoever has the link can join, and a link cannot be taken back.") if swarm.private else ""
        going = words.replace("%1", leaving).replace("%2", str(round_))
        return " ".join(filter(None, (alone, going, consequence, private)))


class Invitation(QFrame):
    """The link to the swarm of now: as a code for a camera, and as words to be copied or saved."""

    done = Signal()
    save_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.link = ""
        self._title, self._reach = text(theme, "", "title", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._code = QrCode(theme, 272, tr("The invite link as a QR code; the same link stands beside it as text"))
        self._field = link_field(theme, tr("The invite link"))
        self._field.setReadOnly(True)
        self._warning: QLabel = text(theme, "", "small", "soft", wrap=True)
        self._copy = CopyButton(theme, tr("Copy link"), "primary")
        self._save = Button(theme, tr("Save as a file"), icon="save")
        self._save.clicked.connect(self.save_wanted)
        back = Button(theme, tr("Done"))
        back.clicked.connect(self.done)
        self._how = text(theme, "", wrap=True)
        words = column(
            self._title, self._how, 8, self._field, ResponsiveRow(self._copy, self._save), 8, self._reach, self._warning, None,
            as_widget(row(None, back)), gap=8,
        )  # fmt: skip
        self._scanned = as_widget(column(row(self._code, None), None))
        self.setLayout(column(StretchRow((self._scanned, 0), (as_widget(words), 1), gap=28), margins=(24, 24, 24, 20)))

    def show_invite(self, written: InviteWritten | None, swarm: str, *, private: bool) -> None:
        self._title.setText(tr("Invite someone to %1").replace("%1", swarm))
        self.link = written.link if written else ""
        self._show_code()
        if self._field.text() != self.link:
            self._field.setText(self.link)
            self._field.setCursorPosition(0)
        self._copy.offer(self.link)
        for button in (self._copy, self._save):
            button.setEnabled(bool(self.link))
        waiting = tr("Asking for this computer's addresses.")
        still = tr("The link works while this computer, or another one it names, is on.")
        self._reach.setText(f"{tr_sentence(written.reach)} {still}" if written else waiting)
        key = tr("The link holds the key of this private swarm: whoever has it can join, and it cannot be taken back. "
                 "To shut somebody out, create a new swarm.")  # fmt: skip
        self._warning.setText(key if private else "")
        self._warning.setVisible(private)

    def _show_code(self) -> None:
        """A link that is too long for a code can still be copied and saved."""
        self._code.show_words(self.link)
        self._scanned.setVisible(self._code.fits)
        self._how.setText(
            tr("The other person scans this, or opens the link. They see what they would join before they do.")
            if self._code.fits
            else tr(
                "This link is too long for a QR code. The other person opens it, and sees what they would join before they do."
            )
        )


def link_field(theme: Theme, name: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setFont(theme.font("mono"))
    edit.setAccessibleName(name)
    edit.setFixedHeight(theme.size["control"])
    return edit
