"""An invite does not stay in the command line, which other users of the computer can read."""

import subprocess
import sys
from pathlib import Path

import pytest

import waggle

LINK = "waggle:join?key=secretäöü"
READ = (
    "import sys; from waggle.core.system.hide_arguments import hide; hide(sys.argv[-1]); print(open('/proc/self/cmdline').read())"
)
OPENS = (
    "import sys; from waggle.cli import main as cli, window; "
    "window.screen.fault = lambda: print(open('/proc/self/cmdline').read()) or 'No'; sys.exit(cli.main())"
)


def output_of(code: str, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={"PYTHONPATH": str(Path(waggle.__file__).parents[1]), "PYTHONUTF8": "1"}, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="command lines are read elsewhere there")
def test_an_invite_is_written_over_wherever_it_stands_and_nothing_else_is() -> None:
    arguments = output_of(READ, "--page", "live", f"--invite={LINK}", LINK)
    assert "secret" not in arguments
    assert "--page" in arguments
    assert f"--invite={'-' * len(LINK.encode())}" in arguments
    assert output_of(READ, "other words", "").count("other words") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="command lines are read elsewhere there")
@pytest.mark.parametrize("words", [[LINK], ["--invite", LINK]])
def test_the_window_hides_its_link_before_anything_else(words: list[str]) -> None:
    arguments = output_of(OPENS, *words)
    assert "cli.main" in arguments
    assert "secret" not in arguments


@pytest.mark.skipif(sys.platform != "linux", reason="command lines are read elsewhere there")
def test_joining_in_a_terminal_hides_the_link_while_it_waits() -> None:
    joins = (
        "import sys; from waggle.cli import main as cli; from waggle.cli.swarms import join; "
        "join.engine_runs = lambda _: sys.exit(print(open('/proc/self/cmdline').read())); sys.exit(cli.main())"
    )
    for words in (["swarm", "join", LINK], ["join", LINK]):
        arguments = output_of(joins, *words)
        assert "cli.main" in arguments
        assert "secret" not in arguments
