"""An engine on another computer, whose clock and time zone differ: ages and days are by its own."""

import datetime
import os
import time

import pytest

from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import zone
from waggle.gui.i18n.formatting import clock, date_of
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.home.page import HomePage
from waggle.gui.state.engine_clock import TRUSTED_S, EngineClock
from waggle.gui.state.store import StateStore
from waggle.protocol import events
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.figures.daily_totals import day_on, engine_date, totals
from waggle.protocol.schedule import ScheduleDecision
from waggle.protocol.state import State
from waggle.protocol.zone import time_there

HERE = 1_795_000_000.0  # Wednesday, 18 November 2026, 11:06 UTC


@pytest.fixture
def tokyo(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    zone.use(None)
    monkeypatch.undo()
    time.tzset()


def at(moment):
    return events.PhaseChanged(phase="contributing", round=1, at=moment)


@pytest.mark.parametrize("ahead", [-5400.0, 1200.0])
def test_now_is_the_time_of_the_far_engine(ahead, qapp):
    here = [HERE]
    store = StateStore(clock=lambda: here[0], far=True)
    store.take(at(HERE + ahead - 7.0))  # a slow way
    store.take(at(HERE + ahead))
    here[0] += 300.0
    assert store.now() == HERE + ahead + 300.0
    assert store.now() - store.state.phase_since == 300.0, "an age counts on, and is never negative"


def test_an_engine_here_and_small_differences_change_nothing(qapp):
    near, far = StateStore(clock=lambda: HERE), StateStore(clock=lambda: HERE, far=True)
    near.take(at(HERE - 5400.0))
    far.take(at(HERE - 30.0))
    assert (near.now(), far.now()) == (HERE, HERE)


def test_a_clock_that_is_set_there_is_followed_and_the_windows_own_events_say_nothing():
    passed = [0.0]
    clock = EngineClock(lambda: HERE, lambda: passed[0])
    clock.observe(at(HERE - 5400.0))
    clock.observe(events.EngineGone(code=1, restarts=0, at=HERE))
    clock.observe(at(0.0))
    assert clock.ahead == -5400.0
    passed[0] = TRUSTED_S + 1
    clock.observe(at(HERE - 7200.0))
    assert clock.ahead == -7200.0


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no tzset")
def test_answers_of_today_are_those_of_the_engines_day(tokyo):
    """In Tokyo it is Thursday already when the engine's Wednesday, in UTC, is still under way."""
    evening = datetime.datetime(2026, 11, 18, 16, 0, tzinfo=datetime.UTC).timestamp()
    day = Day(date="2026-11-18", rounds=4, answers=256)
    state = State(days=DailyTotals(days=(day,), all=day, utc_offset=0))
    assert datetime.datetime.fromtimestamp(evening).astimezone().date().isoformat() == "2026-11-19", os.environ["TZ"]
    assert day_on(totals(state), engine_date(state, evening).isoformat()).answers == 256


def test_an_engine_of_an_earlier_version_tells_no_zone():
    assert engine_date(State(), HERE) == datetime.datetime.fromtimestamp(HERE).astimezone().date()


def days(utc_offset):
    return DailyTotals(days=(), all=Day(date="2026-11-18", rounds=0, answers=0), utc_offset=utc_offset)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no tzset")
def test_the_window_names_the_far_computer_and_says_once_that_its_zone_is_another(tokyo, theme, qtbot, qapp):
    """In Tokyo it is 20:06 when it is 11:06 where the engine runs, in UTC."""
    store = StateStore(clock=lambda: HERE, far=True)
    window = MainWindow(PageContext(theme, store=store, engine=EngineHost(home=None, name="nas-kiel", can_start=lambda: False)))
    qtbot.addWidget(window)
    window.show()
    notices = []
    window.notices.show = notices.append
    home = window.pages.of(HomePage)
    for event in (ready(at=HERE), at(HERE)):
        store.take(event)
    store.flush()
    assert window.windowTitle() == "Waggle on nas-kiel"
    assert home.hero._computer.words() == "On nas-kiel"
    assert notices == []
    for _ in range(2):
        store.take(days(0))
        store.flush()
    assert home.hero._computer.words() == "11:06 on nas-kiel"
    (notice,) = notices
    assert notice.startswith("nas-kiel is in another time zone, where it is 11:06.")
    assert notice.endswith("All times, days and your week are told as they are there.")
    assert time_there(9 * 3600, HERE) == "", "the same zone"
    assert time_there(None, HERE) == "", "not known yet"


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no tzset")
@pytest.mark.parametrize(("far", "time_of_day", "date"), [(True, "16:00", 18), (False, "01:00", 19)])
def test_times_and_dates_are_written_in_the_zone_of_a_far_engine_from_its_first_decision_on(tokyo, qapp, far, time_of_day, date):
    """In Tokyo it is Thursday already when the engine's Wednesday, in UTC, is still under way."""
    evening = datetime.datetime(2026, 11, 18, 16, 0, tzinfo=datetime.UTC).timestamp()
    store = StateStore(clock=lambda: evening, far=far)
    store.take(events.RulesChecked(at=evening, decision=ScheduleDecision(standing="contributing", utc_offset=0)))
    assert (clock(evening), date_of(evening).day) == (time_of_day, date)
    store.take(days(9 * 3600))
    assert store.state.utc_offset == 0, "the newer of both is the decision, which is made again and again"
