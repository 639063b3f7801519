"""Idleness and full screen on Windows, from system libraries. Waggle's own window does not count."""

import ctypes
import sys

from waggle.engine.system.sensors import own_processes

FILLED = (2, 3, 4)  # QUERY_USER_NOTIFICATION_STATE: busy, a game in full screen, a presentation


class _LastInput(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint32), ("ticks", ctypes.c_uint32))


def idle_seconds() -> float | None:
    if sys.platform != "win32":
        return None
    last = _LastInput(size=ctypes.sizeof(_LastInput))
    if not ctypes.windll.user32.GetLastInputInfo(ctypes.byref(last)):
        return None
    ticks: int = ctypes.windll.kernel32.GetTickCount()
    return ((ticks - int(last.ticks)) % (1 << 32)) / 1000  # both counters overflow every 49 days


def full_screen() -> bool | None:
    if sys.platform != "win32":
        return None
    state = ctypes.c_int()
    if ctypes.windll.shell32.SHQueryUserNotificationState(ctypes.byref(state)):
        return None
    if state.value not in FILLED:
        return False
    owner = ctypes.c_uint32()
    ctypes.windll.user32.GetWindowThreadProcessId(ctypes.windll.user32.GetForegroundWindow(), ctypes.byref(owner))
    return not own_processes.is_own(owner.value)
