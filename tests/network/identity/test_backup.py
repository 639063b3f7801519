"""A backup opens only with its passphrase, and restoring a key never loses the key before it."""

import os
import stat
import sys

import pytest

from network.loopback import fresh_identity
from waggle.core.errors import IdentityError
from waggle.core.peer_id import text_of
from waggle.network.identity import backup, keys

WORDS = "correct horse battery"


def test_an_identity_goes_through_a_backup_and_comes_back_whole(tmp_path):
    mine, other = fresh_identity(tmp_path, "mine"), fresh_identity(tmp_path, "other")
    backup.write(tmp_path / "backup.txt", mine, WORDS)
    opened = backup.read(tmp_path / "backup.txt", WORDS)
    assert opened.peer_id == mine.peer_id

    aside = backup.restore_key_file(other.path, opened.content)
    assert keys.load_or_create(other.path).peer_id == mine.peer_id
    assert keys.load_or_create(aside).peer_id == other.peer_id, "the one before is kept"
    if sys.platform != "win32":  # which has access lists: tests/core/system/test_access_list.py
        assert stat.S_IMODE(other.path.stat().st_mode) == 0o400


@pytest.mark.skipif(os.name == "nt", reason="there a key gives its own name up first")
def test_a_kill_while_a_key_is_put_back_leaves_one_of_the_two_in_its_place(tmp_path):
    mine, other = fresh_identity(tmp_path, "mine"), fresh_identity(tmp_path, "other")
    content, done = mine.path.read_bytes(), 0

    class Kill(BaseException):
        pass

    def killed(event: str, arguments: tuple) -> None:
        if watched and event in ("os.rename", "os.link", "os.remove", "open") and str(tmp_path) in str(arguments):
            watched[0] -= 1
            if watched[0] < 0:
                watched.clear()
                raise Kill

    watched: list[int] = []
    sys.addaudithook(killed)
    for operation in range(10):
        watched[:] = [operation]
        try:
            backup.restore_key_file(other.path, content)
        except Kill:
            done = operation
        watched.clear()
        assert keys.load_or_create(other.path).peer_id in (mine.peer_id, other.peer_id)
    assert done >= 2, "it was killed at each of its steps"


def test_where_a_key_cannot_be_replaced_everything_is_as_it_was(tmp_path, monkeypatch):
    mine, other = fresh_identity(tmp_path, "mine"), fresh_identity(tmp_path, "other")

    def refuses(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup.os, "replace", refuses)
    with pytest.raises(IdentityError, match="cannot be replaced"):
        backup.restore_key_file(other.path, mine.path.read_bytes())
    assert keys.load_or_create(other.path).peer_id == other.peer_id
    assert sorted(path.name for path in tmp_path.glob("*.key")) == ["mine.key", "other.key"]


def test_a_backup_says_in_plain_words_whose_it_is_and_hides_the_key(tmp_path):
    mine = fresh_identity(tmp_path, "mine")
    blob = backup.seal(mine, WORDS)
    assert f"name: {keys.name_of(mine.peer_id)}" in blob.decode()
    assert mine.path.read_bytes()[4:36] not in blob
    assert backup.seal(mine, WORDS) != blob, "no two are the same"


def test_another_passphrase_opens_nothing(tmp_path):
    blob = backup.seal(fresh_identity(tmp_path, "mine"), WORDS)
    with pytest.raises(IdentityError, match="does not open"):
        backup.unseal(blob, "correct horse batterY")


@pytest.mark.parametrize("line", [1, 2], ids=["by another name", "by another key"])
def test_a_backup_that_names_somebody_else_is_noticed(tmp_path, line):
    mine, other = fresh_identity(tmp_path, "mine"), fresh_identity(tmp_path, "other")
    lines = backup.seal(mine, WORDS).decode().splitlines()
    lines[line] = ("name: Somebody Else", f"peer: {text_of(other.peer_id)}")[line - 1]
    with pytest.raises(IdentityError, match="was changed"):
        backup.unseal("\n".join(lines).encode(), WORDS)


def test_a_backup_opens_where_names_are_made_of_other_words(tmp_path, monkeypatch):
    mine = fresh_identity(tmp_path, "mine")
    blob, name = backup.seal(mine, WORDS), keys.name_of(mine.peer_id)
    monkeypatch.setattr(keys, "ADJECTIVES", ("Newest",))
    assert keys.name_of(mine.peer_id) != name
    assert backup.unseal(blob, WORDS).peer_id == mine.peer_id


@pytest.mark.parametrize("blob", [b"", b"hello", b"\xff" * 5000, backup.HEAD.encode() + b"\nname: x\npeer: y\n\nAAAA\n"])
def test_what_is_no_backup_is_said_to_be_none(blob):
    with pytest.raises(IdentityError):
        backup.unseal(blob, WORDS)


def test_a_short_passphrase_and_a_place_that_is_taken_are_refused(tmp_path):
    mine = fresh_identity(tmp_path, "mine")
    with pytest.raises(IdentityError, match="at least 8"):
        backup.write(tmp_path / "backup.txt", mine, "short")
    (tmp_path / "backup.txt").write_text("something dear")
    with pytest.raises(IdentityError, match="something at"):
        backup.write(tmp_path / "backup.txt", mine, WORDS)
    assert (tmp_path / "backup.txt").read_text() == "something dear"


def test_a_file_of_a_like_name_beside_a_backup_is_left_alone(tmp_path):
    (tmp_path / "mine.new").write_text("somebody's")
    backup.write(tmp_path / "mine.txt", fresh_identity(tmp_path, "me"), WORDS)
    assert (tmp_path / "mine.new").read_text() == "somebody's"


def test_a_backup_is_for_its_owner_alone_and_no_link_leads_it_elsewhere(tmp_path):
    (tmp_path / "dear.txt").write_text("something dear")
    (tmp_path / "mine.txt.new").symlink_to(tmp_path / "dear.txt")
    backup.write(tmp_path / "mine.txt", fresh_identity(tmp_path, "me"), WORDS)
    assert (tmp_path / "dear.txt").read_text() == "something dear"
    assert (tmp_path / "mine.txt.new").is_symlink(), "it is somebody's, too"
    if sys.platform != "win32":  # which has access lists: tests/core/system/test_access_list.py
        assert stat.S_IMODE((tmp_path / "mine.txt").lstat().st_mode) == 0o600


def test_where_the_key_file_is_gone_no_backup_is_made(tmp_path):
    mine = fresh_identity(tmp_path, "mine")
    mine.path.chmod(0o600)  # Windows removes no file that is read-only
    mine.path.unlink()
    with pytest.raises(IdentityError, match="cannot be opened"):
        backup.write(tmp_path / "backup.txt", mine, WORDS)
    assert not (tmp_path / "backup.txt").exists()
