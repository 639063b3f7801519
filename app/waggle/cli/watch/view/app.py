"""`waggle top` as an application of textual: it follows an engine, shows it, and passes on what a person asks for."""

import asyncio
import dataclasses
import signal
import sys
import time
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.theme import BUILTIN_THEMES
from textual.widgets import DataTable, Footer

from waggle.cli.shared.engine import ask
from waggle.cli.shared.outcome import INTERRUPTED
from waggle.cli.watch.followed import FollowedEngine
from waggle.cli.watch.view import panels
from waggle.cli.watch.view.chart import Chart
from waggle.cli.watch.view.dialogs import Notice, PauseChoice
from waggle.cli.watch.view.log_lines import LogLines
from waggle.cli.watch.view.peer_table import PeerTable
from waggle.cli.watch.view.words import Words, entitle
from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.core.message import plain
from waggle.protocol import commands
from waggle.protocol.state import State
from waggle.protocol.text import pauses
from waggle.protocol.text.status_text import Action, sentence

REFRESH_SECONDS = 0.25
# The terminal's own colours, so that it can be read on a light and on a dark background.
PLAIN = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active", "scrollbar-corner-color")
THEME = dataclasses.replace(
    BUILTIN_THEMES["ansi-dark"],
    name="waggle",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables, **dict.fromkeys(PLAIN, "ansi_default"), "footer-key-foreground": "ansi_blue",
    },
)  # fmt: skip
HELP = """\
p         pause, for as long as you choose; resume
t         train although your rules say to wait
s         sort the peers by the next column; a click on one does, too
Enter     all about the chosen peer
↑ ↓ ← →   scroll the peers; Page Up and Page Down by a page
Tab       from the peers to the log, and back
q         leave; the engine keeps running

A round: questions are picked, the model answers each several times, \
the answers are judged, examples are shared with peers, theirs are \
gathered, and the model learns from all.

The held-out score counts right answers to questions that nobody \
trains on."""


class Top(App[int]):
    """Returns the exit code."""

    CSS = """
    #heading { height: 1; text-style: bold reverse; text-wrap: nowrap; }
    #status { height: auto; min-height: 2; max-height: 3; padding: 0 1; }
    .panel { border-top: solid $primary; border-title-color: $foreground; border-title-style: bold; padding: 0 1; }
    #loop { height: 3; Words { text-wrap: nowrap; text-overflow: ellipsis; } }
    #figures { height: auto; max-height: 2; padding: 0 1; }
    #charts { height: 6; }
    #peers { height: 1fr; min-height: 3; }
    #log { height: 3; }
    #nobody { height: 1; display: none; }
    #peers.-empty { PeerTable { display: none; } #nobody { display: block; } }
    .-stale { text-style: dim; }
    Toast, Toast.-error { background: $background; color: $foreground; border: round $error; padding: 0 1; }
    Footer { background: $background; FooterKey { background: $background; } }

    .-tall { #charts { height: 2fr; min-height: 11; max-height: 22; } #peers { height: 3fr; } #log { height: 2fr; } }
    .-narrow { #status { max-height: 4; } #reward { display: none; } }
    .-short { #charts, #log, #figures { display: none; } }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-wide")]  # noqa: RUF012 - as textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-medium"), (30, "-tall")]  # noqa: RUF012
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "PeerTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Leave"),
        Binding("p", "pause", "Pause"),
        Binding("p", "resume", "Resume"),
        Binding("t", "train_anyway", "Train anyway"),
        Binding("s", "sort", "Sort"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, home: paths.Home, engine: FollowedEngine, host: str) -> None:
        super().__init__(ansi_color=True)  # said here, so that NO_COLOR leaves the terminal's own two colours
        self._engine_home, self._engine, self._host = home, engine, host
        self._heading_line, self._status_lines, self._figures_line = Words(id="heading"), Words(id="status"), Words(id="figures")
        self._loop_panel, self._steps = Vertical(id="loop", classes="panel"), Words()
        self._score_chart = Chart("$success", "{:.0%}".format, id="score", classes="panel")
        self._reward_chart = Chart("$secondary", "{:.2f}".format, id="reward", classes="panel")
        self._peers_panel, self._peer_table = Vertical(id="peers", classes="panel"), PeerTable()
        self._log_lines = LogLines(home.logs)
        self._offered: Action = "none"  # what the status offers
        self._drawn: tuple[State | None, str, Size] = (None, "", Size())
        self.register_theme(THEME)
        self.theme = THEME.name

    def compose(self) -> ComposeResult:
        yield self._heading_line
        yield self._status_lines
        with self._loop_panel:
            yield self._steps
        yield self._figures_line
        with Horizontal(id="charts"):
            yield self._score_chart
            yield self._reward_chart
        with self._peers_panel:
            nobody = Words(id="nobody")
            nobody.show(Content("No peer has been met yet."))
            yield nobody
            yield self._peer_table
        with Vertical(id="log", classes="panel") as frame:
            frame.border_title = "Log"
            yield self._log_lines
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.run_worker(self._engine.follow(), exclusive=True, group="engine")
        self.set_interval(REFRESH_SECONDS, self._show_engine)
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, self.action_interrupt)
            loop.add_signal_handler(signal.SIGTERM, self.exit)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_engine)

    def _show_engine(self) -> None:
        """Show the newest State. Each part is drawn again only if it says something else."""
        state, trouble = self._engine.state, self._engine.trouble
        if state is self._drawn[0] and (trouble, self.size) == self._drawn[1:]:
            return
        self._drawn = state, trouble, self.size
        room = max(20, self.size.width - 4)  # cells within a panel
        self._heading_line.show(panels.heading(state, self._host, self.size.width))
        self._status_lines.show(panels.status(state, trouble))
        entitle(self._loop_panel, panels.loop_title(state))
        self._steps.show(panels.loop(state, room))
        self._figures_line.show(panels.figures(state))
        rewards, scores = panels.rewards(state), panels.scores(state)
        ends = [points[end][0] for points in (rewards, scores) if points for end in (0, -1)]
        first, last = min(ends, default=0), max([*ends, state.round])
        self._score_chart.show(panels.score_title(state), scores, first, last)
        self._reward_chart.show(panels.reward_title(state), rewards, first, last)
        entitle(self._peers_panel, panels.peers_title(state))
        self._peers_panel.set_class(not state.peers, "-empty")
        self._peer_table.show(state.peers.values())
        self._note_action("none" if trouble else sentence(state).action)
        for panel in self.query(".panel, #figures"):
            panel.set_class(bool(trouble), "-stale")

    def _note_action(self, action: Action) -> None:
        if action != self._offered:
            self._offered = action
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Whether a key does something now."""
        match action:
            case "pause":
                return self._offered in ("pause", "pause_now", "anyway")
            case "resume":
                return self._offered == "resume"
            case "train_anyway":
                return self._offered == "anyway"
            case _:
                return True

    def action_pause(self) -> None:
        """Let a person choose how long."""
        now = time.time()  # of this computer, on which the engine runs
        self.push_screen(PauseChoice([("Until I resume", pauses.at_once()), *pauses.for_a_while(now)]), self._send)

    def action_resume(self) -> None:
        self._send(commands.Resume(id=commands.new_id()))

    def action_train_anyway(self) -> None:
        self.action_resume()

    def _send(self, command: commands.AnyCommand | None) -> None:
        if command is not None:
            self.run_worker(self._ask(command))

    async def _ask(self, command: commands.AnyCommand) -> None:
        try:
            await asyncio.to_thread(ask, self._engine_home, command)
        except WaggleError as error:  # it ends, or is in the middle of a step
            self.notify(plain(f"{error.title} {error.advice}"), severity="error", markup=False)

    def action_sort(self) -> None:
        self._peer_table.sort_by_next()

    def action_help(self) -> None:
        self.push_screen(Notice(Content("Keys of `waggle top`"), Content(HELP)))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if (peer := self._peer_table.peer_at(event.row_key.value)) is not None:
            self.push_screen(Notice(Content(plain(peer.name)), panels.about_peer(peer, time.time())))

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)
