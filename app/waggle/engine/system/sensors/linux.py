"""Power, idleness, full screen and metered networks on Linux, from the kernel, X11 and D-Bus."""

import os
import re
import subprocess
import time
from pathlib import Path

from waggle.engine.system.sensors import x11

SUPPLIES = Path("/sys/class/power_supply")
BATTERIES = ("Battery", "UPS")
ONLINE = {"1", "2"}  # 2: at a negotiated voltage, as with USB-C
SECONDS = 2.0  # until a bus that does not answer counts as one that does not tell
IDLE = ("--user", "call", "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor",
        "GetIdletime")  # fmt: skip
METERED = ("--system", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
           "org.freedesktop.NetworkManager", "Metered")  # fmt: skip


SESSION = ("--user", "get-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
           "Environment")  # fmt: skip
SCREEN = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
LOOK_S = 60.0  # between two searches for the screen of the user who has logged in


class _Screen:
    """Finds the screen of this session: a service starts before a user logs in, so its environment names none."""

    def __init__(self) -> None:
        self._variables: dict[str, str] = {}
        self._looked_at = -LOOK_S

    def update(self) -> None:
        is_in_environment = any(os.environ.get(name) and name not in self._variables for name in SCREEN[:2])
        if is_in_environment or time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at = time.monotonic()
        for name in self._variables:
            os.environ.pop(name, None)
        self._variables = screen_of(_bus(*SESSION))
        os.environ.update(self._variables)


_screen = _Screen()


def idle_seconds() -> float | None:
    _screen.update()
    if os.environ.get("WAYLAND_DISPLAY"):  # there, X11 knows of input to X11 windows only
        return milliseconds_of(_bus(*IDLE))
    return x11.ask(x11.idle_seconds)


def full_screen() -> bool | None:
    _screen.update()
    return None if os.environ.get("WAYLAND_DISPLAY") else x11.ask(x11.full_screen)


def on_power(supplies: Path = SUPPLIES) -> bool | None:
    """Whether the computer is plugged in and its battery does not empty; None if it has none.

    Batteries of a mouse, keyboard or pen do not count.

    This reads the kernel, as psutil counts every battery, and knows few names of adapters. Raises OSError if the kernel lists no
    power supplies.
    """
    own = [supply for supply in supplies.iterdir() if _property(supply, "scope") != "Device"]
    states = {_property(supply, "status") for supply in own if _property(supply, "type") in BATTERIES}
    plugs = {_property(supply, "online") for supply in own if _property(supply, "type") not in BATTERIES}
    if not states or states == {""}:
        return None
    if plugs & ONLINE:
        return "Discharging" not in states or "Charging" in states  # a weak charger: it empties all the same
    if "Discharging" in states:  # before "Charging": one battery may charge the other
        return False
    if "Charging" in states:  # before "0": an unused port is offline
        return True
    if "0" in plugs:
        return False
    return True if states & {"Full", "Not charging"} else None


def is_metered() -> bool | None:
    return parse_metered(_bus(*METERED))


def milliseconds_of(output: str) -> float | None:
    """The output of busctl, such as `t 61234`, in seconds."""
    match = re.fullmatch(r"t (\d+)", output.strip())
    return int(match.group(1)) / 1000 if match else None


def screen_of(output: str) -> dict[str, str]:
    """The variables of the screen in the environment of systemd's user manager: `as 2 "LANG=C.UTF-8" "DISPLAY=:0"`."""
    return {name: value for name, value in re.findall(r'"(\w+)=([^"\\]*)"', output) if name in SCREEN and value}


def parse_metered(output: str) -> bool | None:
    """NetworkManager's NMMetered: 1 yes, 2 no, 3 guess yes, 4 guess no, 0 unknown."""
    return {"u 1": True, "u 3": True, "u 2": False, "u 4": False}.get(output.strip())


def _property(supply: Path, name: str) -> str:
    """The content of one of its files; empty if there is none, or it cannot be read now."""
    try:
        return (supply / name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _bus(*words: str) -> str:
    try:
        done = subprocess.run(["busctl", *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):  # no systemd, or no such service
        return ""
    return done.stdout
