"""Windows: ends an engine in order when its console closes, or its user logs off or shuts the computer down.

Windows sends no signals. A console reports through a handler; a program that uses windows, as some libraries of the engine do, is
told of the end of a session only through a window, so there is a hidden one. Both run in threads of their own, and Windows ends
the process when they return, or after some seconds: they wait until the engine has saved.
"""

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CLOSE, LOG_OFF, SHUTDOWN = 2, 5, 6  # CTRL_..._EVENT; 0 and 1 are Ctrl+C and Ctrl+Break
QUERY_END, END, QUIT = 0x0011, 0x0016, 0x0012  # WM_QUERYENDSESSION, WM_ENDSESSION, WM_QUIT
SAVE_SECONDS = 20.0  # Windows ends a closed console's process after five, and asks a person about a session's
CLASS = "WaggleEngine"
log = logging.getLogger(__name__)


@contextmanager
def stop_at_session_end(stop: Callable[[], None]) -> Iterator[None]:
    """Within the context, call `stop` at Ctrl+C and whenever Windows is about to end this process; other systems send signals.

    `stop` is called in another thread. The end of the context says that everything is saved.
    """
    if sys.platform != "win32":
        yield
        return
    saved = threading.Event()

    def end() -> None:
        stop()
        saved.wait(SAVE_SECONDS)

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)

    @ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
    def handle(event: int) -> int:
        if event in (CLOSE, LOG_OFF, SHUTDOWN):
            end()
        else:
            stop()
        return 1

    kernel.SetConsoleCtrlHandler(handle, 1)
    watch = _SessionWatch(end)
    watch.start()
    try:
        yield
    finally:
        saved.set()
        watch.stop()
        kernel.SetConsoleCtrlHandler(handle, 0)


class _SessionWatch(threading.Thread):
    """A thread with a hidden window, which Windows tells of the end of the session."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__(name="session end", daemon=True)
        self._end = end
        self._began = threading.Event()
        self._thread = 0

    def stop(self) -> None:
        if sys.platform == "win32":
            self._began.wait()
            ctypes.WinDLL("user32").PostThreadMessageW(self._thread, QUIT, 0, 0)
            self.join(timeout=5)

    def run(self) -> None:
        if sys.platform != "win32":
            return
        from ctypes import wintypes

        user = ctypes.WinDLL("user32", use_last_error=True)
        word, number = ctypes.c_size_t, ctypes.c_ssize_t
        procedure_type = ctypes.WINFUNCTYPE(number, wintypes.HWND, wintypes.UINT, word, number)
        user.DefWindowProcW.argtypes, user.DefWindowProcW.restype = (wintypes.HWND, wintypes.UINT, word, number), number

        @procedure_type
        def procedure(window: Any, message: int, first: int, second: int) -> int:
            if message == QUERY_END:
                return 1  # it may end
            if message == END and first:
                self._end()
                return 0
            return int(user.DefWindowProcW(window, message, first, second))

        class WindowClass(ctypes.Structure):
            """WNDCLASSW."""

            _fields_ = (
                ("style", wintypes.UINT), ("procedure", procedure_type), ("class_extra", ctypes.c_int),
                ("window_extra", ctypes.c_int), ("instance", wintypes.HINSTANCE), ("icon", wintypes.HICON),
                ("cursor", wintypes.HANDLE), ("background", wintypes.HBRUSH), ("menu", wintypes.LPCWSTR),
                ("name", wintypes.LPCWSTR),
            )  # fmt: skip

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.GetModuleHandleW.restype = wintypes.HMODULE
        self._thread = kernel.GetCurrentThreadId()
        instance = kernel.GetModuleHandleW(None)
        user.RegisterClassW(ctypes.byref(WindowClass(procedure=procedure, instance=instance, name=CLASS)))
        user.CreateWindowExW.argtypes = (
            wintypes.DWORD, wintypes.LPCWSTR, wintypes.LPCWSTR, wintypes.DWORD, *(ctypes.c_int,) * 4, wintypes.HWND,
            wintypes.HMENU, wintypes.HINSTANCE, wintypes.LPVOID,
        )  # fmt: skip
        user.CreateWindowExW.restype = wintypes.HWND
        window = user.CreateWindowExW(0, CLASS, CLASS, 0, 0, 0, 0, 0, None, None, instance, None)
        if not window:  # a service without a desktop
            log.debug("no window for the end of the session: error %d", ctypes.get_last_error())
        message = wintypes.MSG()
        user.PeekMessageW(ctypes.byref(message), None, 0, 0, 0)  # makes the queue, so that QUIT cannot be lost
        self._began.set()
        while user.GetMessageW(ctypes.byref(message), None, 0, 0) > 0:
            user.DispatchMessageW(ctypes.byref(message))
        if window:
            user.DestroyWindow(wintypes.HWND(window))
            user.UnregisterClassW(CLASS, wintypes.HINSTANCE(instance))
