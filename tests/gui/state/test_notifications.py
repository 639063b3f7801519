"""New warnings, and guards, which are said once for as long as they act."""

from msgspec.structs import replace

from waggle.gui.state.notifications import new_warnings, recent_warnings
from waggle.protocol.events import Warned
from waggle.protocol.events_guards import Guard
from waggle.protocol.state import State

NOW = 1000.0
GUARD = Guard(name="traffic", says="The limit makes answers wait.", ends="Raise it.", since=NOW - 70)
OLD, NEW = (Warned(title=title, advice="", at=NOW - 5) for title in ("The clock is slow.", "The disk is full."))


def test_a_guard_is_new_once_though_its_figures_move() -> None:
    before, acting = State(warnings=(OLD,)), State(warnings=(OLD,), guards=(GUARD,))
    assert [warned.title for warned in new_warnings(before, acting, NOW)] == [GUARD.says]
    later = replace(acting, guards=(replace(GUARD, says="The limit of 5 kB/s makes answers wait."),))
    assert new_warnings(acting, later, NOW) == []
    assert len(recent_warnings(later, NOW)) == 2, "Home shows it as long as it acts"
    assert [warned.title for warned in new_warnings(State(), later, NOW)] == [OLD.title, later.guards[0].says], "it came back"


def test_a_warning_is_new_if_it_was_not_there_and_is_recent() -> None:
    before = State(warnings=(OLD,))
    assert new_warnings(before, State(warnings=(NEW, OLD)), NOW) == [NEW]
    assert new_warnings(before, State(warnings=(replace(NEW, at=0.0), OLD)), NOW) == []
