"""Every command ends with a code of the table in docs/running.md, and means by it what the table says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from waggle.cli.shared import confirming, outcome

PAGE = Path(__file__).parents[2] / "docs/running.md"
ENVIRONMENT = {**os.environ, "PYTHONPATH": "app"}


def waggle(tmp_path, *words):
    command = [sys.executable, "-m", "waggle", "--home", str(tmp_path), *words]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=100)


def test_the_table_has_the_codes_that_there_are():
    rows = re.findall(r"^\| (\d+) \| ", PAGE.read_text(encoding="utf-8").partition("## Exit codes")[2], re.MULTILINE)
    assert [*map(int, rows)] == [0, 1, 2, 130]
    assert (confirming.REFUSED, outcome.INTERRUPTED) == (1, 130)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["swarms"], 0), (["--help"], 0), (["peers", "--json"], 0),
        (["status"], 1), (["join", "First steps"], 1), (["get", "no.setting"], 1), (["set", "swarm.port=-1"], 1),
        (["nonsense"], 2), (["join"], 2), (["swarms", "--set", "a.b=1"], 2), (["pause", "--for"], 2),
    ],
)  # fmt: skip
def test_a_command_ends_with_the_code_of_what_happened(tmp_path, words, code):
    done = waggle(tmp_path, *words)
    assert (done.returncode, bool(done.stderr)) == (code, code != 0), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
def test_ctrl_c_ends_with_its_own_code(tmp_path):
    code = (
        "import os, signal; from waggle.cli.shared.outcome import exit_code; import sys; "
        "sys.exit(exit_code(lambda: os.kill(os.getpid(), signal.SIGINT) or 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (130, b"")
