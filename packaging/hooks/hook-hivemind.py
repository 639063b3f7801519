"""Adds the parts of hivemind that PyInstaller does not find: codecs and messages imported by name, and the program p2pd.

Waggle imports hivemind without running its `__init__` (network/transport/hivemind/patches.py). p2pd is collected as a binary,
so that it stays executable and is signed on a Mac.
"""

import sys
from pathlib import Path

from PyInstaller.utils.hooks import collect_submodules, get_package_paths

_PACKAGE = Path(get_package_paths("hivemind")[1])
_PROGRAM = "p2pd.exe" if sys.platform == "win32" else "p2pd"

binaries = [(str(_PACKAGE / "hivemind_cli" / _PROGRAM), "hivemind/hivemind_cli")]
hiddenimports = [
    "hivemind.hivemind_cli",
    *(f"hivemind.{room}" for room in ("dht", "p2p", "proto", "utils")),
    *(f"hivemind.proto.{path.stem}" for path in (_PACKAGE / "proto").glob("*_pb2.py")),
    *collect_submodules("hivemind.utils.multiaddr"),
    *collect_submodules("hivemind.p2p"),
    *collect_submodules("hivemind.dht"),
]
