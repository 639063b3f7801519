"""Energy used today and in total: the estimate, its formula, and its cost at the price in the settings."""

import datetime

from PySide6.QtWidgets import QFrame

from waggle.core.settings import Settings
from waggle.gui.i18n.formatting import decimal, duration, tr, whole_day
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.usage_profile import threads_now
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import text
from waggle.protocol.figures.current import kwh_ever, kwh_on, power_now
from waggle.protocol.figures.daily_totals import totals
from waggle.protocol.figures.energy_estimate import JOULES_PER_KWH, formula
from waggle.protocol.state import State

LAPTOP_WATTS = 30.0
LITTLE = "<1 Wh"


def energy(number: float) -> str:
    """kWh in words: "0.21 kWh", "12 Wh" below 0.1 kWh, "<1 Wh" where that would round to 0."""
    if number >= 0.1:
        return f"{decimal(number, 2)} kWh"
    return LITTLE if 0 < number < 0.0005 else f"{number * 1000:.0f} Wh"


def of_today(state: State, date: str) -> tuple[str, str, str]:
    """Figure, unit and a comparison for a date; empty until the engine is ready."""
    if state.ready is None:
        return "", "", ""
    used = kwh_on(state, date, threads_now(state))
    number, unit = energy(used).split(" ")
    laptop = tr("About as much as a laptop in %1").replace("%1", _laptop(used))
    return number, tr("%1, estimated").replace("%1", unit), laptop if used else tr("Nothing yet today")


def footprint(state: State, date: str) -> tuple[str, str, str]:
    """Three texts: how much, how it is estimated, and cost and budget (empty without a price and a budget)."""
    days = totals(state)
    if state.ready is None or state.days is None or not days.all.rounds:
        return tr("Worked out from the first round on."), "", ""
    settings, threads = state.settings or Settings(), threads_now(state)
    today, ever = kwh_on(state, date, threads), kwh_ever(state, date, threads)
    if energy(ever) == LITTLE:
        much = tr("Less than 1 Wh so far: as much as a laptop uses in about %1.").replace("%1", _laptop(ever))
    else:
        much = tr("%1 today, %2 since %3: about as much as a laptop takes in %4.").replace("%1", energy(today))
        much = much.replace("%2", energy(ever)).replace("%3", whole_day(datetime.date.fromisoformat(days.all.date)))
        much = much.replace("%4", _laptop(ever))
    how = tr("Estimated from the time contributed, at %1 W now (%2).").replace("%1", f"{power_now(state, threads):.0f}")
    how = how.replace("%2", tr(formula(settings.computer, threads, state.ready.device)))
    return much, how, " ".join(part for part in (_cost(settings, today, ever), _budget(settings)) if part)


def _laptop(used: float) -> str:
    """How long a laptop takes as much."""
    return duration(used * JOULES_PER_KWH / LAPTOP_WATTS)


def _cost(settings: Settings, today: float, ever: float) -> str:
    """The cost of these kWh."""
    price = settings.computer.price_kwh
    if not price:
        return ""
    words = tr("At your price of %1 for a kWh that is %2 today and %3 in all.").replace("%1", decimal(price, 2))
    return words.replace("%2", decimal(price * today, 2)).replace("%3", decimal(price * ever, 2))


def _budget(settings: Settings) -> str:
    most = settings.when.kwh_a_day
    return tr("It pauses once it has used %1 in a day.").replace("%1", f"{decimal(most, 2)} kWh") if most else ""


class EnergyCard(QFrame):
    """Energy used by contributing; power, price and budget are set in Settings."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._lines = [
            text(theme, "", role, tone, wrap=True) for role, tone in (("body", "text"), ("small", "soft"), ("small", "soft"))
        ]
        head = row(Icon(theme, "bolt", "accent_text", 18), text(theme, tr("Energy"), "heading"), None, gap=8)
        hint = text(theme, tr("Set your own watts, a price and a daily limit in Settings."), "small", "faint", wrap=True)
        self.setLayout(column(head, *self._lines, hint, None, gap=4, margins=(20, 16, 20, 16)))

    def show_state(self, state: State, date: str) -> None:
        for line, words in zip(self._lines, footprint(state, date), strict=True):
            line.setText(words)
            line.setVisible(bool(words))
