"""The setting of what starts at a login is carried out, and shows what others changed."""

import sys

import pytest

from waggle.core import login_start, paths, settings
from waggle.core.errors import EngineError
from waggle.gui.application.login_choice import LoginChoice
from waggle.gui.state.settings_store import SettingsStore


@pytest.fixture
def home(tmp_path, monkeypatch) -> paths.Home:
    """A home of a user without systemd."""
    for variable, folder in (("HOME", ""), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("WAGGLE_HOME", raising=False)
    return paths.home_in(None).prepare()


@pytest.mark.skipif(sys.platform == "win32", reason="writes files of Linux")
def test_the_setting_is_carried_out_and_follows_what_others_changed(home, tmp_path, qtbot):
    store = SettingsStore(home.settings)
    login = LoginChoice(home, store)
    store.set({"window.at_login": "window"})
    qtbot.waitUntil(lambda: login_start.chosen(home) == "window")
    login_start.choose("engine", home)
    login.read()
    assert settings.read(home.settings).window.at_login == "engine"
    store.set({"window.at_login": "nothing"})
    qtbot.waitUntil(lambda: not [path for path in (tmp_path / "config").rglob("*") if path.is_file()])


def test_what_the_system_did_not_do_is_reported(home, qapp, qtbot, monkeypatch):
    def refuse(*_):
        raise EngineError("The file cannot be written.", "Make room.")

    store = SettingsStore(home.settings)
    login = LoginChoice(home, store)
    monkeypatch.setattr(login_start, "choose", refuse)
    with qtbot.waitSignal(login.reported, timeout=5000) as report:
        store.set({"window.at_login": "window"})
    assert report.args == ["The file cannot be written.", "Make room."]
    monkeypatch.setattr(login_start, "choose", lambda *_: "no session")
    with qtbot.waitSignal(login.reported, timeout=5000) as report:
        store.set({"window.at_login": "engine"})
    assert report.args == ["It starts at the next login.", "no session"]
