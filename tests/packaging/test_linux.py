"""Metadata and scripts of the Linux packages; `dev.py package` builds them."""

import configparser
import functools
import os
import plistlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import make_linux
import pytest
import version

HERE = Path(make_linux.HERE)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="runs scripts of Linux")


def test_the_menu_entry_opens_links_and_is_named_as_metainfo_and_icon_are():
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(HERE / f"linux/{make_linux.NAME}.desktop", encoding="utf-8")
    metainfo = ElementTree.parse(HERE / f"linux/{make_linux.NAME}.metainfo.xml").getroot()
    assert entry["Desktop Entry"]["Exec"] == "waggle %u"
    kind = ElementTree.parse(HERE / f"linux/{make_linux.NAME}.mime.xml").getroot()[0]
    assert entry["Desktop Entry"]["MimeType"] == f"x-scheme-handler/waggle;{kind.attrib['type']};"
    assert [child.attrib["pattern"] for child in kind if child.tag.endswith("glob")] == ["*.waggle"]
    assert entry["Desktop Entry"]["Icon"] == metainfo.findtext("id") == make_linux.NAME
    assert metainfo.findtext("launchable") == f"{make_linux.NAME}.desktop"
    assert entry["Desktop Entry"]["Comment"] == metainfo.findtext("summary")


def test_metainfo_and_changelog_know_the_version_of_the_source():
    metainfo = ElementTree.parse(HERE / f"linux/{make_linux.NAME}.metainfo.xml").getroot()
    assert metainfo.find("releases/release").attrib["version"] == version.of_source()
    assert f"## {version.of_source()}\n" in (HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        ("desktop-file-validate", f"linux/{make_linux.NAME}.desktop"),
        ("appstreamcli", "validate", "--no-net", f"linux/{make_linux.NAME}.metainfo.xml"),
        ("sh", "-n", "linux/install.sh"),
    ],
)
def test_the_tools_of_the_desktop_accept_it(command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_is_made_of_a_folder_without_scripts_that_run_as_root(tmp_path, request):
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    request.addfinalizer(functools.partial(os.umask, os.umask(0o077)))  # a umask that keeps files from other users
    (tmp_path / "Waggle").mkdir()
    shutil.copy("/bin/true", tmp_path / "Waggle/waggle")
    package = make_linux.deb(tmp_path / "Waggle", "1.2.3.dev4", tmp_path)
    control = subprocess.check_output(["dpkg-deb", "--field", package], text=True)
    assert "Version: 1.2.3~dev4\n" in control
    assert "Depends: libc6 (>= 2." in control
    inside = subprocess.check_output(["dpkg-deb", "--ctrl-tarfile", package])
    assert b"postinst" not in inside
    assert b"prerm" not in inside
    listed = subprocess.check_output(["dpkg-deb", "--contents", package], text=True)
    assert "usr/bin/waggle -> /opt/waggle/waggle" in listed
    assert "-rwxr-xr-x root/root" in next(line for line in listed.splitlines() if line.endswith("opt/waggle/waggle"))
    assert f"usr/share/mime/packages/{make_linux.NAME}.xml" in listed
    assert "usr/lib/systemd/user/waggle-engine.service" in listed
    assert "usr/lib/systemd/system/waggle-seed.service" in listed


def unit_of(service):
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(HERE / service, encoding="utf-8")
    return unit


@pytest.mark.parametrize("service", ["services/waggle-engine.service", "waggle-seed.service"])
def test_a_service_starts_the_waggle_that_the_package_installs_and_stops_it_alone(service):
    section = unit_of(service)["Service"]
    program, *rest = section["ExecStart"].split()
    if program == "/usr/bin/env":
        program = rest[0]
        assert {"%h/.local/bin", "/usr/bin"} <= set(section["Environment"].removeprefix("PATH=").split(":"))
    assert program in ("waggle", "/usr/bin/waggle")
    assert section["KillMode"] == "mixed"
    output = section.get("StandardOutput", "journal")
    assert "journal" in (output, section.get("StandardError", output)), "otherwise the reason of a failure is lost"


def test_a_service_whose_folder_a_window_has_goes_on_trying_until_that_is_closed():
    unit = unit_of("services/waggle-engine.service")
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Unit"]["StartLimitIntervalSec"] == "0", "starts have no limit"
    task = (HERE / "services/waggle-engine.xml").read_text(encoding="utf-8")
    minutes, count = (int(digits) for digits in re.search(r"<Interval>PT(\d+)M</Interval><Count>(\d+)</Count>", task).groups())
    assert count <= 255, "the Task Scheduler allows no more"
    assert minutes * count > 12 * 60
    agent = plistlib.loads((HERE / "services/io.waggle.engine.plist").read_bytes())
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_services_of_other_systems_start_what_their_installers_put_there():
    agent = plistlib.loads((HERE / "services/io.waggle.engine.plist").read_bytes())
    assert agent["ProgramArguments"] == ["/Applications/Waggle.app/Contents/MacOS/waggle-console", "engine"]
    task = (HERE / "services/waggle-engine.xml").read_text(encoding="utf-8")
    place = re.search(r'InstallDir "\$LOCALAPPDATA(.*)\$\{APP\}"', (HERE / "windows/waggle.nsi").read_text(encoding="utf-8"))
    assert rf"<Command>%LOCALAPPDATA%{place[1]}Waggle\Waggle.exe</Command>" in task, "a program without a console window"
    assert task.count("<UserId>OWN_USER</UserId>") == 2


def test_the_container_compiles_what_has_no_wheel_and_leaves_the_compiler_behind():
    compiling, _, running = (HERE / "seed.containerfile").read_text(encoding="utf-8").partition("\nFROM ")[2].partition("\nFROM ")
    assert compiling.index("gcc") < compiling.index("pip install")
    assert "gcc" not in running
    assert 'ENTRYPOINT ["/opt/waggle/bin/waggle"' in running


def test_where_there_are_no_debian_tools_the_archive_alone_is_made(tmp_path, monkeypatch, capsys):
    (tmp_path / "Waggle").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    (package,) = make_linux.wrap(tmp_path / "Waggle", "1.2.3", tmp_path)
    assert package.name.endswith(".tar.gz")
    assert package.exists()
    assert "No .deb: dpkg-deb" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a home", "a & b#c"])
def test_the_archive_installs_for_one_person_and_leaves_without_a_trace(tmp_path, name):
    (tmp_path / "Waggle").mkdir()
    shutil.copy("/bin/true", tmp_path / "Waggle/waggle")
    shutil.unpack_archive(make_linux.archive(tmp_path / "Waggle", "1.2.3", tmp_path), tmp_path / "unpacked")
    home = tmp_path / name
    home.mkdir()
    script = ["sh", str(tmp_path / "unpacked/Waggle-1.2.3/install.sh")]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    for _ in range(2):  # the second time is an upgrade
        subprocess.run(script, env=environment, check=True, capture_output=True)
    entry = home / f".local/share/applications/{make_linux.NAME}.desktop"
    assert f'Exec="{home}/.local/opt/waggle/waggle" %u' in entry.read_text(encoding="utf-8")
    assert (home / f".local/share/mime/packages/{make_linux.NAME}.xml").exists()
    subprocess.run([home / ".local/bin/waggle"], check=True)
    assert {path.name for path in (home / ".local/opt").iterdir()} == {"waggle"}
    installed = ["sh", str(home / ".local/opt/waggle/install.sh")]
    second_installation = subprocess.run(installed, env=environment, capture_output=True, text=True, check=False)
    assert second_installation.returncode == 1
    assert "installed already" in second_installation.stderr
    subprocess.run([home / ".local/bin/waggle"], check=True)
    subprocess.run([*installed, "--uninstall"], env=environment, check=True, capture_output=True)
    leftovers = [path for path in home.rglob("*") if path.is_file() or path.is_symlink()]  # the databases of the desktop stay
    assert not [path for path in leftovers if "waggle" in path.name.lower() or b"waggle" in path.read_bytes()]


def test_an_uninstalled_waggle_no_longer_starts_at_a_login(tmp_path):
    program = tmp_path / "Waggle/waggle"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >> "$HOME/asked"\nexit 1\n', encoding="utf-8")  # a failure keeps nobody from leaving
    program.chmod(0o755)
    shutil.unpack_archive(make_linux.archive(tmp_path / "Waggle", "1.2.3", tmp_path), tmp_path / "unpacked")
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    script = ["sh", str(tmp_path / "unpacked/Waggle-1.2.3/install.sh")]
    subprocess.run(script, env=environment, check=True, capture_output=True)
    assert not (tmp_path / "asked").exists()
    subprocess.run([*script, "--uninstall"], env=environment, check=True, capture_output=True)
    assert (tmp_path / "asked").read_text() == "install-service --remove\n"
    assert not (tmp_path / ".local/opt/waggle").exists()


def test_the_command_of_another_installation_is_left_alone(tmp_path):
    (tmp_path / "Waggle").mkdir()
    shutil.copy("/bin/true", tmp_path / "Waggle/waggle")
    shutil.unpack_archive(make_linux.archive(tmp_path / "Waggle", "1.2.3", tmp_path), tmp_path / "unpacked")
    link, other = tmp_path / "home/.local/bin/waggle", tmp_path / "pipx/waggle"
    link.parent.mkdir(parents=True)
    link.symlink_to(other)  # the target need not exist any more
    script = ["sh", str(tmp_path / "unpacked/Waggle-1.2.3/install.sh")]
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    for arguments in ((), ("--uninstall",)):
        done = subprocess.run([*script, *arguments], env=environment, check=True, capture_output=True, text=True)
        assert (link.readlink(), "of another installation" in done.stderr) == (other, not arguments)


@pytest.mark.parametrize("arguments", [(), ("--uninstall",)])
def test_files_that_a_running_waggle_reads_are_left_to_it(tmp_path, arguments):
    home, unpacked = tmp_path / "a home", tmp_path / "unpacked"
    place = home / ".local/opt/waggle"
    place.mkdir(parents=True)
    shutil.copy("/bin/sleep", place / "waggle")
    unpacked.mkdir()
    shutil.copy(HERE / "linux/install.sh", unpacked)
    script = ["sh", str(unpacked / "install.sh"), *arguments]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen([place / "waggle", "60"]) as running:
        try:
            done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
        finally:
            running.kill()
    assert done.returncode == 1
    assert "Waggle is running" in done.stderr
    assert {path.name for path in place.parent.iterdir()} == {"waggle"}
    assert (place / "waggle").exists()


def test_an_upgrade_that_finds_no_room_leaves_the_waggle_of_before(tmp_path):
    home, place, unpacked = tmp_path / "home", tmp_path / "home/.local/opt/waggle", tmp_path / "unpacked"
    place.mkdir(parents=True)
    (place / "waggle").write_text("earlier", encoding="utf-8")
    unpacked.mkdir()
    shutil.copy(HERE / "linux/install.sh", unpacked)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cp").write_text("#!/bin/sh\necho No space left on device >&2\nexit 1\n", encoding="utf-8")
    (tmp_path / "bin/cp").chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    done = subprocess.run(["sh", str(unpacked / "install.sh")], env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    assert (place / "waggle").read_text(encoding="utf-8") == "earlier"
