"""The log: one format, rotated, searchable by level and word, without secrets and without floods."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import waggle
from waggle.core import log

CODE = """
import logging, sys
from pathlib import Path
from waggle.core import log
log.start(folder=Path(sys.argv[1]))
logger = logging.getLogger("waggle.test")
{body}
"""


def write(folder: Path, body: str) -> str:
    """The stderr of a process that logs this."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(body=body), str(folder)], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(waggle.__file__).parents[1])},
    )  # fmt: skip
    return done.stderr


def test_the_file_has_more_than_stderr_and_a_traceback_belongs_to_its_line(tmp_path):
    body = """
logger.info("a quiet word")
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("a loud word, token=abcdef123456")
"""
    stderr = write(tmp_path, body)
    assert "quiet" not in stderr
    assert "a loud word" in stderr
    assert "abcdef" not in stderr
    matches = list(log.lines(tmp_path, level="ERROR", word="LOUD"))
    assert matches[-1] == "ZeroDivisionError: division by zero"
    assert len(list(log.lines(tmp_path))) == len(matches) + 1


def test_it_is_rotated_and_read_from_the_oldest_on(tmp_path):
    write(tmp_path, "for number in range(4_500): logger.info('line %06d %s', number, 'x' * 900)")
    files = list(tmp_path.glob("waggle.log*"))
    assert len(files) == log.FILES
    assert sum(path.stat().st_size for path in files) <= log.FILES * log.FILE_BYTES
    numbers = [int(line.split("line ")[1][:6]) for line in log.lines(tmp_path)]
    assert numbers == list(range(numbers[0], 4_500))


def test_a_file_that_cannot_be_renamed_goes_on_and_no_older_one_is_lost(tmp_path, monkeypatch):
    for number in (1, 2):
        (tmp_path / f"waggle.log.{number}").write_text(f"older {number}\n", encoding="utf-8")
    monkeypatch.setattr(log, "FILE_BYTES", 500)
    log.start("ERROR", tmp_path)
    in_use = pytest.MonkeyPatch()
    in_use.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(PermissionError(13, "in use")))
    for number in range(50):
        logging.getLogger("waggle.x").info("line %d", number)
    in_use.undo()
    assert len((tmp_path / "waggle.log").read_text(encoding="utf-8").splitlines()) == 50
    assert [(tmp_path / f"waggle.log.{number}").read_text(encoding="utf-8") for number in (1, 2)] == ["older 1\n", "older 2\n"]
    logging.getLogger("waggle.x").info("the last")
    assert "line 49" in (tmp_path / "waggle.log.1").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_used_stops_nobody(tmp_path):
    (tmp_path / "file").write_text("")
    assert "said" in write(tmp_path / "file" / "logs", "logger.warning('said')")


@pytest.mark.parametrize(
    "secret", ["hf_AbCdEfGh1234", "waggle://join?charter=1#key=s3cr3t-_x", "passphrase: s3cr3t", "{'token': 's3cr3t'}"]
)
def test_secrets_are_taken_out(secret):
    redacted = log.without_secrets(f"before {secret} after")
    assert "s3cr3t" not in redacted
    assert "AbCd" not in redacted
    assert redacted.startswith("before ")


def test_a_flood_of_one_debug_message_is_cut_short_and_counted():
    flood, formatter = log.FloodFilter(), log.RedactingFormatter("%(message)s")

    def line(number: int, at: float, message: str = "call %d is refused", level: int = logging.DEBUG) -> str | None:
        record = logging.LogRecord("waggle.test", level, "", 0, message, (number,), None)
        record.created = at
        passes = flood.filter(record)
        assert flood.filter(record) == passes, "a second handler gets the same lines"
        return formatter.format(record) if passes else None

    texts = [line(number, 1000.0) for number in range(log.FLOOD_LINES + 30)]
    assert texts[: log.FLOOD_LINES] == [f"call {number} is refused" for number in range(log.FLOOD_LINES)]
    assert set(texts[log.FLOOD_LINES :]) == {None}
    assert line(0, 1000.0, "another message %d") == "another message 0"
    assert line(1, 1000.0, level=logging.INFO) == "call 1 is refused"
    assert line(2, 1000.0 + log.FLOOD_S) == "call 2 is refused (30 more lines like this were dropped)"
    assert line(3, 1000.0 + log.FLOOD_S) == "call 3 is refused"


def test_nothing_logged_is_nothing_found(tmp_path):
    assert list(log.lines(tmp_path / "none")) == []


def test_the_end_of_a_long_log_is_read_alone(tmp_path):
    (tmp_path / "waggle.log").write_text("".join(f"line {number}\n" for number in range(100_000)), encoding="utf-8")
    assert log.newest_lines(tmp_path, 2) == ["line 99998", "line 99999"]
    first, *_ = everything = log.newest_lines(tmp_path, 100_000)
    assert len(everything) < 2000
    assert first.startswith("line "), "no half of a line"
    (tmp_path / "waggle.log").write_text("a\nb\n", encoding="utf-8")
    assert log.newest_lines(tmp_path, 9) == ["a", "b"]
    assert log.newest_lines(tmp_path / "nowhere", 9) == []
