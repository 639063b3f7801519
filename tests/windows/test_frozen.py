"""What people install on Windows, under Wine: PyInstaller freezes Waggle, and its installer installs, upgrades and removes it.

PyInstaller takes an hour there on a busy computer.
"""

import shutil
import subprocess
from pathlib import Path

import make_windows
import pytest
import smoke

from waggle.protocol import events
from windows.rig import PYTHON_PROGRAM
from windows.test_windows import AT_ANY_TIME, START_SECONDS, forget_installed, keep_picture, until_recorded, until_shown

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(4 * 3600)]

BUILD_SECONDS = 3.0 * 3600
VERSION = "1.2.3"
FREEZE = r"""
import sys
sys.path.insert(0, r"C:\waggle\packaging")
import build, notices
build.WORK.mkdir(exist_ok=True)
folder = build.WORK / "Waggle"
build.freeze(folder, sys.argv[1])
notices.write(folder / "notices")
"""


@pytest.fixture(scope="module")
def frozen(rig) -> Path:
    """The frozen folder. On Windows, build.py does the same, and wraps it with a makensis that Wine does not have."""
    command = (PYTHON_PROGRAM, "-X", "utf8", "-c", FREEZE, VERSION)
    built = rig.run(*command, seconds=BUILD_SECONDS, QT_QPA_PLATFORM="offscreen")
    assert built.returncode == 0, built.stderr
    return rig.source / "build/Waggle"


def test_what_people_install_is_installed_tried_upgraded_and_removed(rig, frozen, figures, tmp_path):
    installer = make_windows.installer(frozen, frozen.parent / "waggle.ico", VERSION, tmp_path)
    figures["windows_installer_mib"] = round(installer.stat().st_size / 2**20)
    figures["windows_installed_mib"] = round(sum(path.stat().st_size for path in frozen.rglob("*") if path.is_file()) / 2**20)
    shutil.copyfile(installer, rig.drive / "setup.exe")
    place, here = r"C:\programs\Waggle", rig.drive / "programs/Waggle"  # not beside the source, C:\waggle
    forget_installed(rig)
    for folder in ("programs", "new", "upgraded", "computing", "generic", "first_start", "home"):
        shutil.rmtree(rig.drive / folder, ignore_errors=True)
    for attempt in ("new", "upgraded"):
        assert rig.run(r"C:\setup.exe", "/S", f"/D={place}", seconds=START_SECONDS).returncode == 0
        tried = rig.run(rf"{place}\waggle-console.exe", "selftest", "--home", rf"C:\{attempt}", seconds=START_SECONDS)
        assert tried.returncode == 0, tried.stdout + tried.stderr
        assert (here / "_internal").exists()
    figures["frozen_selftest_rc"] = tried.returncode
    smoke.generic_model(rig.drive / "generic")
    computing = ("selftest", "--home", r"C:\computing", "--set", r"model.folder=C:\generic")
    generic = rig.run(rf"{place}\waggle-console.exe", *computing, seconds=START_SECONDS)
    assert generic.returncode == 0, generic.stdout + generic.stderr
    options = [part for value in ("swarm.solo=true", *AT_ANY_TIME) for part in ("--set", value)]
    for name, more in (("first_start", []), ("home", options)):
        window = rig.start(rf"{place}\Waggle.exe", "--home", rf"C:\{name}", *more, output=subprocess.DEVNULL)
        try:
            until_shown(rig, window, tmp_path / "window.png", 200)
            if more:  # then it asks no questions first
                until_recorded(window, rig.drive / name / "events", events.RoundCompleted)
                rig.picture(tmp_path / "window.png")
            keep_picture(tmp_path / "window.png", name)
        finally:
            window.kill()
            rig.end_programs()
    removed = rig.run(rf"{place}\uninstall.exe", "/S", f"_?={place}", seconds=START_SECONDS)
    assert removed.returncode == 0
    assert not (here / "Waggle.exe").exists()
    assert not (here / "_internal").exists()
