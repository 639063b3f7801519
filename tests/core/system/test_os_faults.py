"""What the system met is said in one sentence, with its file, and with an advice that follows from it."""

import errno
import os
import re
from pathlib import Path

import pytest

import waggle
from waggle.cli import main
from waggle.cli.shared import outcome
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.core.system.os_faults import FAULTS, fault_of, place_of
from waggle.core.text.person_text import decoded
from waggle.gui.state.inputs.invite_link import invite_in_file
from waggle.models.shared.configuration.model_config import table_in
from waggle.network.identity import backup, keys
from waggle.tasks import charter as charters
from waggle.tasks.shipped_swarms import first_swarm


@pytest.mark.parametrize("number", FAULTS)
def test_each_cause_has_a_reason_within_a_sentence_and_an_advice(number):
    fault = fault_of(OSError(number, ""))
    assert re.fullmatch(r"[a-z][^.]+", fault.reason)
    assert re.fullmatch(r"[A-Z].+\.", fault.advice)


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENOSPC, "room"), (errno.EROFS, "writing"), (errno.EACCES, "rights"), (errno.ENOENT, "path"),
        (errno.EIO, "check"), (errno.EMFILE, "limit"), (errno.ENAMETOOLONG, "shorter"), (errno.ENOLCK, "local disk"),
        (errno.ENODEV, "Connect"),
    ],
)  # fmt: skip
def test_the_advice_follows_from_the_cause(number, word):
    assert word in fault_of(OSError(number, "")).advice


def test_the_words_of_the_system_are_kept_so_that_people_can_look_them_up():
    assert fault_of(OSError(errno.EDOM, "an odd thing")).reason == "an odd thing"
    assert fault_of(OSError("no number")).reason == "OSError"


def test_nothing_but_the_table_says_what_the_system_met():
    """A new sentence with the system's bare words would have no advice that follows from it."""
    app = Path(waggle.__file__).parent
    uses = {path.name for path in app.rglob("*.py") if re.search(r"(?<!os)\.strerror", path.read_text(encoding="utf-8"))}
    assert uses == {"os_faults.py"}


@pytest.mark.parametrize("write", [paths.write_atomically, paths.write_new])
def test_a_flush_that_fails_names_the_file(tmp_path, monkeypatch, write):
    """fsync fails without a file on FUSE and network disks."""

    def refuse(_descriptor):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Invalid") as refused:
        write(tmp_path / "file", b"content")
    assert place_of(refused.value) == str(tmp_path / "file")


def test_the_identity_says_why_it_cannot_be_written(tmp_path, monkeypatch, capsys):
    def refuse(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    assert main.main(["identity", "--home", str(tmp_path), "renew", "--yes"]) == 1
    printed = capsys.readouterr().err
    assert "identity.key cannot be written: No space left on device" in printed
    assert "Make room on the disk." in printed


def test_an_error_without_a_file_gets_the_path_that_was_worked_with(tmp_path, capsys, monkeypatch):
    """As `flock` on a network disk: the error names nothing, but Waggle knows what it locked."""

    def command():
        exec(  # noqa: S102 - a function of a module of Waggle
            "def lock(path):\n    raise OSError(errno.ENOLCK, 'No locks available')\nlock(folder)",
            {"__name__": "waggle.pretended", "errno": errno, "folder": tmp_path / "control"},
        )

    assert outcome.exit_code(command) == 1
    printed = capsys.readouterr().err
    assert str(tmp_path / "control") in printed
    assert "local disk" in printed


def marked(text: str) -> list[bytes]:
    windows = text.replace("\n", "\r\n")
    return [text.encode(), windows.encode(), windows.encode("utf-8-sig"), windows.encode("utf-16")]


@pytest.mark.parametrize("content", marked("first\nsecond\n"))
def test_marks_of_editors_are_no_part_of_a_text(content):
    assert decoded(content) == "first\nsecond\n"


def test_every_file_of_a_person_is_read_with_the_marks_of_editors(tmp_path):
    path = tmp_path / "file"
    who = keys.load_or_create(tmp_path / "identity.key")
    sealed = backup.seal(who, "four words nobody guesses").decode()
    link = "waggle://join?charter=" + 64 * "0" + "&seed=/ip4/192.0.2.1/tcp/4001/p2p/x"
    for place in range(4):
        path.write_bytes(marked(charters.encode(first_swarm()).decode())[place])
        assert charters.read(path) == first_swarm()
        path.write_bytes(marked('{\n"model_type": "llama"}\n')[place])
        assert table_in(path) == {"model_type": "llama"}
        path.write_bytes(marked(f"Hello,\n\n{link}\n")[place])
        assert invite_in_file(path) == link
        path.write_bytes(marked(sealed)[place])
        assert backup.read(path, "four words nobody guesses").peer_id == who.peer_id


def test_downloading_again_is_advised_only_where_the_content_is_to_blame(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(ModelError) as damaged:
        table_in(path)
    assert "download" in damaged.value.advice
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ModelError) as circle:
        table_in(tmp_path / "loop")
    assert "links" in circle.value.advice
