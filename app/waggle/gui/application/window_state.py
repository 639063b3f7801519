"""What the window remembers of itself from one start to the next: where it stood, and which page was open."""

import base64
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import UNREADABLE


class WindowState(msgspec.Struct, frozen=True, kw_only=True):
    """`geometry` is Qt's own form of place and size; `tray_told`: the person knows where a closed window goes."""

    geometry: str = ""
    page: str = "home"
    tray_told: bool = False

    @property
    def geometry_bytes(self) -> bytes:
        try:
            return base64.b64decode(self.geometry, validate=True)
        except ValueError:  # somebody wrote into the file: the window opens where the system puts it
            return b""


def read(path: Path) -> WindowState:
    """What was kept; all defaults where there is nothing that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=WindowState)
    except (OSError, *UNREADABLE):  # a window opens all the same
        return WindowState()


def write(path: Path, state: WindowState) -> None:
    try:
        paths.put(path, msgspec.json.encode(state))
    except OSError:  # a full disk must not keep a window from closing; next time it opens where the system puts it
        return


def geometry_text(geometry: bytes) -> str:
    return base64.b64encode(geometry).decode()
