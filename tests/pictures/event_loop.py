"""The event loop of windows that are shown for a picture or a measurement."""

import asyncio

import qasync

from waggle.gui.application.main import application


def application_with_coroutines() -> None:
    """Make the application, and an event loop in which its windows can await answers, unless one runs."""
    app = application()
    if asyncio._get_running_loop() is None:
        asyncio._set_running_loop(qasync.QEventLoop(app))
