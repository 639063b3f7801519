"""Coroutines of the window, each with an owner: they end with it, and what goes wrong in them is a fault like any other."""

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from typing import Any

import shiboken6
from PySide6.QtCore import QMetaObject, QObject

Task = asyncio.Task[None]
_running = set[Task]()  # asyncio itself keeps no task alive


def start(owner: QObject, work: Coroutine[Any, Any, None]) -> Task:
    """Run a coroutine from the next turn of the event loop on. It is cancelled when its owner is deleted."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(partial(_finish, owner, owner.destroyed.connect(lambda: task.cancel())))
    return task


def _finish(owner: QObject, ending: QMetaObject.Connection, task: Task) -> None:
    _running.discard(task)
    if shiboken6.isValid(owner):
        QObject.disconnect(ending)
    if not task.cancelled() and (error := task.exception()) is not None:
        sys.excepthook(type(error), error, error.__traceback__)
