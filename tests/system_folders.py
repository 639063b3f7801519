"""The variables of the environment with which a test moves what the system keeps for its user."""

import sys

HOME, CACHE = ("USERPROFILE", "WIN_PD_OVERRIDE_LOCAL_APPDATA") if sys.platform == "win32" else ("HOME", "XDG_CACHE_HOME")
