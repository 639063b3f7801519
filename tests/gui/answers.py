"""What an engine answers to the commands of a window, in tests without an engine."""

import contextlib
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication

from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.state import AnyEvent

TURNS = 4  # of the event loop, in which a coroutine gets further


def run_coroutines() -> None:
    for _ in range(TURNS):
        QCoreApplication.processEvents()


def record_commands(client: EngineClient) -> list[AnyCommand]:
    """The commands that are sent from now on."""
    sent, send = list[AnyCommand](), client._send

    def record_and_send(command: AnyCommand) -> bool:
        sent.append(command)
        return send(command)

    client._send = record_and_send
    return sent


def newest(window: MainWindow, *kinds: type[AnyEvent]) -> str:
    """The id of the newest command whose answer is awaited, or of the newest that awaits one of these kinds; empty: none."""
    waits = window.pages._context.client._awaited
    return next((name for name, each in reversed(waits.items()) if not kinds or each.kind in kinds), "")


def answer(window: MainWindow, *received: AnyEvent) -> None:
    """Answer the newest command that awaits these events."""
    _tell(window, *received, events.CommandDone(id=newest(window, *map(type, received))))


def refuse(window: MainWindow, title: str, advice: str = "", command: str = "") -> None:
    """Refuse a command, or else the newest one."""
    _tell(window, events.CommandRefused(id=command or newest(window), title=title, advice=advice))


def _tell(window: MainWindow, *received: AnyEvent) -> None:
    for event in received:
        window._store.take(event)
    window._store.flush()
    run_coroutines()


@contextlib.contextmanager
def without_engine(window: MainWindow) -> Iterator[None]:
    """Let no engine take the commands of a window, and let what awaits their answers know."""
    client = window.pages._context.client
    send, client._send = client._send, lambda _command: False
    yield
    run_coroutines()
    client._send = send
