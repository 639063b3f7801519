"""What training costs now: energy today, the processor, and its heat."""

from PySide6.QtWidgets import QFrame, QWidget

from waggle.gui.i18n.formatting import percent, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.usage_profile import cores_in_use
from waggle.gui.widgets.energy_footprint import of_today
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.state import State


class CostCard(QFrame):
    """Lines with what the engine last measured; one says so while the system is kept awake."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.energy, self.cpu, self.heat = (ElidedLabel(theme, role="label", right=True) for _ in range(3))
        self.sleep = ElidedLabel(theme, role="label", right=True)
        names = (tr("Energy today"), tr("Processor"), tr("Temperature"), tr("Sleep"))
        self._values = (self.energy, self.cpu, self.heat, self.sleep)
        self._lines: list[QWidget] = [
            as_widget(row(text(theme, name, "small", "soft"), (value, 1)))
            for name, value in zip(names, self._values, strict=True)
        ]
        for line in self._lines:
            line.hide()  # until something is known
        self._box = column(text(theme, tr("What does it cost?"), "label", "soft"), 2, *self._lines, None, gap=5)
        self.setLayout(self._box)
        self.set_compact(False)

    def set_compact(self, compact: bool) -> None:
        self._box.setSpacing(1 if compact else 5)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 10 if compact else 14)

    def show_state(self, state: State, today: str) -> None:
        load, awake = state.load, state.awake
        holds = awake is not None and awake.holds
        words = "" if awake is None else tr("Kept awake") if holds else tr("Cannot be held off")
        self._say(3, words, tr("Only while your model trains; you chose it in Settings.") if holds else "")
        known = state.ready is not None and (state.days is not None or bool(state.rounds))
        number, unit, compared = of_today(state, today) if known else ("", "", "")
        self._say(0, f"{number} {unit}" if known else "", compared)
        works = load is not None and state.phase in ("contributing", "finishing")
        self._say(1, percent(load.cpu) if load is not None and works else "", _device_words(state))
        celsius = load.celsius if load is not None else None
        self._say(2, f"{celsius:.0f} °C" if celsius is not None else "")  # many systems do not tell

    @property
    def has_figures(self) -> bool:
        """Whether anything is known."""
        return not all(line.isHidden() for line in self._lines)

    def _say(self, place: int, words: str, tip: str = "") -> None:
        """Show a line with what is known, and hide it while nothing is."""
        self._lines[place].setVisible(bool(words))
        self._values[place].say(words)
        set_tip(self._values[place], tip if words else "")


def _device_words(state: State) -> str:
    """The cores that are used, and the device with its reason."""
    if state.ready is None:
        return ""
    return "\n".join((cores_in_use(state), ": ".join(filter(None, (state.ready.backend, tr(state.ready.device_reason))))))
