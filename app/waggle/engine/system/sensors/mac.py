"""Idleness on macOS, from the event source."""

import ctypes
import ctypes.util

HARDWARE, ANY_EVENT = 1, 0xFFFFFFFF


def idle_seconds() -> float | None:
    library = ctypes.util.find_library("ApplicationServices")
    if library is None:
        return None
    since = ctypes.CDLL(library).CGEventSourceSecondsSinceLastEventType
    since.restype = ctypes.c_double
    return float(since(ctypes.c_int32(HARDWARE), ctypes.c_uint32(ANY_EVENT)))
