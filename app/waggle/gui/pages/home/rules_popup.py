"""Why the engine contributes or waits: every rule that is on, with a switch; those that hold back come first.

Rules that this computer has no sensor for hold nothing back: the popup only counts them.
"""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QWidget

from waggle.core.settings import Value
from waggle.gui.i18n.formatting import later, one_line, plural, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import Switch
from waggle.gui.widgets.layout import as_widget, column, frame, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import text
from waggle.protocol.commands import ChangeSettings, Resume, new_id
from waggle.protocol.schedule import Rule, Tick
from waggle.protocol.state import State
from waggle.protocol.text.status_text import Sentence

OFF: dict[Rule, tuple[str, Value]] = {
    "idle": ("when.idle_minutes", 0), "power": ("when.only_on_power", False), "full_screen": ("when.not_full_screen", False),
    "metered": ("when.not_metered", False), "temperature": ("when.below_celsius", 0), "energy": ("when.kwh_a_day", 0),
}  # fmt: skip
MADE_BY_HAND: dict[Rule, str] = {
    "week": "when.week",
    "program": "when.not_while",
}  # a list or a plan: switching it off would erase it, so the popup links to the setting
SIGNS = {True: ("check", "good"), False: ("pause", "accent_text")}
BADGE = 28
MEANINGS = {True: later("met"), False: later("holds back")}


def no_rule_text(state: State, sentence: Sentence) -> str:
    """The answer to "Why?" while no rule holds the engine back; empty while one does."""
    if any(tick.passes is False for tick in sentence.why):
        return ""
    refused = any(peer.refusal for peer in state.peers.values())
    if sentence.word == "Alone" and state.reach == "alone" and state.ready is not None and not refused:
        words = tr("Nobody else is in %1 now. It needs nothing from you.")
        return words.replace("%1", one_line(state.ready.swarm))
    return tr("Nothing is holding Waggle back.")


def row_shape(tick: Tick) -> object:
    """What decides which widgets a row has; the rest of a tick only changes its texts."""
    return tick.rule, tick.passes, bool(tick.ends)


class RuleRow(QWidget):
    """One rule with a sensor. `switched_off` carries the rule, `change_wanted` the key of its setting."""

    switched_off = Signal(str)
    change_wanted = Signal(str)

    def __init__(self, theme: Theme, tick: Tick) -> None:
        super().__init__()
        icon, ink = SIGNS[bool(tick.passes)]
        self._says = text(theme, "", "strong" if tick.passes is False else "body", wrap=True)
        self._ends = text(theme, "", "small", "soft", wrap=True)
        if not tick.ends:
            self._ends.hide()
        badge = frame("badge" if tick.passes is False else "plainbadge", row(None, Icon(theme, icon, ink, 16), None))
        badge.setFixedSize(BADGE, BADGE)
        badge.setAccessibleName(tr(MEANINGS[bool(tick.passes)]))
        above = max(0, BADGE - self._says.fontMetrics().height()) // 2  # aligns the first line with the sign
        words = column(self._says, self._ends, None, gap=1, margins=(0, above, 0, 0))
        line = row(column(badge, None), (words, 1), gap=12)
        self._control: QWidget | None = None
        if tick.rule in OFF or tick.rule == "pause":  # not a full disk: no setting ends that
            switch = self._control = Switch(theme, "")
            switch.setChecked(True)
            switch.changed.connect(lambda on: None if on else self.switched_off.emit(tick.rule))
        elif (key := MADE_BY_HAND.get(tick.rule)) is not None:
            change = self._control = Button(theme, tr("Change rule"), "link")
            change.clicked.connect(lambda: self.change_wanted.emit(key))
        if self._control is not None:
            line.addLayout(column(self._control, None))
        self.setLayout(line)

    def say(self, tick: Tick) -> None:
        """Show the rule's present state."""
        says = tr(tick.says)
        self._says.setText(says)
        self._ends.setText(tr(tick.ends))
        if isinstance(self._control, Switch):
            self._control.setChecked(True)  # only rules that are on are listed
            self._control.setAccessibleName(tr("Rule: %1").replace("%1", says))
        elif self._control is not None:
            self._control.setAccessibleName(f"{tr('Change rule')}: {says}")


class RulesPopup(QFrame):
    """A small window below the sentence. `commanded` switches a rule off or resumes; `setting_wanted` carries a setting's key."""

    commanded = Signal(object)
    setting_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setProperty("kind", "popover")
        self.setAccessibleName(tr("Why it contributes or waits"))
        self._theme = theme
        self._ticks: tuple[Tick, ...] = ()
        self._rows_in_order: list[RuleRow] = []
        self._rows: QWidget = as_widget(column())
        self._rows.hide()
        self._answer, self._untold = text(theme, "", wrap=True), text(theme, "", "small", "soft", wrap=True)
        heading = text(theme, tr("Your rules"), "heading")
        self._box = column(self._answer, heading, self._rows, self._untold, gap=10, margins=(18, 14, 18, 16))
        self.setLayout(self._box)
        self.setFixedWidth(theme.px(440))

    def show_ticks(self, ticks: Sequence[Tick], answer: str = "") -> None:
        """List the rules. A row stays while its rule does: replacing it each time a temperature changes would lose a press."""
        before, self._ticks = self._ticks, tuple(tick for tick in ticks if tick.passes is not None)
        untold = len(ticks) - len(self._ticks)
        counted = plural(
            untold,
            "%n rule can't be checked on this computer, so it's ignored.",
            "%n rules can't be checked on this computer, so they're ignored.",
        )
        for label, words in ((self._answer, answer), (self._untold, counted if untold else "")):
            label.setText(words)
            label.setVisible(bool(words))
        if list(map(row_shape, self._ticks)) != list(map(row_shape, before)):
            self._make_rows()
        for row_widget, tick in zip(self._rows_in_order, self._ticks, strict=True):
            row_widget.say(tick)  # even if unchanged: its switch may be off after a refused command

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:  # a row was added, or has a longer text
            self._fit()
        return done

    def _fit(self) -> None:
        """Fit the height to the text at the fixed width; adjustSize() would use the preferred width instead."""
        self.resize(self.maximumWidth(), self._box.totalHeightForWidth(self.maximumWidth()))

    def _make_rows(self) -> None:
        self._rows_in_order = [RuleRow(self._theme, tick) for tick in self._ticks]
        for row_widget in self._rows_in_order:
            row_widget.switched_off.connect(self._switch_off)
            row_widget.change_wanted.connect(self._change)
        fresh = as_widget(column(*self._rows_in_order, gap=10))
        self._box.replaceWidget(self._rows, fresh)
        self._rows.deleteLater()
        self._rows = fresh
        fresh.setVisible(bool(self._rows_in_order))

    def open_below(self, button: QWidget) -> None:
        self._fit()
        corner = button.mapToGlobal(QPoint(0, button.height() + 6))
        window = button.window().frameGeometry()
        x = max(window.left() + 8, min(corner.x(), window.right() - self.width() - 8))
        self.move(x, corner.y())
        self.show()
        self.setFocus()

    def _change(self, key: str) -> None:
        self.hide()
        self.setting_wanted.emit(key)

    def _switch_off(self, rule: Rule) -> None:
        """End a pause; set any other rule so that it holds nothing back."""
        self.hide()
        if rule == "pause":
            self.commanded.emit(Resume(id=new_id()))
            return
        key, value = OFF[rule]
        self.commanded.emit(ChangeSettings(id=new_id(), values={key: value}))
