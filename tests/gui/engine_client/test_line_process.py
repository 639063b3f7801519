"""A program beside the window is read line by line, and is ended by `stop`."""

import sys
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from waggle.gui.engine_client.line_process import LineProcess
from waggle.protocol import json_lines


@pytest.fixture
def program(qtbot: QtBot) -> Iterator[LineProcess]:
    process = LineProcess()
    yield process
    process.stop()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_lines_come_whole_and_the_end_brings_the_last_complaints(program: LineProcess, qtbot: QtBot) -> None:
    lines: list[bytes] = []
    program.line.connect(lines.append)
    write = "sys.stdout.buffer.write(b'one\\ntwo\\r\\nhalf')"  # the second as on Windows
    code = f"import sys; {write}; sys.stderr.write('waggle: It is broken.\\n\\n'); sys.exit(3)"
    with qtbot.waitSignal(program.ended, timeout=20_000) as ended:
        program.start(python(code))
    assert lines == [b"one", b"two"]
    assert ended.args == [3, ["It is broken."]]
    assert not program.is_running


def test_whoever_stops_it_at_a_line_hears_no_more_of_it(program: LineProcess, qtbot: QtBot) -> None:
    lines: list[bytes] = []

    def enough(line: bytes) -> None:
        lines.append(line)
        program.stop()

    program.line.connect(enough)
    with qtbot.assertNotEmitted(program.ended), qtbot.waitSignal(program.process.finished, timeout=20_000):
        program.start(python("import sys, time; sys.stdout.write('one\\ntwo\\n'); sys.stdout.flush(); time.sleep(60)"))
    assert lines == [b"one"]
    assert not program.is_running


def test_a_second_start_forgets_what_the_first_one_began_to_say(program: LineProcess, qtbot: QtBot) -> None:
    with qtbot.waitSignal(program.process.readyReadStandardOutput, timeout=20_000):
        program.start(python("import sys, time; sys.stdout.write('half'); sys.stdout.flush(); time.sleep(60)"))
    lines: list[bytes] = []
    program.line.connect(lines.append)
    with qtbot.waitSignal(program.ended, timeout=20_000) as ended:
        program.start(python("print('whole')"))
    assert lines == [b"whole"]
    assert ended.args == [0, []]


def test_what_says_something_endless_is_ended(program: LineProcess, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 100_000)
    with qtbot.waitSignal(program.ended, timeout=20_000) as ended:
        program.start(python("while True: print('x' * 1000, end='')"))
    assert ended.args == [1, ["It said something endless."]]
    assert not program.is_running


def test_what_cannot_be_started_says_so(program: LineProcess, qtbot: QtBot) -> None:
    with qtbot.waitSignal(program.ended, timeout=20_000) as ended:
        program.start(["/nowhere/waggle"])
    assert ended.args == [1, ["It cannot be started. Install Waggle again."]]
