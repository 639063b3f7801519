"""The events of `waggle engine` on a terminal: a line for each round, and below them what happens now."""

import logging
import os
import queue
import sys
import threading
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from waggle.cli.watch.words import first_answer_line, live_line, round_line
from waggle.core.message import plain
from waggle.core.peer_id import with_fingerprint
from waggle.protocol import events, json_lines
from waggle.protocol.figures.current import newest_score
from waggle.protocol.peer_names import own_name
from waggle.protocol.state import AnyEvent, State, apply

REFRESH_SECONDS = 0.25
HINT = "`waggle top` in another terminal shows more. Ctrl+C stops the engine; everything is kept."


class TerminalWriter:
    """Takes the engine's events as lines, and shows them in a thread of its own, so that a terminal never blocks the engine."""

    def __init__(self, descriptor: int) -> None:
        self._console = Console(file=os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace"), highlight=False)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = self._shown_bytes = 0  # bytes; each is written by one thread only
        self._state = State()
        self._thread = threading.Thread(target=self._show, name="terminal", daemon=True)
        self._thread.start()

    def __call__(self, line: bytes) -> None:
        self._queued += len(line)
        self._lines.put(line)

    def unwritten_bytes(self) -> int:
        """The bytes that wait to be shown."""
        return self._queued - self._shown_bytes

    def close(self) -> None:
        """Show the remaining events, for at most five seconds."""
        self._lines.put(None)
        self._thread.join(5.0)

    def _show(self) -> None:
        """Show events until None comes."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            _log_above(live)
            drawn_at = 0.0
            while True:
                try:
                    line = self._lines.get(timeout=REFRESH_SECONDS)
                except queue.Empty:
                    line = b""
                if line is None:
                    return
                if line:
                    self._take(json_lines.event(line), live.console)
                    self._shown_bytes += len(line)
                if time.monotonic() - drawn_at >= REFRESH_SECONDS:
                    drawn_at = time.monotonic()
                    live.update(Text(live_line(self._state), style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)

    def _take(self, event: AnyEvent, console: Console) -> None:
        """Fold an event into the State, and print what stays on the screen."""
        self._state = state = apply(self._state, event)
        match event:
            case events.Ready():
                name = with_fingerprint(own_name(event), event.node)
                console.print(Text(plain(f"{name} trains {event.model} on {event.device} in {event.swarm}.")))
                console.print(Text(HINT, style="dim"))
            case events.RoundCompleted():
                line = Text(round_line(event.summary, newest_score(state), len(state.members), console.width))
                line.highlight_regex(r"reward \S+|held-out +\S+", "bold")
                console.print(line)
            case events.AhaHappened():
                console.print(Text(first_answer_line(state.ahas[-1]), style="green"))
            case events.Warned():
                console.print(Text(plain(f"{event.title} {event.advice}".strip()), style="yellow"))
            case events.EngineStopped():
                console.print(Text("Stopped. Everything is kept."))


def _log_above(live: Live) -> None:
    """Let what is logged on stderr appear above the live line, which it would break otherwise."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.__stderr__ and live.console.is_terminal:
            handler.setStream(sys.stderr)  # which rich has replaced
