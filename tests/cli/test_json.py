"""Every command that says something to a program says it as JSON, too."""

import json
import re
from pathlib import Path

import pytest

from waggle.cli import main
from waggle.core import paths

PAGE = Path(__file__).parents[2] / "docs/running.md"
TEXT_ONLY = {  # and why
    "completion": "a script for a shell",
    "history": "--jsonl and --csv, a line for each round",
    "top": "a view for people; `status --json` has its facts",
    "race": "its window speaks --stdio",
    "cuda": "its window speaks --stdio",
    "seed": "runs until it is ended; its page has /status.json",
    "selftest": "its exit code says all",
    "install-service": "its exit code says all",
    "token": "its exit code says all",
    "ctl": "the earlier spelling of other commands",
}


@pytest.mark.parametrize("command", sorted(main.COMMANDS.keys() - TEXT_ONLY))
def test_a_command_takes_json(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main.main([command, "--help"])
    assert "--json" in capsys.readouterr().out


def test_the_page_names_the_commands_without_json():
    sentence = re.search(r"Without\s+such\s+a\s+form\s+are (.*?); `history` has", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert {*re.findall(r"`([\w-]+)`", sentence[1])} == TEXT_ONLY.keys() - {"history", "ctl"}


@pytest.mark.parametrize("command", sorted(TEXT_ONLY.keys() - {"ctl"}))
def test_a_command_without_json_takes_none(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main.main([command, "--help"])
    assert "--json " not in capsys.readouterr().out


def test_the_log_is_printed_as_json(tmp_path, capsys):
    logs = paths.Home(tmp_path).logs
    logs.mkdir(parents=True)
    (logs / "waggle.log").write_text("2026-11-28 07:39:45,100 INFO engine: hello\n2026-11-28 07:39:46,100 INFO engine: bye\n")
    assert main.main(["log", "hello", "--json", "--home", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"lines": ["2026-11-28 07:39:45,100 INFO engine: hello"]}
