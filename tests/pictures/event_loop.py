"""The event loop of windows that are shown for a picture or a measurement."""

import asyncio
import atexit

import qasync

from waggle.gui.application.main import application


def application_with_coroutines() -> None:
    """Make the application, and an event loop in which its windows can await answers, unless one runs."""
    app = application()
    if asyncio._get_running_loop() is None:
        runner = asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app))
        asyncio._set_running_loop(runner.get_loop())
        atexit.register(_end, runner)


def _end(runner: asyncio.Runner) -> None:
    """Cancel what still waits while there is a Qt to do it with."""
    asyncio._set_running_loop(None)
    runner.close()
