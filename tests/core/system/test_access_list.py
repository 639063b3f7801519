"""Secrets outside the profile have an access list on Windows; elsewhere file modes do it."""

import os
import stat
from pathlib import Path

import pytest

from waggle.core import paths
from waggle.core.system import access_list
from waggle.engine.control import windows_loopback

USER = "S-1-5-21-1-2-3-1001"
OTHERS = (";;;WD)", ";;;AU)", ";;;BU)", ";;;S-1-1-0)", ";;;S-1-5-11)", ";;;S-1-5-32-545)")  # everybody, and all who log on
windows = pytest.mark.skipif(os.name != "nt", reason="elsewhere file modes do it")


def test_the_list_names_the_user_the_system_and_its_administrators_and_takes_nothing_from_above():
    assert access_list._access_of(USER, folder=False) == f"D:P(A;;FA;;;{USER})(A;;FA;;;SY)(A;;FA;;;BA)"
    assert access_list._access_of(USER, folder=True).count("(A;OICI;FA;;;") == 3


@pytest.mark.skipif(os.name == "nt", reason="there it is set")
def test_elsewhere_nothing_is_set_and_modes_say_it(tmp_path):
    assert not access_list.restrict(tmp_path)
    paths.write_new(tmp_path / "key", b"secret")
    paths.write_atomically(tmp_path / "note", b"secret", mode=0o600)
    for name in ("key", "note"):
        assert not stat.S_IMODE((tmp_path / name).stat().st_mode) & 0o077


async def test_the_note_of_port_and_secret_is_for_its_user_alone(tmp_path, monkeypatch):
    restricted = []
    monkeypatch.setattr(access_list, "restrict", restricted.append)
    server = await windows_loopback.listen(tmp_path, lambda *_: None, limit=1000)
    server.close()
    note = windows_loopback._port_file(tmp_path)
    assert os.name == "nt" or stat.S_IMODE(note.stat().st_mode) == 0o600
    assert [path.name for path in restricted] == ["engine.port.new"], "before the secret is written"


@windows
def test_a_home_outside_the_profile_is_closed_to_others_with_all_that_is_in_it(tmp_path):
    if tmp_path.resolve().is_relative_to(Path.home().resolve()):
        pytest.skip("the temporary folder is in the profile: name another with --basetemp")
    home = paths.Home(tmp_path / "home")
    home.root.mkdir()
    (home.root / "older").write_bytes(b"from before")
    home.prepare()
    paths.write_new(home.control / "secret", b"secret")
    for path in (home.root, home.root / "older", home.control, home.control / "secret"):
        assert not [who for who in OTHERS if who in access_list.access_of(path)], access_list.access_of(path)


@windows
def test_a_file_in_the_profile_stays_as_it_is():
    assert not access_list.restrict(Path.home() / "anything")
