"""Energy in words: today, in total, the formula, the price; and no claim before the first round."""

import pytest
from msgspec.structs import replace

from gui.recorded import ready
from waggle.core.settings import ComputerSettings, ScheduleSettings, Settings
from waggle.gui.widgets.energy_footprint import energy, footprint, of_today
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.state import State

DAYS = DailyTotals(
    days=(
        Day(date="2026-03-08", rounds=1, answers=1, seconds=3600.0),
        Day(date="2026-03-09", rounds=1, answers=1, seconds=7200.0),
    ),
    all=Day(date="2026-01-05", rounds=9, answers=9, seconds=360_000.0),
)
STATE = State(ready=ready(threads=2, device="cpu"), days=DAYS)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0.0, "0 Wh"), (0.0004, "<1 Wh"), (0.0006, "1 Wh"), (0.024, "24 Wh"), (0.214, "0.21 kWh"), (12.0, "12.00 kWh")],
)
def test_small_figures_are_not_all_zeros(number: float, words: str) -> None:
    assert energy(number) == words


def test_today_and_all_the_formula_and_no_price_are_said() -> None:
    assert footprint(STATE, "2026-03-09") == (
        "24 Wh today, 1.20 kWh since 5 Jan 2026: about as much as a laptop takes in 1 d 16 h.",
        "Estimated from the time contributed, at 12 W now (2 cores of 6 W each).",
        "",
    )


def test_the_first_minutes_are_one_plain_sentence() -> None:
    first = Day(date="2026-03-09", rounds=3, answers=9, seconds=138.0)
    words, *_ = footprint(replace(STATE, days=DailyTotals(days=(first,), all=first)), "2026-03-09")
    assert words == "Less than 1 Wh so far: as much as a laptop uses in about 55 s."


def test_a_price_and_a_budget_of_ones_own_are_said() -> None:
    chosen = Settings(computer=ComputerSettings(watts=100.0, price_kwh=0.3), when=ScheduleSettings(kwh_a_day=0.5))
    much, how, cost = footprint(replace(STATE, settings=chosen), "2026-03-09")
    assert much.startswith("0.20 kWh today, 10.00 kWh since")
    assert how.endswith("at 100 W now (as you set it).")
    price, limit = (
        "At your price of 0.30 for a kWh that is 0.06 today and 3.00 in all.",
        "It pauses once it has used 0.50 kWh in a day.",
    )
    assert cost == f"{price} {limit}"


def test_cores_that_were_chosen_since_the_start_count_at_once() -> None:
    one_core = replace(STATE, settings=Settings(computer=ComputerSettings(threads=1)))
    assert footprint(one_core, "2026-03-09")[1].endswith("at 6 W now (1 core of 6 W).")
    assert of_today(one_core, "2026-03-09")[0] == "12"


def test_before_anything_is_known_nothing_is_claimed() -> None:
    nothing = DailyTotals(
        days=(), all=Day(date="1970-01-01", rounds=0, answers=0)
    )  # what an engine tells at its very first start
    for state in (State(), replace(STATE, days=nothing)):
        assert footprint(state, "2026-03-09") == ("Worked out from the first round on.", "", "")
