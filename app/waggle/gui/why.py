"""Why it contributes or waits: each rule that is on, the one that holds back first, with a switch beside it."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QLayout, QWidget

from waggle.gui.controls import Switch
from waggle.gui.look import Look
from waggle.gui.paint import Sign
from waggle.gui.parts import Button, column, frame, held, row, text
from waggle.gui.words import later, told, tr
from waggle.protocol.commands import ChangeSettings, Resume, new_id
from waggle.protocol.rules import Rule, Tick
from waggle.settings import Value

OFF: dict[Rule, tuple[str, Value]] = {
    "idle": ("when.idle_minutes", 0), "power": ("when.only_on_power", False), "full_screen": ("when.not_full_screen", False),
    "metered": ("when.not_metered", False), "temperature": ("when.below_celsius", 0), "energy": ("when.kwh_a_day", 0),
}  # fmt: skip
MADE_BY_HAND: dict[Rule, str] = {"week": "when.week", "program": "when.not_while"}  # off would be: erased
SIGNS = {True: ("check", "good"), False: ("pause", "accent_text"), None: ("more", "text_faint")}
MEANINGS = {True: later("met"), False: later("holds back"), None: later("not told")}


class Why(QFrame):
    """A small window below the sentence. `commanded` switches a rule off, or resumes; `setting_wanted` names what to change."""

    commanded = Signal(object)
    setting_wanted = Signal(str)

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setProperty("kind", "popover")
        self.setAccessibleName(tr("Why it contributes or waits"))
        self._look = look
        self._ticks: tuple[Tick, ...] = ()
        self._rows: QWidget = held(column())
        self._box = column(text(look, tr("Your rules"), "heading"), self._rows, gap=10, margins=(18, 14, 18, 16))
        self.setLayout(self._box)
        self.setFixedWidth(look.px(440))

    def show_ticks(self, ticks: Sequence[Tick]) -> None:
        """Redraw when the rules say something else."""
        if tuple(ticks) == self._ticks:
            return
        self._ticks = tuple(ticks)
        fresh = held(column(*(self._line(tick) for tick in ticks), gap=10))
        self._box.replaceWidget(self._rows, fresh)
        self._rows.deleteLater()
        self._rows = fresh
        self.adjustSize()

    def open_below(self, button: QWidget) -> None:
        self.adjustSize()
        corner = button.mapToGlobal(QPoint(0, button.height() + 6))
        window = button.window().frameGeometry()
        left = max(window.left() + 8, min(corner.x(), window.right() - self.width() - 8))
        self.move(left, corner.y())
        self.show()
        self.setFocus()

    def _line(self, tick: Tick) -> QLayout:
        look, (icon, ink) = self._look, SIGNS[tick.passes]
        words = column(text(look, told(tick.says), "strong" if tick.passes is False else "body", wrap=True), gap=1)
        if tick.ends:
            words.addWidget(text(look, told(tick.ends), "small", "soft", wrap=True))
        badge = frame("badge" if tick.passes is False else "plainbadge", row(None, Sign(look, icon, ink, 16), None))
        badge.setFixedSize(28, 28)
        badge.setAccessibleName(tr(MEANINGS[tick.passes]))
        line = row(column(badge, None), (words, 1), gap=12)
        if tick.rule in OFF or tick.rule == "pause":  # a full disk is nobody's rule
            switch = Switch(look, tr("Rule: %1").replace("%1", told(tick.says)))
            switch.setChecked(True)
            switch.changed.connect(partial(self._switch, tick.rule))
            line.addLayout(column(switch, None))
        elif (key := MADE_BY_HAND.get(tick.rule)) is not None:
            change = Button(look, tr("Change rule"), "link")
            change.setAccessibleName(f"{tr('Change rule')}: {told(tick.says)}")
            change.clicked.connect(lambda: self._change(key))
            line.addLayout(column(change, None))
        return line

    def _change(self, key: str) -> None:
        self.hide()
        self.setting_wanted.emit(key)

    def _switch(self, rule: Rule, on: object) -> None:
        """Off: a pause is ended, any other rule is set so that it holds nothing back."""
        if on:
            return
        self.hide()
        if rule == "pause":
            self.commanded.emit(Resume(id=new_id()))
            return
        key, value = OFF[rule]
        self.commanded.emit(ChangeSettings(id=new_id(), values={key: value}))
