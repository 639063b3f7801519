"""Power, idleness, full screen and metered networks on Linux: X11 where the screen is X11's, else the session's message bus."""

import os
import re
import subprocess
import time
from pathlib import Path

from waggle.engine.system.sensors import x11

SUPPLIES = Path("/sys/class/power_supply")
BATTERIES = ("Battery", "UPS")
ONLINE = {"1", "2"}  # the latter: at a voltage that was agreed on, as USB-C has it
SECONDS = 2.0  # a bus that does not answer is one that does not tell
IDLE = ("--user", "call", "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor",
        "GetIdletime")  # fmt: skip
METERED = ("--system", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
           "org.freedesktop.NetworkManager", "Metered")  # fmt: skip


SESSION = ("--user", "get-property", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
           "Environment")  # fmt: skip
SCREEN = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
LOOK_S = 60.0  # between two searches for the screen of the logged-in user


class _Screen:
    """Which screen this session has. A service is there before anybody has logged in, and hears of none by itself."""

    def __init__(self) -> None:
        self._variables: dict[str, str] = {}
        self._looked_at = -LOOK_S

    def look(self) -> None:
        is_told = any(os.environ.get(name) and name not in self._variables for name in SCREEN[:2])
        if is_told or time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at = time.monotonic()
        for name in self._variables:
            os.environ.pop(name, None)
        self._variables = screen_of(_bus(*SESSION))
        os.environ.update(self._variables)


_screen = _Screen()


def idle_seconds() -> float | None:
    _screen.look()
    if os.environ.get("WAYLAND_DISPLAY"):  # X11 then hears only of X11's own windows
        return milliseconds_of(_bus(*IDLE))
    return x11.ask(x11.idle_seconds)


def full_screen() -> bool | None:
    _screen.look()
    return None if os.environ.get("WAYLAND_DISPLAY") else x11.ask(x11.full_screen)


def on_power(supplies: Path = SUPPLIES) -> bool | None:
    """Whether the computer is plugged in; None where it has no battery. Those of a mouse, a keyboard or a pen are not its own.

    Read from the kernel: psutil takes whatever is called a battery for the computer's, and knows few names of adapters. Raises
    OSError where the kernel tells of none at all.
    """
    own = [each for each in supplies.iterdir() if _word(each, "scope") != "Device"]
    states = {_word(each, "status") for each in own if _word(each, "type") in BATTERIES}
    plugs = {_word(each, "online") for each in own if _word(each, "type") not in BATTERIES}
    if not states or states == {""}:
        return None
    if plugs & ONLINE:
        return True
    if "Discharging" in states:  # before the other battery, which this one may be charging
        return False
    if "Charging" in states:  # whatever a port says that nothing is plugged into
        return True
    if "0" in plugs:
        return False
    return True if states & {"Full", "Not charging"} else None


def metered() -> bool | None:
    return metered_of(_bus(*METERED))


def milliseconds_of(output: str) -> float | None:
    """`t 61234` in seconds."""
    match = re.fullmatch(r"t (\d+)", output.strip())
    return int(match.group(1)) / 1000 if match else None


def screen_of(output: str) -> dict[str, str]:
    """What systemd's manager of this user was told of a screen: `as 2 "LANG=C.UTF-8" "DISPLAY=:0"`."""
    return {name: value for name, value in re.findall(r'"(\w+)=([^"\\]*)"', output) if name in SCREEN and value}


def metered_of(output: str) -> bool | None:
    """NetworkManager's NMMetered: 1 yes, 2 no, 3 and 4 the same as a guess, 0 unknown."""
    return {"u 1": True, "u 3": True, "u 2": False, "u 4": False}.get(output.strip())


def _word(supply: Path, name: str) -> str:
    """What one of its files says, empty where there is none or it cannot be read now."""
    try:
        return (supply / name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _bus(*words: str) -> str:
    try:
        done = subprocess.run(["busctl", *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):  # no systemd, or nobody behind that name
        return ""
    return done.stdout
