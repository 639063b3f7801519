"""`waggle completion`: the scripts complete every command, and bash itself completes with its script."""

import os
import shutil
import subprocess
import sys

import pytest

from waggle.cli import main
from waggle.cli.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_names_every_command(shell, capsys):
    assert main.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in (*main.COMMANDS, "preview", "until-away", "learning.rule", "no-gguf"):
        assert command in script


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("waggle jo", {"join"}),
        ("waggle swarm inv", {"invite"}),
        ("waggle pause --unt", {"--until-away"}),
        ("waggle get computer.cpu", {"computer.cpu_percent"}),
        ("waggle set learning.max", {"learning.max_new_tokens="}),
        ("waggle ctl stat", {"status"}),
    ],
)
def test_bash_completes(tmp_path, line, completed):
    path = tmp_path / "waggle.bash"
    script = subprocess.run(
        [sys.executable, "-m", "waggle", "completion", "bash"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    path.write_text(script.stdout)
    words = line.split()
    typed = " ".join(f"'{word}'" for word in words)
    code = (
        f"source {path}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}; "
        "function_name=$(complete -p waggle | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); "
        f"$function_name waggle '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert {word.strip() for word in done.stdout.splitlines()} == completed
