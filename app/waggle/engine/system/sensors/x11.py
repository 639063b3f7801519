"""Asks an X11 screen through ctypes for its idle time, and whether a program fills it."""

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_long, c_ubyte, c_ulong, c_void_p
from functools import cache
from typing import Any, TypeVar

from waggle.engine.system.sensors import own_processes

Answer = TypeVar("Answer")
ANY_TYPE, LONGEST = 0, 64
ErrorHandler = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
ExitHandler = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
# Without these two handlers, Xlib ends the whole process if a window or the screen disappears during a request.
_ignore_error, _ignore_exit = ErrorHandler(lambda _display, _error: 0), ExitHandler(lambda _display, _data: None)


class _Idle(Structure):
    _fields_ = (
        ("window", c_ulong), ("state", c_int), ("kind", c_int), ("since", c_ulong), ("idle", c_ulong), ("mask", c_ulong),
    )  # fmt: skip


@cache
def _screen() -> Any | None:
    try:
        screen = ctypes.CDLL("libX11.so.6")
    except OSError:
        return None
    screen.XOpenDisplay.restype = c_void_p
    screen.XDefaultRootWindow.restype = screen.XInternAtom.restype = c_ulong
    screen.XSetErrorHandler(_ignore_error)
    return screen


@cache
def _saver() -> Any | None:
    try:
        saver = ctypes.CDLL("libXss.so.1")
    except OSError:  # not installed everywhere
        return None
    saver.XScreenSaverAllocInfo.restype = POINTER(_Idle)
    return saver


def ask(question: Callable[[Any, c_void_p], Answer | None]) -> Answer | None:
    """Ask the screen of this session; return None if there is none."""
    if not os.environ.get("DISPLAY") or (screen := _screen()) is None:
        return None
    opened = screen.XOpenDisplay(None)
    if not opened:
        return None
    display = c_void_p(opened)
    if hasattr(screen, "XSetIOErrorExitHandler"):
        screen.XSetIOErrorExitHandler(display, _ignore_exit, None)
    try:
        return question(screen, display)
    finally:
        screen.XCloseDisplay(display)


def idle_seconds(screen: Any, display: c_void_p) -> float | None:
    if (saver := _saver()) is None:
        return None
    info = saver.XScreenSaverAllocInfo()
    known = saver.XScreenSaverQueryInfo(display, c_ulong(screen.XDefaultRootWindow(display)), info)
    seconds = info.contents.idle / 1000 if known else None
    screen.XFree(info)
    return seconds


def full_screen(screen: Any, display: c_void_p) -> bool | None:
    """Whether the active window claims to fill the screen and is not Waggle's own; None if the window manager does not tell."""
    root = c_ulong(screen.XDefaultRootWindow(display))
    active = _property(screen, display, root, b"_NET_ACTIVE_WINDOW")
    if not active:
        return None
    states = _property(screen, display, c_ulong(active[0]), b"_NET_WM_STATE") if active[0] else []
    if _atom(screen, display, b"_NET_WM_STATE_FULLSCREEN") not in states:
        return False
    owner = _property(screen, display, c_ulong(active[0]), b"_NET_WM_PID")
    return not owner or not own_processes.is_own(owner[0])


def _atom(screen: Any, display: c_void_p, name: bytes) -> int:
    return int(screen.XInternAtom(display, c_char_p(name), c_int(0)))


def _property(screen: Any, display: c_void_p, window: c_ulong, name: bytes) -> list[int]:
    kind, form, count, bytes_after = c_ulong(), c_int(), c_ulong(), c_ulong()
    content = POINTER(c_ubyte)()
    screen.XGetWindowProperty(
        display, window, c_ulong(_atom(screen, display, name)), c_long(0), c_long(LONGEST), c_int(0), c_ulong(ANY_TYPE),
        byref(kind), byref(form), byref(count), byref(bytes_after), byref(content),
    )  # fmt: skip
    if not content:
        return []
    try:
        whole = form.value == 32  # Xlib returns 32-bit values as C longs
        return list(ctypes.cast(content, POINTER(c_ulong))[: count.value]) if whole else []
    finally:
        screen.XFree(content)
