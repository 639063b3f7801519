"""When to query the days from the engine, and how often peers took groups, in words."""

from waggle.gui.i18n.formatting import plural, tr
from waggle.gui.i18n.placeholders import RESTING
from waggle.protocol.events import Ready
from waggle.protocol.events_identity import DailyTotals
from waggle.protocol.state import State


def groups_taken_text(days: DailyTotals, state: State) -> str:
    """How often peers took groups from this computer, in words: a group that two of them took counts twice."""
    if days.groups_pulled:
        return plural(days.groups_pulled, "examples fetched once", "examples fetched %n times")
    return tr("Nothing leaves this computer") if state.reach == "solo" else tr("Nobody yet")


ASK_AGAIN = 25  # rounds


class QuerySchedule:
    """When to query the engine's history: once for each engine that becomes ready, and again after some rounds."""

    def __init__(self, rounds: int = ASK_AGAIN) -> None:
        self._rounds = rounds
        self._last_query: tuple[Ready, int] | None = None

    def now(self, state: State) -> bool:
        """Whether to query now; True counts as a query."""
        if state.ready is None or state.phase in RESTING:
            return False
        if (
            self._last_query is not None
            and self._last_query[0] is state.ready
            and state.round - self._last_query[1] < self._rounds
        ):
            return False
        self._last_query = (state.ready, state.round)
        return True


class QueryWhileWaiting:
    """When to query the engine's history before it is ready: once while it waits for a choice, and nothing is known yet."""

    def __init__(self) -> None:
        self._has_queried = False

    def now(self, state: State) -> bool:
        """Whether to query now; True counts as a query."""
        if not state.waits_for_choice:
            self._has_queried = False
            return False
        asks = not self._has_queried and state.ready is None and not state.history_scores
        self._has_queried = True
        return asks
