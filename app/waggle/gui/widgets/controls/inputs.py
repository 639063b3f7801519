"""Input controls of settings: switch, combo box, number, text. `changed` carries the value that a person entered."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QLocale, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QDoubleSpinBox, QLineEdit, QSizePolicy

from waggle.core.settings import Value
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.theme.theme import Theme

DISABLED = 0.4  # opacity of a disabled switch


class Switch(QAbstractButton):
    """A toggle switch; the position of the knob shows its state, not only the colour."""

    changed = Signal(object)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(QSize(theme.px(44), theme.px(26)))
        self.clicked.connect(lambda: self.changed.emit(self.isChecked()))

    def show_value(self, value: Value) -> None:
        self.setChecked(bool(value))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(1.0 if self.isEnabled() else DISABLED)
        on, place = self.isChecked(), QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.setPen(QPen(self._theme.colour("focus" if self.hasFocus() else "accent_line" if on else "control"),
                            2 if self.hasFocus() else 1.3))  # fmt: skip
        painter.setBrush(self._theme.colour("accent" if on else "sunken"))
        painter.drawRoundedRect(place, place.height() / 2, place.height() / 2)
        side = place.height() - 8
        right = on != (self.layoutDirection() == Qt.LayoutDirection.RightToLeft)
        x = place.right() - side - 4 if right else place.left() + 4
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("on_accent" if on else "control"))
        painter.drawEllipse(QRectF(x, place.top() + 4, side, side))
        painter.end()


class ComboBox(QComboBox):
    """A combo box of values. The mouse wheel scrolls the page instead of changing the value."""

    changed = Signal(object)

    def __init__(self, theme: Theme, name: str, options: Sequence[tuple[Value, str]]) -> None:
        super().__init__()
        self._theme = theme
        self._values = [value for value, _words in options]
        self.addItems([words for _value, words in options])
        self.setFont(theme.font("label"))
        self.view().setFont(theme.font("body"))
        self.view().setAccessibleName(name)
        self.setAccessibleName(name)
        self.setFixedHeight(theme.size["control"])
        self.setMinimumWidth(theme.px(180))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.activated.connect(lambda place: self.changed.emit(self._values[place]))

    def show_value(self, value: Value) -> None:
        """Show a value; one that is not among the options, from a file edited by hand, is added."""
        if value not in self._values:
            self._values.append(value)
            self.addItem(str(value))
        self.setCurrentIndex(self._values.index(value))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter, side = QPainter(self), self._theme.px(16)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        away = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        x = 8 if away else self.width() - side - 8
        self._theme.draw_icon(painter, "down", "text_soft", QRectF(x, (self.height() - side) / 2, side, side))
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Which numbers a field accepts, and how it shows them. `zero` is what 0 means, in words that the field translates."""

    minimum: float
    maximum: float
    step: float = 1
    unit: str = ""
    zero: str = ""
    whole: bool = True


class NumberField(QDoubleSpinBox):
    """A number with its unit, in the number format of the window's language."""

    changed = Signal(object)

    def __init__(self, theme: Theme, name: str, limits: Range) -> None:
        super().__init__()
        self._theme = theme
        self._whole = limits.whole
        spoken = QLocale(translator.current_language())
        self._marks = str.maketrans({} if limits.whole else dict.fromkeys(".,", spoken.decimalPoint()))
        self.setLocale(spoken)
        self.setDecimals(0 if limits.whole else 6)
        self.setRange(limits.minimum, limits.maximum)
        self.setSingleStep(limits.step)
        unit = limits.unit
        self.setSuffix(translator.number_format().percent if unit == "%" else f" {unit}" if unit else "")
        self.setSpecialValueText(tr(limits.zero))
        self.setFont(theme.font("label"))
        self.setAccessibleName(name)
        self.setFixedHeight(theme.size["control"])
        self.setMinimumWidth(theme.px(180))
        self.lineEdit().setTextMargins(10, 0, 10, 0)
        self.setKeyboardTracking(False)  # report a number when it is complete, not after each digit
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._reported = self.value()
        self.valueChanged.connect(self._emit_if_changed)

    def show_value(self, value: Value) -> None:
        """Show a value; one beyond the range, from a file edited by hand, widens the range."""
        assert isinstance(value, int | float)
        self._reported = float(value)
        with QSignalBlocker(self):  # this is no input of a person
            self.setRange(min(self.minimum(), value), max(self.maximum(), value))
            if not self.hasFocus() or self.value() != value:
                self.setValue(float(value))

    def textFromValue(self, value: float) -> str:
        return number_text(self.locale(), value)

    def validate(self, words: str, place: int) -> tuple[QValidator.State, str, int]:
        """Accept point and comma as decimal separator: Qt reads the one of the other language as a thousands separator."""
        return super().validate(words.translate(self._marks), place)

    def _emit_if_changed(self, value: float) -> None:
        if value != self._reported:
            self._reported = value
            self.changed.emit(int(value) if self._whole else value)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrows of both steps, as that of a combo box."""
        super().paintEvent(event)
        painter, side = QPainter(self), self._theme.px(14)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        away = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        painter.translate(7 if away else self.width() - side - 7, self.height() / 2)
        steps = self.stepEnabled()
        for can_step, mirrored in (
            (QAbstractSpinBox.StepEnabledFlag.StepDownEnabled, 1),
            (QAbstractSpinBox.StepEnabledFlag.StepUpEnabled, -1),
        ):
            painter.save()
            painter.scale(1, mirrored)
            painter.setOpacity(1.0 if steps & can_step and self.isEnabled() else DISABLED)
            self._theme.draw_icon(painter, "down", "text_soft", QRectF(0, 0, side, side))
            painter.restore()
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def number_text(locale: QLocale, value: float) -> str:
    """The shortest form that reads back as the same number."""
    locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
    return locale.toString(value, "f", QLocale.FloatingPointPrecisionOption.FloatingPointShortest.value)


class CodeField(QLineEdit):
    """A field for what counts letter by letter, such as a link: set in code type; its hint is set as the rest of the window."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(name)
        self.setFixedHeight(theme.size["control"])
        self.textChanged.connect(self._set_type)
        self._set_type("")

    def _set_type(self, words: str) -> None:
        self.setFont(self._theme.font("mono" if words else "body"))


class TextField(QLineEdit):
    """A line of text, or with `several` a list separated by commas."""

    changed = Signal(object)

    def __init__(self, theme: Theme, name: str, hint: str = "", *, several: bool = False) -> None:
        super().__init__()
        self._several = several
        self.setFont(theme.font("body"))
        self.setAccessibleName(name)
        self.setPlaceholderText(hint)
        self.setFixedHeight(theme.size["control"])
        self.setMinimumWidth(theme.px(220))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._reported = ""
        self.editingFinished.connect(self._emit_if_changed)

    def show_value(self, value: Value) -> None:
        """Show a value without overwriting text that is being typed."""
        before, self._reported = self._reported, ", ".join(value) if isinstance(value, tuple) else str(value or "")
        if self.text() != self._reported and (not self.hasFocus() or self.text() == before):
            self.setText(self._reported)

    def _emit_if_changed(self) -> None:
        if self.text() == self._reported:
            return
        self._reported = self.text()
        parts = tuple(part.strip() for part in self._reported.split(",") if part.strip())
        self.changed.emit(parts if self._several else self._reported.strip())
