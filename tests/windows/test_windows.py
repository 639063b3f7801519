"""Waggle on Windows' own Python, with the locked wheels for Windows, under Wine. Run it as root, as docs/releasing.md says."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import make_windows
import pytest
from PIL import Image

from end_to_end.programs import USUAL, Engine, running
from waggle import node
from waggle.core import settings
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import AnyEvent
from windows.rig import PYTHON_PROGRAM, REPOSITORY

AT_ANY_TIME = tuple(map(settings.override, node.AT_ANY_TIME, node.AT_ANY_TIME.values()))
pytestmark = [pytest.mark.windows, pytest.mark.timeout(3600)]

START_SECONDS = 600.0  # most of a program of Windows, on a busy computer
LOG_OFF, SHUT_DOWN = 0, 1  # EWX_LOGOFF, EWX_SHUTDOWN


@pytest.fixture
def home(rig):
    """A home outside the profile, which is on the same disk there."""
    name = f"home{time.monotonic_ns()}"
    yield rf"C:\{name}"
    shutil.rmtree(rig.drive / name, ignore_errors=True)


def test_the_doctor_has_no_complaint(rig, waggle, home):
    report = rig.run(PYTHON_PROGRAM, "-m", "waggle", "doctor", "--home", home, seconds=START_SECONDS)
    assert report.returncode == 0, report.stdout + report.stderr
    assert "Windows AMD64" in report.stdout
    assert "BAD" not in report.stdout


def test_three_rounds_are_played(rig, home, figures):
    tried = rig.run(PYTHON_PROGRAM, "-m", "waggle", "selftest", "--home", home, seconds=2 * START_SECONDS)
    figures["selftest_rc"] = tried.returncode
    figures["rounds"] = len(re.findall(r"^Round \d+:", tried.stdout, re.MULTILINE))
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert figures["rounds"] == 3


def test_an_engine_is_asked_paused_and_stopped_through_its_port(rig, waggle, home):
    def ctl(word):
        return rig.run(PYTHON_PROGRAM, "-m", "waggle", "ctl", word, "--home", home, seconds=START_SECONDS)

    with running(Engine(home, "swarm.solo=true", *AT_ANY_TIME, command=waggle)) as engine:
        engine.wait_round(1, START_SECONDS)
        status = ctl("status")
        assert status.returncode == 0, status.stdout + status.stderr
        assert "First light" in status.stdout
        assert ctl("pause").returncode == 0
        engine.wait(events.PhaseChanged, 60.0, lambda event: event.phase == "paused")
        assert isinstance(engine.command(commands.Stop), events.CommandDone)
        assert engine.end() == 0
    assert list((rig.drive / home.rpartition("\\")[2] / "checkpoints").glob("r*"))


def test_a_window_opens_and_a_second_start_raises_it(rig, home, figures, tmp_path):
    options = [part for value in ("swarm.solo=true", *AT_ANY_TIME) for part in ("--set", value)]
    window = rig.start(PYTHON_PROGRAM, "-m", "waggle", "--home", home, *options)
    try:
        until_shown(rig, window, tmp_path / "window.png", 200)
        figures["window_shown"] = 1
        until_recorded(window, rig.drive / home.rpartition("\\")[2] / "events", events.RoundCompleted)
        second = rig.run(PYTHON_PROGRAM, "-m", "waggle", "--home", home, seconds=START_SECONDS)
        assert second.returncode == 0, second.stderr
        rig.picture(tmp_path / "second.png")
        keep_picture(tmp_path / "second.png", "window")
        assert window.poll() is None, "the first window stays"
    finally:
        window.kill()
        rig.end_programs()


def test_it_trains_with_a_linux_node_through_a_gateway(waggle, home, figures, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lent = ("web.gateway=true", f"web.port={port}", "swarm.host=127.0.0.1", *AT_ANY_TIME)
    with running(Engine(tmp_path, *lent)) as linux:
        linux.wait_round(0, START_SECONDS)
        gateways = f'swarm.gateways=["ws://127.0.0.1:{port}/gateway"]'
        with running(Engine(home, gateways, *AT_ANY_TIME, command=waggle)) as windows:
            windows.wait(events.Ready, START_SECONDS)
            ready = time.monotonic()
            windows.wait(events.PeerGroupsArrived, START_SECONDS)
            figures["joined_linux_node_s"] = round(time.monotonic() - ready, 1)
            linux.wait(events.PeerGroupsArrived, START_SECONDS)
            last = windows.wait(events.RoundCompleted, START_SECONDS, lambda event: event.summary.external > 0).summary
            figures["windows_rounds"] = last.round + 1
            figures["windows_groups_used"] = last.external
            assert windows.end() == 0


@pytest.mark.parametrize("way", [LOG_OFF, SHUT_DOWN], ids=["log off", "shut down"])
def test_an_engine_saves_and_ends_when_its_user_logs_off_or_shuts_down(rig, home, figures, way):
    options = [part for value in ("swarm.solo=true", *USUAL, *AT_ANY_TIME) for part in ("--set", value)]
    records = rig.drive / home.rpartition("\\")[2] / "events"
    with rig.start(PYTHON_PROGRAM, "-m", "waggle", "engine", "--home", home, *options, output=subprocess.DEVNULL) as engine:
        try:
            until_recorded(engine, records, events.RoundCompleted)
            leave = f"import ctypes; ctypes.windll.user32.ExitWindowsEx({way}, 0)"
            assert rig.run(PYTHON_PROGRAM, "-c", leave, seconds=START_SECONDS).returncode == 0
            assert engine.wait(START_SECONDS) == 0
        finally:
            rig.end_programs()
            engine.kill()
    assert isinstance(recorded(records)[-1], events.EngineStopped), "it was not just ended"
    figures["ended_in_order_at_log_off_or_shut_down"] = figures.get("ended_in_order_at_log_off_or_shut_down", 0) + 1


def test_the_installer_installs_beside_a_left_over_file_upgrades_and_removes(rig, tmp_path, figures):
    payload = tmp_path / "Waggle"
    (payload / "_internal").mkdir(parents=True)
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 0; }\n", encoding="ascii")
    for name in ("Waggle", "waggle-console", "waggle-verifier"):
        subprocess.run(["x86_64-w64-mingw32-gcc", "-mwindows", "-o", payload / f"{name}.exe", source], check=True)
    icon = tmp_path / "waggle.ico"
    drawing = [sys.executable, str(REPOSITORY / "packaging/icon.py"), str(icon)]
    subprocess.run(drawing, check=True, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})
    installer = make_windows.installer(payload, icon, "1.2.3", tmp_path)
    shutil.copyfile(installer, rig.drive / "setup.exe")
    forget_installed(rig)
    users = rig.drive / "users/root/AppData/Local/Programs"
    (users / "Waggle").mkdir(parents=True, exist_ok=True)
    (users / "Waggle/notes.txt").write_text("mine", encoding="ascii")

    installing = rig.start(r"C:\setup.exe")
    until_shown(rig, installing, tmp_path / "installer.png", 30)
    keep_picture(tmp_path / "installer.png", "installer")
    installing.kill()
    rig.end_programs()
    for _ in range(2):  # the second is an upgrade
        assert rig.run(r"C:\setup.exe", "/S", seconds=START_SECONDS).returncode == 0
        assert (users / "Waggle/Waggle.exe").exists()
    other = rig.drive / "other"
    (other / "_internal").mkdir(parents=True, exist_ok=True)
    assert rig.run(r"C:\setup.exe", "/S", r"/D=C:\other", seconds=START_SECONDS).returncode == 0
    assert (other / "Waggle/Waggle.exe").exists()
    assert (other / "_internal").exists(), "another program's"
    for folder in (r"C:\other\Waggle", r"C:\users\root\AppData\Local\Programs\Waggle"):
        place = folder.replace("\\", "/").replace("C:", str(rig.drive))
        assert rig.run(rf"{folder}\uninstall.exe", "/S", f"_?={folder}", seconds=START_SECONDS).returncode == 0
        assert not Path(place, "Waggle.exe").exists()
    assert (users / "Waggle/notes.txt").read_text(encoding="ascii") == "mine"
    shutil.rmtree(users / "Waggle")
    shutil.rmtree(other)


def forget_installed(rig) -> None:
    """Let the next installer choose its folder, also after a test that was ended before it had uninstalled."""
    rig.run("reg", "delete", r"HKCU\Software\Waggle", "/f", seconds=START_SECONDS)


def until_shown(rig, program, picture: Path, colours: int) -> None:
    """Take pictures of the screen until one has so many colours, while the program runs."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and program.poll() is None:
        rig.picture(picture)
        with Image.open(picture) as screen:
            present = screen.convert("RGB").getcolors(1 << 20)
        if present is None or len(present) >= colours:
            return
        time.sleep(0.5)
    pytest.fail(f"nothing on the screen within {START_SECONDS} s")


def until_recorded(program, records: Path, kind: type) -> None:
    """Wait for an event in the records of an engine, while the program runs."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and program.poll() is None:
        if any(isinstance(event, kind) for event in recorded(records)):
            return
        time.sleep(0.5)
    pytest.fail(f"no {kind.__name__} within {START_SECONDS} s: {program.poll()}")


def recorded(records: Path) -> list[AnyEvent | None]:
    return [event for path in sorted(records.glob("*.jsonl")) for event in json_lines.recording(path)]


def keep_picture(picture: Path, name: str) -> None:
    """Copy it to where the measuring command wants pictures."""
    folder = REPOSITORY / "build/windows"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(picture, folder / f"{name}.png")
