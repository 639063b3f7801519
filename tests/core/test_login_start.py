"""What starts at a login: files of this user alone, on the three systems, and none of them stays."""

import plistlib
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import system_folders
from waggle.cli import main
from waggle.core import login_start, paths

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="writes files of Linux")


@pytest.fixture
def user(tmp_path, monkeypatch) -> Path:
    """The folder of a user, with a `systemctl` that writes down what it is asked for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.delenv("WAGGLE_HOME", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


@pytest.fixture
def home(user) -> paths.Home:
    return paths.home_in(None)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_service_is_installed_started_and_removed_without_a_trace(user, home, capsys):
    assert main.main(["install-service"]) == 0
    assert files_below(user / "config") == ["systemd/user/waggle-engine.service"]
    assert (user / "asked").read_text().splitlines() == ["--user daemon-reload", "--user enable --now waggle-engine.service"]
    assert login_start.chosen(home) == "engine"
    assert main.main(["install-service"]) == 0, "again"
    assert main.main(["install-service", "--remove"]) == 0
    assert files_below(user / "config") == []
    assert "disable --now" in (user / "asked").read_text()
    assert login_start.chosen(home) == "nothing"
    assert main.main(["install-service", "--remove"]) == 0
    assert "Nothing of Waggle" in capsys.readouterr().out


def test_the_line_of_the_service_starts_this_waggle_with_its_home(tmp_path, user):
    """A home with a space, and signs that systemd and desktops read as their own."""
    odd = paths.Home(user / 'a "b" $HOME 100% c')
    content = login_start.registration("engine", odd).content.decode()
    line = next(line for line in content.splitlines() if line.startswith("ExecStart="))
    words = shlex.split(line.removeprefix("ExecStart=").replace("$$", "$").replace("%%", "%"))
    assert words[-3:] == ["engine", "--home", str(odd.root)]
    assert Path(words[0]).exists()


def test_a_desktop_opens_the_window_and_does_not_once_the_program_is_gone(user, home):
    assert login_start.choose("window", home) == ""
    (file,) = (user / "config/autostart").iterdir()
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines()[1:])
    assert lines["Exec"].endswith("--background")
    assert Path(lines["TryExec"]).exists(), "desktops pass an entry over whose TryExec is not there"


def test_a_service_from_the_source_finds_the_source_again(user, home, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/where the source/is")
    content = login_start.registration("engine", home).content.decode()
    assert '/usr/bin/env "PYTHONPATH=/where the source/is" ' in content


def test_one_choice_replaces_the_other(user, home):
    for what in ("window", "engine", "window"):
        login_start.choose(what, home)
        assert login_start.chosen(home) == what
        assert len(files_below(user / "config")) == 1
    login_start.choose("nothing", home)
    assert files_below(user / "config") == []


def test_where_there_is_no_systemd_a_desktop_starts_the_engine(user, home, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    login_start.choose("engine", home)
    assert files_below(user / "config") == ["autostart/io.waggle.engine.desktop"]
    monkeypatch.undo()


def test_a_session_without_systemd_is_said_and_the_file_is_there_for_the_next_login(user, home, capsys):
    (user / "bin/systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    assert main.main(["install-service"]) == 0
    assert "Failed to connect to bus" in capsys.readouterr().out
    assert login_start.chosen(home) == "engine"


@pytest.mark.parametrize("what", ["window", "engine"])
def test_the_files_for_mac_and_windows_are_well_formed(user, home, what):
    agent = plistlib.loads(login_start.registration(what, home, "darwin").content)
    assert agent["RunAtLoad"] is True
    assert ("engine" in agent["ProgramArguments"]) == (what == "engine")
    task = login_start.registration(what, home, "win32")
    root = ET.fromstring(task.content.decode("utf-16").partition("?>")[2])
    space = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
    command, arguments = (root.find(f".//{space}{name}").text for name in ("Command", "Arguments"))
    assert command == sys.executable
    assert what == "window" or "engine" in arguments
    assert task.end[0][:2] == ("schtasks", "/Delete")


def test_goodbye_removes_what_starts_at_a_login(user, home, monkeypatch):
    monkeypatch.setattr("waggle.core.hub_token.stored_token", lambda: None)  # the keychain of whoever runs the tests
    home.prepare()
    login_start.choose("engine", home)
    assert main.main(["goodbye", "--remove", "all"]) == 0
    assert files_below(user / "config") == []


def test_a_printed_service_changes_nothing(user, home, capsys):
    assert main.main(["install-service", "--print"]) == 0
    assert "ExecStart=" in capsys.readouterr().out
    assert files_below(user / "config") == []


@pytest.mark.skipif(not Path("/usr/bin/systemd-analyze").exists(), reason="there is no systemd here")
def test_systemd_itself_accepts_the_service(tmp_path, user, home):
    file = tmp_path / login_start.UNIT
    file.write_bytes(login_start.registration("engine", home).content)
    done = subprocess.run(
        ["/usr/bin/systemd-analyze", "--user", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert "waggle-engine" not in done.stderr


@pytest.mark.parametrize(("value", "files"), [("engine", ["systemd/user/waggle-engine.service"]), ("window", ["autostart"])])
def test_the_setting_is_carried_out_by_command_too(user, home, value, files):
    assert main.main(["set", f"window.at_login={value}"]) == 0
    assert login_start.chosen(home) == value
    assert [path.startswith(file) for path, file in zip(files_below(user / "config"), files, strict=True)] == [True]
    assert main.main(["set", "window.at_login="]) == 0
    assert files_below(user / "config") == []


def test_a_login_start_is_offered_only_where_something_reads_it(monkeypatch):
    for name in ("XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "SNAP"):
        monkeypatch.delenv(name, raising=False)
    assert not login_start.is_offered("linux"), "a server, or a container"
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "GNOME")
    assert login_start.is_offered("linux")
    monkeypatch.setenv("SNAP", "/snap/waggle/1")
    assert not login_start.is_offered("linux")
    assert login_start.is_offered("darwin")
    assert login_start.is_offered("win32")
