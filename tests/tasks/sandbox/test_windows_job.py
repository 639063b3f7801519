"""The Windows job object: its fields have the offsets of the kernel, and on Windows its limits hold."""

import ctypes
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from waggle.tasks.sandbox import windows_job

CALL = "windows_job.end_children_with_this_process"
LIMITS_OF_CTYPES = """
import subprocess, sys
from waggle.tasks.sandbox import windows_job
assert windows_job.enter(windows_job.limits(memory_bytes=1 << 30))
try:
    bytearray(2 << 30)
except MemoryError:
    print("no memory")
assert windows_job.enter(windows_job.limits(alone=True))
try:
    subprocess.run([sys.executable, "-c", "print('started')"], check=True)
except OSError:
    print("no process")
"""


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="a computer of 64 bits")
def test_limits_lie_where_the_kernel_of_windows_looks_for_them() -> None:
    """The offsets are those of winnt.h for 64 bits."""
    assert (ctypes.sizeof(windows_job.BasicLimits), ctypes.sizeof(windows_job.ExtendedLimits)) == (64, 144)
    assert (windows_job.BasicLimits.LimitFlags.offset, windows_job.BasicLimits.ActiveProcessLimit.offset) == (16, 40)
    assert windows_job.ExtendedLimits.ProcessMemoryLimit.offset == 112
    structure = bytes(windows_job.limits(memory_bytes=5 << 30, alone=True))
    assert int.from_bytes(structure[16:20], "little") == 0x108
    assert int.from_bytes(bytes(windows_job.limits(kill_on_close=True))[16:20], "little") == 0x2000
    assert int.from_bytes(structure[40:44], "little") == 1
    assert int.from_bytes(structure[112:120], "little") == 5 << 30


@pytest.mark.skipif(sys.platform != "win32", reason="job objects are of Windows alone")
def test_a_process_in_a_job_gets_no_more_memory_and_starts_no_other() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITS_OF_CTYPES], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["no memory", "no process"]


PARENT = """
import subprocess, sys, time
from waggle.tasks.sandbox import windows_job
assert windows_job.end_children_with_this_process()
child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(300)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform != "win32", reason="job objects are of Windows alone")
def test_what_a_killed_process_had_started_ends_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=20)


def test_an_engine_and_a_race_end_their_children_and_a_window_does_not() -> None:
    app = Path(windows_job.__file__).parents[2]
    calling = {str(path.relative_to(app)) for path in app.rglob("*.py") if f"{CALL}()" in path.read_text(encoding="utf-8")}
    assert calling - {str(Path("tasks/sandbox/windows_job.py"))} == {str(Path("engine/main.py")), str(Path("practice/race.py"))}


@pytest.mark.skipif(sys.platform == "win32", reason="elsewhere")
def test_elsewhere_nothing_is_claimed() -> None:
    assert not windows_job.enter(windows_job.limits(alone=True))
