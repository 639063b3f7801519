"""The list of newer versions is accepted only with a valid signature, and only newer versions are shown."""

import contextlib
import json

import feed as signing
import pytest

from waggle.cli import main, update
from waggle.core.errors import UpdateError

URL = "https://example.org/waggle.json"


def release(version):
    file = {"system": "linux", "url": f"{URL}/{version}.deb", "sha256": "a" * 64, "size": 1 << 20}
    return {"version": version, "date": "2026-12-01", "notes": "Better.", "protocol": 1, "files": [file]}


@pytest.fixture
def key(tmp_path):
    public = signing.make_key(tmp_path / "private.pem")
    return public, (tmp_path / "private.pem").read_bytes()


def served(key, *versions):
    return signing.sign(json.dumps({"releases": [release(version) for version in versions]}).encode(), key[1])


def test_what_ships_has_an_empty_key_slot_and_asks_nobody(capsys):
    assert update.shipped_feed() == update.UpdateFeed(feed="", key="")
    assert main.main(["update"]) == 1
    assert "without a key" in capsys.readouterr().err


def test_the_newest_is_found_by_its_numbers_and_an_older_one_is_never_shown(key):
    source = update.UpdateFeed(feed=URL, key=key[0])
    newest = update.ask(source, lambda url: served(key, "99.9.0", "0.0.1", "99.10.0"))
    assert newest is not None
    assert newest.version == "99.10.0"
    assert update.ask(source, lambda url: served(key, "0.0.1", update.__version__)) is None


def test_a_list_that_another_key_signed_is_not_believed(key, tmp_path):
    other = signing.make_key(tmp_path / "other.pem"), (tmp_path / "other.pem").read_bytes()
    with pytest.raises(UpdateError, match="not signed by Waggle's makers"):
        update.read(served(other, "99.0.0"), key[0])


def test_a_list_that_was_changed_on_the_way_is_not_believed(key):
    honest, changed = (json.loads(served(key, version)) for version in ("99.0.0", "99.0.1"))
    with pytest.raises(UpdateError, match="not signed"):
        update.read(json.dumps({**honest, "feed": changed["feed"]}).encode(), key[0])


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b'{"feed":"!","signature":""}', b"[" * 100_000, b" " * 300_000])
def test_nonsense_is_refused_in_words(key, text):
    with pytest.raises(UpdateError, match="list of versions"):
        update.read(text, key[0])


@pytest.mark.parametrize("change", [{"version": "1.2"}, {"version": "1.2.3-rc1"}, {"date": "soon"}, {"files": [{"system": "x"}]}])
def test_a_signed_list_of_another_form_is_refused_too(key, change):
    text = signing.sign(json.dumps({"releases": [{**release("99.0.0"), **change}]}).encode(), key[1])
    with pytest.raises(UpdateError, match="cannot be read"):
        update.read(text, key[0])


def test_a_list_that_no_waggle_could_read_is_not_signed(key, tmp_path, monkeypatch):
    monkeypatch.setenv("WAGGLE_FEED_KEY", key[1].decode())
    for version, refused in (("99.0", True), ("99.0.0", False)):
        (tmp_path / "feed.json").write_text(json.dumps({"releases": [release("1.0.0") | {"version": version}]}))
        with pytest.raises(SystemExit, match="cannot be read") if refused else contextlib.nullcontext():
            assert signing.main(["sign", str(tmp_path / "feed.json"), str(tmp_path / "served.json")]) == 0
        assert (tmp_path / "served.json").exists() != refused


def test_an_address_in_the_clear_is_not_asked():
    with pytest.raises(UpdateError, match="not https"):
        update.fetch("http://example.org/waggle.json")
