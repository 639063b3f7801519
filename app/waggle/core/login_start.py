"""What starts when this user logs in: the window, the engine without one, or nothing. On Linux, Mac and Windows.

Each is one file of the user's own, and on Windows a task, so that no rights are needed and removing it leaves nothing.
"""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import Message
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of

LoginStart = Literal["nothing", "window", "engine"]
NAMES = {"window": "io.waggle.Waggle", "engine": "io.waggle.engine"}
UNIT = "waggle-engine.service"
TASKS = {"window": "Waggle window", "engine": "Waggle"}
PATIENCE_S = 30.0
BACKGROUND = "--background"
# While the engine of a window uses the folder, each start is refused: it is tried again. SIGTERM goes to the engine alone.
SERVICE = """[Unit]
Description=Waggle engine
StartLimitIntervalSec=0
ConditionPathExists={program}

[Service]
ExecStart={command}
StandardOutput=null
StandardError=journal
Restart=on-failure
RestartSec=30
KillMode=mixed
TimeoutStopSec=60
NoNewPrivileges=yes
OOMScoreAdjust=500

[Install]
WantedBy=default.target
"""
DESKTOP = """[Desktop Entry]
Type=Application
Name={name}
Comment=Let your computer learn with others
TryExec={program}
Exec={command}
Icon=io.waggle.Waggle
Terminal=false
X-GNOME-Autostart-enabled=true
"""
TASK = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers><LogonTrigger><Enabled>true</Enabled><UserId>{user}</UserId></LogonTrigger></Triggers>
  <Principals><Principal id="Author"><UserId>{user}</UserId><LogonType>InteractiveToken</LogonType></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT5M</Interval><Count>255</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author"><Exec><Command>{program}</Command><Arguments>{arguments}</Arguments></Exec></Actions>
</Task>
"""


class Registration(NamedTuple):
    """One file that the system reads at a login, and the commands that make it read it, or forget it, at once."""

    file: Path
    content: bytes
    begin: tuple[tuple[str, ...], ...] = ()
    end: tuple[tuple[str, ...], ...] = ()


def command_of(what: LoginStart, home: paths.Home) -> list[str]:
    """The command that is started. It names the home if that is not the usual one."""
    named = [] if _is_usual(home) else ["--home", str(home.root.absolute())]
    program = paths.window_command() if what == "window" or sys.platform == "win32" else paths.module_command("waggle")
    if (path := os.environ.get("PYTHONPATH")) and not getattr(sys, "frozen", False) and sys.platform != "win32":
        program = ["/usr/bin/env", f"PYTHONPATH={path}", *program]  # from the source: a login does not know where that is
    return [*program, *([BACKGROUND, *named] if what == "window" else ["engine", *named])]


def registration(what: LoginStart, home: paths.Home, system: str = sys.platform) -> Registration:
    """How a system is to start the window or the engine at a login."""
    command = command_of(what, home)
    if system == "darwin":
        return _launch_agent(what, command)
    if system == "win32":
        return _task(what, command, home)
    if what == "engine" and shutil.which("systemctl"):
        file = _config() / "systemd/user" / UNIT
        user = ("systemctl", "--user")
        content = SERVICE.format(program=sys.executable.replace("%", "%%"), command=" ".join(map(_systemd_word, command)))
        end = ((*user, "disable", "--now", UNIT),)
        return Registration(file, content.encode(), ((*user, "daemon-reload"), (*user, "enable", "--now", UNIT)), end)
    name = "Waggle" if what == "window" else "Waggle engine"
    content = DESKTOP.format(name=name, program=sys.executable, command=" ".join(map(_desktop_word, command)))
    return Registration(_config() / "autostart" / f"{NAMES[what]}.desktop", content.encode())


def is_offered(system: str = sys.platform) -> bool:
    """Whether something can be started at a login: not on a Linux without a desktop, nor from a package in a sandbox."""
    if system in ("darwin", "win32"):
        return True
    sandboxed = Path("/.flatpak-info").exists() or "SNAP" in os.environ
    return not sandboxed and any(os.environ.get(name) for name in ("XDG_CURRENT_DESKTOP", "DESKTOP_SESSION"))


def chosen(home: paths.Home) -> LoginStart:
    """What starts at a login now, as the files say: a person may have removed one by other means."""
    both: tuple[LoginStart, ...] = ("engine", "window")
    return next((what for what in both if any(each.file.exists() for each in _every(what, home))), "nothing")


def choose(what: LoginStart, home: paths.Home) -> str:
    """Start this at a login, and nothing else of Waggle; returns what could not be done at once, or "". Raises EngineError."""
    remove(home, but=what)
    if what == "nothing":
        return ""
    now = registration(what, home)
    try:
        now.file.parent.mkdir(parents=True, exist_ok=True)
        if not now.file.exists() or now.file.read_bytes() != now.content:
            paths.write_atomically(now.file, now.content)
    except OSError as error:
        raise EngineError(
            Message("%1 cannot be written: %2.", now.file, fault_of(error).reason), fault_of(error).advice
        ) from error
    return next((trouble for command in now.begin if (trouble := _run(command))), "")


def remove(home: paths.Home, but: LoginStart = "nothing") -> list[Path]:
    """Start nothing at a login any more, whichever way it was set up; returns the files that are gone. Raises EngineError."""
    gone = []
    others: tuple[LoginStart, ...] = ("window", "engine")
    for what in others:
        kept_file = registration(what, home).file if what == but else None
        for each in _every(what, home):
            if each.file == kept_file or not each.file.exists():
                continue
            for command in each.end:
                _run(command)
            try:
                file_moves.unlink(each.file, missing_ok=True)
            except OSError as error:
                raise EngineError(
                    Message("%1 cannot be removed: %2.", each.file, fault_of(error).reason), fault_of(error).advice
                ) from error
            gone.append(each.file)
    return gone


def _every(what: LoginStart, home: paths.Home) -> list[Registration]:
    """All ways in which it may have been set up here: systemd may have come, or gone, since."""
    now = registration(what, home)
    if sys.platform in ("darwin", "win32"):
        return [now]
    desktop = now._replace(file=_config() / "autostart" / f"{NAMES[what]}.desktop", end=())
    unit = now._replace(file=_config() / "systemd/user" / UNIT)
    return [desktop, unit] if what == "engine" else [desktop]


def _launch_agent(what: LoginStart, command: Sequence[str]) -> Registration:
    label = NAMES[what]
    file = Path(os.path.expanduser("~")) / "Library/LaunchAgents" / f"{label}.plist"
    content: dict[str, object] = {"Label": label, "ProgramArguments": list(command), "RunAtLoad": True}
    if what == "window":
        return Registration(file, plistlib.dumps(content))  # it starts at the next login: now it is open
    content |= {
        "KeepAlive": {"SuccessfulExit": False}, "ThrottleInterval": 30, "ExitTimeOut": 60, "ProcessType": "Background",
        "StandardOutPath": os.devnull, "StandardErrorPath": os.devnull,
    }  # fmt: skip
    domain = f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"
    begin, end = ("launchctl", "bootstrap", domain, str(file)), ("launchctl", "bootout", f"{domain}/{label}")
    return Registration(file, plistlib.dumps(content), (begin,), (end,))


def _task(what: LoginStart, command: Sequence[str], home: paths.Home) -> Registration:
    """A task of the scheduler. Its description is kept in the home, which says that it exists."""
    user = f"{os.environ.get('USERDOMAIN', '')}\\{os.environ.get('USERNAME', '')}".lstrip("\\")
    program, *arguments = command
    content = TASK.format(user=escape(user), program=escape(program), arguments=escape(subprocess.list2cmdline(arguments)))
    file = home.root / f"login-{what}.xml"
    begin = ("schtasks", "/Create", "/TN", TASKS[what], "/XML", str(file), "/F")
    end = ("schtasks", "/Delete", "/TN", TASKS[what], "/F")
    return Registration(file, content.encode("utf-16"), (begin,), (end,))


def _run(command: Sequence[str]) -> str:
    """Run a command of the system; returns what it complains about, or ""."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:  # a container without a session, for example
        return str(error)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[:300] or f"{command[0]}: {done.returncode}"


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))


def _is_usual(home: paths.Home) -> bool:
    with suppress(OSError):  # there is no usual one
        return home.root.absolute() == paths.home_in(None).root.absolute() and not os.environ.get("WAGGLE_HOME")
    return False


def _desktop_word(word: str) -> str:
    """A word of the Exec line: https://specifications.freedesktop.org/desktop-entry-spec/latest/exec-variables.html"""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`").replace("$", "\\$").replace("%", "%%")
    return word if shlex.quote(word) == word and "%" not in word else '"' + escaped.replace("\\", "\\\\") + '"'


def _systemd_word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%")
    return word if shlex.quote(word) == word and "%" not in word else f'"{escaped}"'
