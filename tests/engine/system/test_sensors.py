"""Test the sensors, on this computer and with recorded output of others."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import waggle
from waggle.core.settings import ScheduleSettings
from waggle.engine.system.sensors import SensorReader, linux, own_processes
from waggle.protocol.schedule import Wishes, decide, plain_name

ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks an X11 screen")


@pytest.mark.parametrize(
    ("output", "means"),
    [("u 1\n", True), ("u 3\n", True), ("u 2\n", False), ("u 4\n", False), ("u 0\n", None), ("", None), ("no such", None)],
)
def test_network_manager_is_understood(output, means):
    assert linux.parse_metered(output) is means


@pytest.mark.parametrize(("output", "seconds"), [("t 61500\n", 61.5), ("", None), ("u 3", None)])
def test_the_idle_monitor_is_understood(output, seconds):
    assert linux.milliseconds_of(output) == seconds


PLUG, NO_PLUG = ({"type": "Mains", "online": online} for online in "10")
MOUSE = {"type": "Battery", "scope": "Device", "status": "Discharging"}


def battery(status):
    return {"type": "Battery", "status": status}


@pytest.mark.parametrize(
    ("supplies", "means"),
    [
        ({}, None),
        ({"hidpp_battery_0": MOUSE}, None),
        ({"BAT0": battery("Discharging"), "hidpp_battery_0": MOUSE}, False),
        ({"BAT0": battery("Charging"), "hidpp_battery_0": MOUSE}, True),
        ({"BAT0": battery("Not charging"), "ADP1": PLUG}, True),
        ({"BAT0": battery("Not charging")}, True),
        ({"BAT0": battery("Full"), "BAT1": battery("Discharging"), "ADP1": NO_PLUG}, False),
        ({"BAT0": battery("Unknown"), "ADP1": NO_PLUG}, False),
        ({"BAT0": battery("Discharging"), "AC": NO_PLUG, "ucsi-1": {"type": "USB", "online": "1"}}, False),  # a weak charger
        ({"BAT0": battery("Discharging"), "BAT1": battery("Charging"), "ADP1": PLUG}, True),
        ({"BAT0": battery("Charging"), "AC": NO_PLUG, "ucsi-1": {"type": "USB", "online": "2"}}, True),
        (
            {"BAT0": battery("Not charging"), "ucsi-1": {"type": "USB", "online": "2"}, "ucsi-2": {"type": "USB", "online": "0"}},
            True,
        ),
        ({"BAT0": battery("Charging"), "ucsi-2": {"type": "USB", "online": "0"}}, True),
        ({"BAT0": battery("Charging"), "BAT1": battery("Discharging"), "ADP1": NO_PLUG}, False),
        ({"BAT0": battery("Unknown")}, None),
        ({"BAT0": {"type": "Battery"}}, None),
        ({"ups": {"type": "UPS", "status": "Discharging"}}, False),
    ],
)
def test_only_the_computers_own_battery_says_whether_it_is_plugged_in(supplies, means, tmp_path):
    for name, files in supplies.items():
        (tmp_path / name).mkdir()
        for file, word in files.items():
            (tmp_path / name / file).write_text(f"{word}\n")
    assert linux.on_power(tmp_path) is means


@pytest.mark.parametrize("name", ["Game.exe", "game", r"C:\Games\GAME.EXE", "/usr/bin/game", "Game.app"])
def test_programs_are_the_same_however_they_are_written(name):
    assert plain_name(name) == "game"


def test_a_program_that_runs_is_seen_and_only_when_asked_for():
    other = psutil.Process(os.getppid()).name()  # this process and its children count as Waggle's own
    rules = ScheduleSettings(not_while=(other,))
    decision = decide(rules, SensorReader()(rules), Wishes(), 0.0)
    assert (decision.standing, decision.reason) == ("waiting", f"{other} is running.")
    assert SensorReader()(ScheduleSettings()).programs is None


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="Windows does not tell a process that runs")
def test_the_hours_of_a_week_are_those_of_where_the_computer_is_now(monkeypatch):
    try:
        for zone, hour in (("EST+5", 19), ("JST-9", 9)):
            monkeypatch.setenv("TZ", zone)
            SensorReader()(ScheduleSettings())
            assert time.localtime(0.0).tm_hour == hour
    finally:
        monkeypatch.undo()
        time.tzset()


@ONLY_LINUX
def test_idleness_that_nobody_asks_for_costs_hardly_a_process_and_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(linux, "SECONDS", 60.0)  # of each of many processes: a busy computer is no unknown
    log = tmp_path / "asked"
    bus = tmp_path / "busctl"
    bus.write_text(f"#!/bin/sh\necho once >> {log}\necho t 600000\n")
    bus.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    now, rules = [0.0], ScheduleSettings(not_metered=False, not_full_screen=False)
    read = SensorReader(clock=lambda: now[0])

    def readings(looks: int, rules: ScheduleSettings, *, until_away: bool = False) -> tuple[set[float | None], int]:
        """The results of readings two seconds apart, and the number of processes that they started."""
        log.write_text("")
        idle = set()
        for _ in range(looks):
            idle.add(read(rules, until_away=until_away).idle_seconds)
            now[0] += 2.0
        return idle, len(log.read_text().splitlines())

    assert readings(60, rules) == ({0.0}, 4)
    assert readings(3, rules, until_away=True) == ({600.0}, 3)
    assert readings(3, ScheduleSettings(not_metered=False, not_full_screen=False, idle_minutes=3)) == ({600.0}, 3)
    bus.write_text("#!/bin/sh\nexit 1\n")
    assert readings(60, rules)[0] == {0.0, None}
    assert readings(3, rules, until_away=True) == ({722.0, 724.0, 726.0}, 0), "whoever was there has left"
    assert SensorReader()(rules).idle_seconds is None, "a pause until one is away is refused then"


@ONLY_LINUX
def test_a_screen_that_nobody_touched_tells_for_how_long(tmp_path):
    if not shutil.which("Xvfb"):
        pytest.skip("there is no Xvfb")
    code = (
        "from waggle.engine.system.sensors import linux; first = linux.idle_seconds(); second = linux.idle_seconds();"
        "print(0 <= first <= second, linux.full_screen())"
    )
    with x_screen() as environment:
        outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (outcome.stdout.split(), outcome.stderr) == (["True", "None"], "")


@contextmanager
def x_screen() -> Iterator[dict[str, str]]:
    """An X screen of its own, and the environment of programs that show their windows there."""
    ready, tell = os.pipe()
    screen = subprocess.Popen(["Xvfb", "-displayfd", str(tell), "-noreset"], pass_fds=[tell], stderr=subprocess.DEVNULL)
    os.close(tell)  # if the screen dies, the pipe ends
    try:
        number = os.read(ready, 20).decode().strip()
        environment = {**os.environ, "DISPLAY": f":{number}", "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
        environment.pop("WAYLAND_DISPLAY", None)
        yield environment
    finally:
        screen.terminate()
        screen.wait()
        os.close(ready)


FILLING_WINDOW = """
import ctypes, os, sys
from ctypes import byref, c_int, c_long, c_ulong, c_void_p
from waggle.engine.system.sensors import linux
screen = ctypes.CDLL("libX11.so.6")
screen.XOpenDisplay.restype = c_void_p
screen.XDefaultRootWindow.restype = screen.XInternAtom.restype = screen.XCreateSimpleWindow.restype = c_ulong
display = c_void_p(screen.XOpenDisplay(None))
root = c_ulong(screen.XDefaultRootWindow(display))
window = c_ulong(screen.XCreateSimpleWindow(display, root, 0, 0, 9, 9, 0, c_ulong(0), c_ulong(0)))
atom = lambda name: screen.XInternAtom(display, name, 0)
def write(window, name, kind, value):
    screen.XChangeProperty(display, window, c_ulong(atom(name)), c_ulong(atom(kind)), 32, 0, byref(c_long(value)), 1)
write(root, b"_NET_ACTIVE_WINDOW", b"WINDOW", window.value)
write(window, b"_NET_WM_STATE", b"ATOM", atom(b"_NET_WM_STATE_FULLSCREEN"))
answers = []
for owner in (os.getppid(), os.getpid()):
    write(window, b"_NET_WM_PID", b"CARDINAL", owner)
    screen.XSync(display, 0)
    answers.append(linux.full_screen())
print(*answers)
"""


@ONLY_LINUX
def test_only_a_window_of_another_program_fills_the_screen():
    if not shutil.which("Xvfb"):
        pytest.skip("there is no Xvfb")
    with x_screen() as environment:
        outcome = subprocess.run(
            [sys.executable, "-c", FILLING_WINDOW], env=environment, capture_output=True, text=True, check=False
        )
    assert (outcome.stdout.split(), outcome.stderr) == (["True", "False"], "")


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (("/usr/bin/waggle", "engine"), True),
        (("C:\\Programs\\Waggle\\Waggle.exe",), True),
        (("/opt/python3.11", "-m", "waggle", "--replay"), True),
        (("python3", "-I", "/home/ann/.local/bin/waggle", "engine"), True),
        (("python3", "-m", "pytest", "waggle"), False),
        (("python3", "wiggle.py", "-m", "waggle"), False),
        (("nano", "waggle"), False),
        ((), False),
    ],
)
def test_a_process_of_waggle_is_known_by_its_command_line(command, ours):
    assert own_processes.is_waggle(command) is ours


def test_what_waggle_starts_is_no_other_program():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert own_processes.is_own(os.getpid())
        assert own_processes.is_own(child.pid)
        child.communicate(b"\n")
    assert not own_processes.is_own(child.pid), "it has ended"
    assert not own_processes.is_own(os.getppid())


@pytest.mark.parametrize(
    ("output", "screen"),
    [
        ('as 3 "LANG=C.UTF-8" "DISPLAY=:0" "XAUTHORITY=/run/user/1000/x"', {"DISPLAY": ":0", "XAUTHORITY": "/run/user/1000/x"}),
        ('as 2 "WAYLAND_DISPLAY=wayland-0" "NOT_DISPLAY=:1"', {"WAYLAND_DISPLAY": "wayland-0"}),
        ('as 1 "DISPLAY="', {}),
        ("as 0", {}),
        ("", {}),
    ],
)
def test_the_screen_that_systemd_was_told_of_is_understood(output, screen):
    assert linux.screen_of(output) == screen


@ONLY_LINUX
def test_a_service_that_was_there_first_hears_of_the_screen_of_whoever_logs_in_and_of_the_next(tmp_path, monkeypatch):
    for name in linux.SCREEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(linux, "SECONDS", 60.0)
    monkeypatch.setattr(linux, "LOOK_S", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(linux, "_screen", linux._Screen())
    bus = tmp_path / "busctl"
    for environment, idle in (("as 0", None), ('as 1 "WAYLAND_DISPLAY=wayland-0"', 600.0), ("as 0", None)):
        bus.write_text(f"#!/bin/sh\ncase \"$*\" in *systemd1*) echo '{environment}';; *) echo t 600000;; esac\n")
        bus.chmod(0o755)
        assert linux.idle_seconds() == idle


def test_without_a_screen_nothing_is_told():
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    code = "from waggle.engine.system.sensors import linux; print(linux.idle_seconds(), linux.full_screen())"
    environment["PYTHONPATH"] = str(Path(waggle.__file__).parents[1])
    outcome = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["None", "None"]


def test_a_battery_that_empties_while_plugged_in_counts_as_battery_until_it_is_charged_again(monkeypatch):
    """Where the system does not say that it empties: its charge does."""
    now, battery_now = [0.0], {"percent": 80.0, "plugged": True}
    reading = type("Reading", (), {"percent": property(lambda _: battery_now["percent"]),
                                   "power_plugged": property(lambda _: battery_now["plugged"])})()  # fmt: skip
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(psutil, "sensors_battery", lambda: reading, raising=False)
    reader = SensorReader(clock=lambda: now[0])
    results = []
    readings = [(0, 80), (10, 79), (20, 78), (25, 77), (60, 77), (70, 78)]
    for minutes, percent, plugged in (*((*each, True) for each in readings), (71, 60, False), (72, 60, True)):
        now[0], battery_now["percent"], battery_now["plugged"] = 60.0 * minutes, float(percent), plugged
        results.append(reader._on_power())
    assert results == [True, True, False, False, True, True, False, True]
