"""Windows: which program a window belongs to on the taskbar."""

import ctypes
import sys

APPLICATION = "io.waggle.Waggle"


def name_application() -> None:
    """Give this process a name of its own, without which its window has Python's icon and is grouped with Python's windows.

    An installed app is known by its executable, to which its menu entry and pins point.
    """
    if sys.platform == "win32" and not getattr(sys, "frozen", False):
        ctypes.WinDLL("shell32").SetCurrentProcessExplicitAppUserModelID(ctypes.c_wchar_p(APPLICATION))
