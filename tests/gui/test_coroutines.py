"""Coroutines of the window end with their owners, and their errors are faults like any others."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

import waggle
from gui.answers import run_coroutines
from waggle.gui import coroutines


async def wait(endings: list[str]) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        endings.append("ended")


def test_a_coroutine_is_cancelled_with_its_owner(qtbot: QtBot) -> None:
    owner, endings = QObject(), list[str]()
    task = coroutines.start(owner, wait(endings))
    run_coroutines()
    assert not task.done()
    shiboken6.delete(owner)
    run_coroutines()
    assert (task.cancelled(), endings, task in coroutines._running) == (True, ["ended"], False)


def test_what_goes_wrong_reaches_the_exception_hook(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise ValueError("a fault")

    faults = list[str]()
    monkeypatch.setattr("sys.excepthook", lambda _kind, error, _trace: faults.append(str(error)))
    owner = QObject()
    coroutines.start(owner, fail())
    run_coroutines()
    assert faults == ["a fault"]


def test_a_thread_is_awaited_beside_qts_events(qtbot: QtBot) -> None:
    results = list[int]()

    async def compute() -> None:
        results.append(await asyncio.to_thread(sum, (1, 2, 3)))

    owner = QObject()
    coroutines.start(owner, compute())
    qtbot.waitUntil(lambda: results == [6])


WAITS = """
import asyncio, qasync
from PySide6.QtWidgets import QWidget
from pictures.event_loop import application_with_coroutines
from waggle.gui import coroutines
from waggle.gui.application.main import application

app = application()
owner = QWidget()

async def wait():
    await asyncio.shield(asyncio.get_running_loop().create_future())

async def begin():
    coroutines.start(owner, wait())
    await asyncio.sleep(0)
"""
PROGRAM = "with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:\n    runner.run(begin())"
PICTURE = "application_with_coroutines()\ncoroutines.start(owner, begin())\nfor _ in range(4):\n    app.processEvents()"


@pytest.mark.parametrize("program", [PROGRAM, PICTURE], ids=["the program", "a picture"])
def test_a_program_ends_without_a_word_while_a_coroutine_waits(program: str) -> None:
    places = os.pathsep.join(map(str, (Path(waggle.__file__).parents[1], Path(__file__).parents[1])))
    environment = {**os.environ, "PYTHONPATH": places, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", WAITS + program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
