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
        self._lines: list[QWidget] = [
            as_widget(row(text(theme, name, "small", "soft"), (value, 1)))
            for name, value in zip(names, (self.energy, self.cpu, self.heat, self.sleep), strict=True)
        ]
        self._lines[-1].hide()  # unless the system is kept awake
        self._box = column(text(theme, tr("What does it cost?"), "label", "soft"), 2, *self._lines, None, gap=5)
        self.setLayout(self._box)
        self.set_compact(False)

    def set_compact(self, compact: bool) -> None:
        self._box.setSpacing(1 if compact else 5)
        self._box.setContentsMargins(20, 10 if compact else 14, 20, 10 if compact else 14)

    def show_state(self, state: State, today: str) -> None:
        ready, load = state.ready, state.load
        self._lines[-1].setVisible(state.awake is not None)
        if state.awake is not None:
            self.sleep.say(tr("Kept awake") if state.awake.holds else tr("Cannot be held off"))
            set_tip(self.sleep, tr("Only while your model trains; you chose it in Settings.") if state.awake.holds else "")
        if ready is None:
            for value in (self.energy, self.cpu, self.heat):
                value.say("–")
            return
        known = state.days is not None or bool(state.rounds)
        number, unit, compared = of_today(state, today)
        self.energy.say(f"{number} {unit}" if known else "–")
        set_tip(self.energy, compared if known else "")
        works = state.phase in ("contributing", "finishing")
        self.cpu.say(percent(load.cpu) if works and load is not None else "–")
        set_tip(self.cpu, "\n".join((cores_in_use(state), ": ".join(filter(None, (ready.backend, tr(ready.device_reason)))))))
        celsius = load.celsius if load is not None else None
        self._lines[2].setVisible(celsius is not None)  # many systems do not tell
        self.heat.say(f"{celsius:.0f} °C" if celsius is not None else "")
