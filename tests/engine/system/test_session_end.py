"""An engine ends in order when Windows ends its session or its console; on other systems signals do that."""

import ctypes
import subprocess
import sys
import threading

import pytest

from waggle import node
from waggle.core import paths, settings
from waggle.engine.system import session_end
from waggle.protocol import events, json_lines

SETTINGS = (
    "swarm.solo=true",
    "learning.held_out_questions=1",
    *map(settings.override, node.AT_ANY_TIME, node.AT_ANY_TIME.values()),
)
BREAK, ALL_ACCESS = 1, 0x1FFFFF  # CTRL_BREAK_EVENT, PROCESS_ALL_ACCESS
windows = pytest.mark.skipif(sys.platform != "win32", reason="elsewhere signals end an engine")


@pytest.mark.skipif(sys.platform == "win32", reason="there it watches")
def test_elsewhere_nothing_is_watched():
    before = threading.active_count()
    with session_end.stop_at_session_end(pytest.fail):
        assert threading.active_count() == before


@windows
@pytest.mark.parametrize("end", ["session", "console closed", "Ctrl+Break"])
def test_an_engine_saves_and_ends_with_its_session_or_its_console(tmp_path, end):
    options = (word for value in SETTINGS for word in ("--set", value))
    command = [*paths.module_command("waggle"), "engine", "--home", str(tmp_path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        for line in engine.stdout:
            if isinstance(json_lines.event(line), events.RoundCompleted):
                break
        if end == "session":
            end_session(engine.pid)
        else:
            report_of_console(engine.pid, session_end.CLOSE if end == "console closed" else BREAK)
        rest = [json_lines.event(line) for line in engine.stdout]
        assert engine.wait(timeout=60) == 0
    assert any(isinstance(event, events.EngineStopped) for event in rest), "its last event"


def end_session(pid: int) -> None:
    """Tell the windows of a process what Windows tells them at the end of a session."""
    user = ctypes.WinDLL("user32", use_last_error=True)
    user.FindWindowExW.restype = ctypes.c_void_p
    window, owner = None, ctypes.c_uint32()
    while owner.value != pid:
        window = user.FindWindowExW(None, ctypes.c_void_p(window), session_end.CLASS, None)
        assert window, "the engine has a hidden window"
        user.GetWindowThreadProcessId(ctypes.c_void_p(window), ctypes.byref(owner))
    assert user.SendMessageW(ctypes.c_void_p(window), session_end.QUERY_END, 0, 0) == 1
    user.SendMessageW(ctypes.c_void_p(window), session_end.END, 1, 0)


def report_of_console(pid: int, event: int) -> None:
    """Report an event of its console to a process as Windows does: by a thread in it that runs CtrlRoutine."""
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = kernel.CreateRemoteThread.restype = ctypes.c_void_p
    routine = ctypes.cast(ctypes.WinDLL("kernelbase").CtrlRoutine, ctypes.c_void_p)
    process = ctypes.c_void_p(kernel.OpenProcess(ALL_ACCESS, 0, pid))
    assert kernel.CreateRemoteThread(process, None, 0, routine, ctypes.c_void_p(event), 0, None), ctypes.get_last_error()
    kernel.CloseHandle(process)
