"""What the window hands to every page when it makes it."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from PySide6.QtCore import QObject, Signal

from waggle.core import paths
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.state.day_query import QuerySchedule
from waggle.gui.state.event_log import EventLog
from waggle.gui.state.problem_report import report
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.protocol.state import State

HISTORY_ROUNDS = 100  # rounds from one query of the history to the next


class PageRequests(QObject):
    """What pages ask of the window and of the application around it.

    `page` carries the name of a page and the part of it to show, or "". `data_removal` carries the kinds of data. `defaults`:
    rename the settings file, which is unusable, and start the engine with the defaults. `example`: open a second window with a
    recorded swarm.
    """

    page = Signal(str, str)
    engine_start = Signal()
    defaults = Signal()
    data_removal = Signal(object)
    example = Signal()


@dataclass(frozen=True, kw_only=True)
class EngineHost:
    """Where the engine of a window runs, and whether the window could start it now.

    `home` is None if it is on another computer, or if the window shows a recording. `name` is the ssh destination of another
    computer, else empty.
    """

    home: paths.Home | None = None
    name: str = ""
    can_start: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class PageContext:
    """What pages have in common: each of them gets it in its constructor, and nothing later.

    `client` sends commands to the engine, and awaits its answers. `history` says when to query the engine's rounds. Pages that
    show them share it, so that only the first one that is shown queries. `views` has the view of a page that a person chose last.
    """

    theme: Theme
    _: KW_ONLY
    store: StateStore = field(default_factory=StateStore)
    settings: SettingsStore = field(default_factory=lambda: SettingsStore(None))
    event_log: EventLog = field(default_factory=EventLog)
    engine: EngineHost = EngineHost()
    client: EngineClient = field(default_factory=EngineClient)
    history: QuerySchedule = field(default_factory=lambda: QuerySchedule(HISTORY_ROUNDS))
    requests: PageRequests = field(default_factory=PageRequests)
    views: dict[str, int] = field(default_factory=dict)

    def report(self, state: State) -> str:
        """A problem report with the newest lines of the log."""
        home = self.engine.home
        return report(state, self.event_log.lines(), home.root if home is not None else None, self.engine.name)
