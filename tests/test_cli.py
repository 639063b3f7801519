"""The doors."""

import subprocess
import sys

import pytest

from waggle import cli

HEAVY = ("torch", "transformers", "hivemind", "PySide6", "reasoning_gym", "numpy")


def test_no_heavy_import_happens_before_the_arguments_are_understood():
    code = f"import sys, waggle.cli; waggle.cli.parser().parse_args([]); print([n for n in {HEAVY} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "app"})
    assert said.stdout.strip() == "[]"


def test_without_a_screen_the_way_without_a_window_is_named(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cli.main([]) == 1
    said = capsys.readouterr().err
    assert "no screen" in said
    assert "waggle engine" in said


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["engine", "--help"],
        ["seed", "--help"],
        ["ctl", "--help"],
        ["export", "--help"],
        ["token", "--help"],
        ["selftest", "--help"],
        ["update", "--help"],
        ["lab", "--help"],
    ],
)
def test_every_door_explains_itself(words, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    assert left.value.code == 0
    assert "usage: waggle" in capsys.readouterr().out


def test_options_before_the_door_hold_behind_it():
    arguments = cli.parser().parse_args(["--home", "/x", "--set", "a.b=1", "engine"])
    assert (str(arguments.home), arguments.set) == ("/x", ["a.b=1"])
    assert cli.parser().parse_args(["engine"]).set == []


@pytest.mark.parametrize("given", [["waggle://join?x"], ["--home", "here", "waggle://join?x"], ["--invite", "waggle://join?x"]])
def test_a_link_that_stands_by_itself_is_an_invite(given):
    assert cli.parser().parse_args(cli._with_invite(given)).invite == "waggle://join?x"
