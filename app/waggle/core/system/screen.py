"""Whether there is a screen that answers. Qt ends the whole process, without a word for a person, if its screen does not."""

import ctypes
import os
import socket
import sys
from pathlib import Path

SECONDS = 5.0  # for a compositor to accept a connection
DRAWS_ON_ONE = ("xcb", "wayland", "wayland-egl", "wayland-brcm", "")  # of Qt's platforms; others need no display server


def fault() -> str:
    """Why no window can open here; empty if one can, as always on Windows and macOS."""
    if sys.platform in ("win32", "darwin"):
        return ""
    platforms = [name.partition(":")[0] for name in os.environ.get("QT_QPA_PLATFORM", "").split(";")]
    if not set(platforms) <= set(DRAWS_ON_ONE):
        return ""
    names = [name for name in ("WAYLAND_DISPLAY", "DISPLAY") if os.environ.get(name)]
    if not names:
        return "There is no screen here"
    if any(answers() for answers in (_wayland_answers, _x_answers)):
        return ""
    return f"The screen that {' and '.join(f'{name}={os.environ[name]}' for name in names)} names does not answer"


def _wayland_answers() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "/")) / name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(SECONDS)
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def _x_answers() -> bool:
    """Ask through the library that Qt uses: it also knows whether the screen lets us in. Without it, Qt has to find out."""
    if not os.environ.get("DISPLAY"):
        return False
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    try:
        return not xcb.xcb_connection_has_error(connection)
    finally:
        xcb.xcb_disconnect(connection)
