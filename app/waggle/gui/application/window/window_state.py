"""Window geometry, open page and views of pages, saved from one start to the next."""

import base64
from contextlib import suppress
from pathlib import Path

import msgspec

from waggle.core import damaged_file, paths
from waggle.core.errors import UNREADABLE

NAME = "window.json"  # of the file in a home


class WindowState(msgspec.Struct, frozen=True, kw_only=True):
    """`geometry`: QWidget.saveGeometry in base64. `tray_told`: the person was told that a closed window stays in the tray.

    `views`: by page, the view that was chosen last.
    """

    geometry: str = ""
    page: str = "home"
    tray_told: bool = False
    views: dict[str, int] = {}

    @property
    def geometry_bytes(self) -> bytes:
        try:
            return base64.b64decode(self.geometry, validate=True)
        except ValueError:  # edited by hand: the system places the window
            return b""


def read(path: Path) -> WindowState:
    """The saved state; defaults if the file is missing or unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=WindowState)
    except OSError:  # none yet
        return WindowState()
    except UNREADABLE:  # open the window with defaults
        with suppress(OSError):
            damaged_file.set_aside(path)
        return WindowState()


def write(path: Path, state: WindowState) -> None:
    try:
        paths.write_atomically(path, msgspec.json.encode(state))
    except OSError:  # a full disk must not keep the window from closing
        return


def geometry_text(geometry: bytes) -> str:
    return base64.b64encode(geometry).decode()
