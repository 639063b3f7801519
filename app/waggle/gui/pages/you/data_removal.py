"""Removing Waggle's data: everything it keeps on this computer with sizes, the choice what to remove, and the removal."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QProcess, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QWidget

from waggle.core import paths, stored_data
from waggle.core.errors import UNREADABLE
from waggle.core.message import unpacked_message
from waggle.core.stored_data import KEPT_BY_DEFAULT, DataKind, Removal, StoredFiles
from waggle.gui.i18n.formatting import later, plural, size, tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, empty, frame, row, rule
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, say_in, text

TITLES: dict[DataKind, str] = {
    "identity": later("Who you are"), "settings": later("Settings"), "checkpoints": later("What your models learned"),
    "history": later("History"), "record": later("Record of events"), "swarms": later("Swarms and peers"),
    "log": later("Logs"), "models": later("Downloaded models"), "cuda": later("CUDA"),
    "cache": later("Caches"),
}  # fmt: skip
NOTES: dict[DataKind, str] = {
    "identity": later("Your key. Without it, or a backup of it, nobody can be you again."),
    "settings": later("What you chose, and where this window stood."),
    "checkpoints": later("Checkpoints, their journal, and the album of earlier moments."),
    "history": later("The figures of every round, which charts are drawn from."),
    "record": later("What the engine told, for replays and for reports."),
    "swarms": later("Swarms you know, the keys of private ones, and what you think of peers."),
    "log": later("What was logged, for somebody who helps."),
    "models": later("From Hugging Face, for every home of yours."),
    "cuda": later("What computes on your NVIDIA graphics card."),
    "cache": later("What experiments keep to be faster next time."),
}
MOST_SPARED = 20  # files that are listed because they could not be removed


def chosen_words(stored: Sequence[StoredFiles], kinds: frozenset[DataKind]) -> str:
    """How many files, and how much, would be removed."""
    chosen = [each for each in stored if each.kind in kinds]
    count = sum(len(each.files) for each in chosen)
    if not count:
        return tr("Nothing is chosen; everything stays.")
    return plural(count, "%n file, %1", "%n files, %1").replace("%1", size(sum(each.size for each in chosen)))


def done_words(removed: Removal) -> str:
    """What was removed of one kind."""
    words = plural(removed.files, "%1: %n file removed, %2", "%1: %n files removed, %2")
    return words.replace("%1", tr(TITLES[removed.kind])).replace("%2", size(removed.size))


class DataKindRow(QWidget):
    """One kind of data: a checkbox to remove it, a note, and the size."""

    def __init__(self, theme: Theme, stored: StoredFiles, *, goes: bool) -> None:
        super().__init__()
        self.kind = stored.kind
        self.box = QCheckBox(tr(TITLES[stored.kind]))
        self.box.setFont(theme.font("strong"))
        self.box.setAccessibleName(tr("Remove: %1, %2").replace("%1", tr(TITLES[stored.kind])).replace("%2", size(stored.size)))
        self.box.setAccessibleDescription(tr(NOTES[stored.kind]))
        self.box.setChecked(goes)
        self.box.setFixedWidth(theme.px(230))
        note = ElidedLabel(theme, tr(NOTES[stored.kind]), "small", "text_soft")
        amount = ElidedLabel(theme, size(stored.size), "label", right=True)
        amount.setFixedWidth(theme.px(80))
        self.setLayout(row(self.box, (note, 1), amount, gap=12))


class DataRemovalView(QFrame):
    """Chooses the kinds of data to remove. `confirmed` carries them after a second press; `done`: nothing should be removed."""

    confirmed = Signal(object)
    backup_wanted = Signal()
    done = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme, self._stored, self._keeps = theme, tuple[StoredFiles, ...](), list[DataKindRow]()
        about = text(theme, tr("This is all that Waggle keeps on this computer. What you choose is removed, and nothing else; "
                              "the program itself is uninstalled like any other."), "body", "soft", wrap=True)  # fmt: skip
        self._backup = Button(theme, tr("Back up your identity"), icon="save")
        self._backup.clicked.connect(self.backup_wanted)
        first = text(theme, tr("First: a backup lets you come back as who you are, here or elsewhere."), "small", wrap=True)
        self._first = frame("well", row((first, 1), self._backup, margins=(14, 8, 10, 8)))
        self._rows = column(gap=7)
        self._sum, self._warning = ElidedLabel(theme, role="label"), text(theme, "", "small", "bad", wrap=True)
        self._cancel, self._go = Button(theme, tr("Keep everything")), Button(theme, tr("Remove these"))
        self._cancel.clicked.connect(self._back)
        self._go.clicked.connect(self._forward)
        foot = as_widget(row((self._sum, 1), self._cancel, self._go))
        title = text(theme, tr("Say goodbye"), "title")
        self.setLayout(column(
            title, about, self._first, 2, self._rows, rule(), self._warning, foot, gap=10, margins=(24, 18, 24, 18)
        ))  # fmt: skip
        self._confirming = False

    def show_stored(
        self, stored: tuple[StoredFiles, ...], *, no_backup: str, unticked: tuple[DataKind, ...] = KEPT_BY_DEFAULT
    ) -> None:
        """List what is stored; all kinds start ticked except `unticked`. `no_backup`: why no backup can be made now."""
        self._stored, self._confirming = stored, False
        empty(self._rows)
        self._keeps = [DataKindRow(self._theme, each, goes=each.kind not in unticked) for each in stored]
        for keep in self._keeps:
            keep.box.toggled.connect(lambda _on: self._reset_confirmation())
            self._rows.addWidget(keep)
        self._first.setVisible(any(each.kind in KEPT_BY_DEFAULT for each in stored))
        self._backup.setEnabled(not no_backup)
        self._backup.setToolTip(no_backup)
        self._reset_confirmation()

    def take_over(self, before: "DataRemovalView") -> None:
        """Take over the ticks; the confirmation is asked for again."""
        known = {keep.kind: keep.box.isChecked() for keep in before._keeps}
        for keep in self._keeps:
            keep.box.setChecked(known.get(keep.kind, keep.box.isChecked()))

    def chosen_kinds(self) -> frozenset[DataKind]:
        return frozenset(keep.kind for keep in self._keeps if keep.box.isChecked())

    def _reset_confirmation(self) -> None:
        self._confirming = False
        self._show()

    def _show(self) -> None:
        kinds = self.chosen_kinds()
        self._sum.say(chosen_words(self._stored, kinds))
        self._go.setEnabled(bool(kinds))
        self._go.say(tr("Remove them now") if self._confirming else tr("Remove these"))
        self._cancel.say(tr("Not yet") if self._confirming else tr("Keep everything"))
        words = tr("They are removed for good. Training stops first, then Waggle closes.") if self._confirming else ""
        if any(kind in KEPT_BY_DEFAULT for kind in kinds):
            words = f"{tr('Your key is chosen too: without a backup nobody can be you again.')} {words}".strip()
        say_in(self._warning, words, "bad")

    def _forward(self) -> None:
        """Ask for confirmation at the first press, confirm at the second."""
        if self._confirming:
            self.confirmed.emit(self.chosen_kinds())
            return
        self._confirming = True
        self._show()
        self._cancel.setFocus()  # so that a repeated key does not confirm

    def _back(self) -> None:
        if self._confirming:
            self._reset_confirmation()
        else:
            self.done.emit()


class RemovalScreen(QWidget):
    """Covers the whole window while the engine stops and data is removed, then shows the result. `closed` closes Waggle."""

    closed = Signal()
    finished = Signal()

    def __init__(self, theme: Theme, home: Path, kinds: frozenset[DataKind]) -> None:
        super().__init__()
        self.setObjectName("window")
        self._theme, self._home, self._kinds = theme, home, kinds
        self.over = False
        self._title = ElidedLabel(theme, tr("Stopping training"), "title")
        self._about = text(theme, tr("It finishes its step first."), "body", "soft", wrap=True)
        self._rows = column(gap=8)
        self._close = Button(theme, tr("Close Waggle"), "primary")
        self._close.clicked.connect(self.closed)
        self._close.hide()
        inner = column(self._title, self._about, 4, self._rows, None, row(None, self._close), gap=10, margins=(32, 28, 32, 28))
        box = frame("card", inner)
        box.setFixedWidth(theme.px(680))
        box.setMinimumHeight(theme.px(320))
        self.setLayout(column(ScrollArea(column(None, row(None, box, None), None))))
        self._process = QProcess(self)
        self._process.finished.connect(self._show_outcome)
        self._process.errorOccurred.connect(self._show_start_failure)

    def remove(self) -> None:
        """Remove the chosen data, after the engine has stopped. `finished` follows."""
        self._title.say(tr("Removing"))
        self._about.setText("")
        program, *arguments = paths.module_command("waggle")
        kinds = ",".join(sorted(self._kinds))
        self._process.start(program, [*arguments, "goodbye", "--home", str(self._home), "--remove", kinds, "--json"])

    def words(self) -> str:
        return self._about.text()

    def _show_outcome(self, _code: int) -> None:
        output, complaint = (bytes(read().data()) for read in (self._process.readAllStandardOutput,
                                                             self._process.readAllStandardError))  # fmt: skip
        try:
            self._say(msgspec.json.decode(output, type=tuple[Removal, ...], dec_hook=unpacked_message))
        except UNREADABLE:  # it refused before removing anything, with a reason on stderr, or it crashed
            refused = complaint.startswith(b"waggle: ")
            words = (tr(line.strip().removeprefix("waggle: ")) for line in complaint.decode("utf-8", "replace").splitlines())
            self._end(
                tr("Nothing was removed") if refused else tr("Not everything was removed"), visible(" ".join(words).strip())
            )

    def _show_start_failure(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._end(tr("Nothing was removed"), tr("It cannot be started. Install Waggle again."))

    def _say(self, done: tuple[Removal, ...]) -> None:
        for removed in done:
            self._add("check", "good", text(self._theme, done_words(removed), wrap=True))
        spared = [each for removed in done for each in removed.spared]
        for each in spared[:MOST_SPARED]:
            self._add("warn", "bad", ElidedLabel(self._theme, f"{visible(each.reason)}: {visible(each.path)}"))
        self._title.say(plural(len(spared), "%n file could not be removed", "%n files could not be removed") if spared
                        else tr("Goodbye, and thank you"))  # fmt: skip
        identity_note = tr("The key that makes you who you are is still here.") if "identity" not in self._kinds else ""
        token = tr("A Hugging Face token, if you stored one, goes with `waggle token --forget`.")
        self._end(self._title.words(), f"{identity_note} {token}".strip())

    def _add(self, icon: str, tone: str, words: QWidget) -> None:
        self._rows.addWidget(as_widget(row(Icon(self._theme, icon, tone, 18), (words, 1), gap=10)))

    def _end(self, title: str, words: str) -> None:
        self.over = True
        self._title.say(title)
        self._about.setText(words)
        self._close.show()
        self._close.setFocus()
        self.finished.emit()


def files_stored_in(home: paths.Home) -> tuple[StoredFiles, ...]:
    """What is stored on this computer now."""
    return stored_data.stored_files(home, paths.cache())
