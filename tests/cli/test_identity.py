"""`waggle identity` puts a backup back while nothing runs, also where the key file is damaged."""

import io

import pytest

from waggle.cli import main
from waggle.core import paths
from waggle.engine.control import server
from waggle.network.identity import keys

PASSPHRASE = "four words nobody guesses"


@pytest.fixture
def identity(tmp_path, monkeypatch, capsys):
    """Runs `waggle identity` with a passphrase on stdin; returns the exit code and what was printed."""

    def run(verb, home="home", passphrase=PASSPHRASE):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{passphrase}\n"))
        code = main.main(["identity", "--home", str(tmp_path / home), verb, str(tmp_path / "backup.txt")])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


@pytest.mark.parametrize("content", [b"", b"\x08\x01\x12\x40" + bytes(64), None])
def test_a_damaged_or_lost_identity_is_restored_from_its_backup_and_the_damaged_file_stays(tmp_path, identity, content):
    home = paths.Home(tmp_path / "home").prepare()
    before = keys.load_or_create(home.identity)
    assert identity("backup")[0] == 0
    home.identity.unlink()
    if content is not None:
        home.identity.write_bytes(content)
    code, printed = identity("restore")
    assert (code, keys.name_of(before.peer_id) in printed) == (0, True)
    assert keys.load_or_create(home.identity).peer_id == before.peer_id
    old_files = [path.read_bytes() for path in home.root.glob("identity.*.key")]
    assert old_files == ([] if content is None else [content])
    assert identity("restore")[0] == 0
    assert len(list(home.root.glob("identity.*.key"))) == len(old_files), "it is there already"


def test_a_backup_says_whose_it_is_and_a_wrong_passphrase_changes_nothing(tmp_path, identity):
    home = paths.Home(tmp_path / "home").prepare()
    before = keys.load_or_create(home.identity)
    identity("backup")
    assert keys.name_of(before.peer_id) in identity("check", home="other")[1]
    assert not (tmp_path / "other").exists()
    home.identity.chmod(0o600)
    home.identity.write_bytes(b"")
    code, printed = identity("restore", passphrase="another passphrase")
    assert (code, "does not open the backup" in printed) == (1, True)
    assert home.identity.read_bytes() == b""


def test_nothing_is_restored_while_an_engine_has_the_home(tmp_path, identity):
    home = paths.Home(tmp_path / "home").prepare()
    lock = server.claim_home(home)
    try:
        assert identity("backup")[0] == 1
    finally:
        lock.release()
    assert not (tmp_path / "backup.txt").exists()


def test_a_copy_becomes_somebody_new_and_the_old_key_file_stays(tmp_path, capsys):
    home = paths.Home(tmp_path / "home").prepare()
    before = keys.load_or_create(home.identity)
    assert main.main(["identity", "--home", str(home.root), "renew", "--yes"]) == 0
    after = keys.load_or_create(home.identity)
    assert after.peer_id != before.peer_id
    assert keys.name_of(after.peer_id) in capsys.readouterr().out
    (old,) = home.root.glob("identity.*.key")
    assert keys.load_or_create(old).peer_id == before.peer_id


@pytest.mark.parametrize("words", [["renew", "backup.txt"], ["restore"]])
def test_a_file_too_many_or_too_few_is_said(tmp_path, capsys, words):
    assert main.main(["identity", "--home", str(tmp_path / "home"), *words]) == 1
    assert "waggle identity" in capsys.readouterr().err
