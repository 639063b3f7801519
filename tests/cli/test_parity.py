"""Everything that the window can do is a command, too."""

import sys

import pytest

from cli import parity

ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="no thread can be sent a signal there")


@ONLY_UNIX
def test_every_command_of_the_protocol_has_a_line_that_sends_it(tmp_path):
    assert parity.window_only_actions(tmp_path) == {}


def test_the_walk_covers_the_protocol_and_nothing_else():
    assert {*parity.LINES, *parity.FROM_FILES, *parity.NO_ACTION} == parity.protocol_commands()


@ONLY_UNIX
def test_a_command_without_a_line_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setitem(parity.LINES, "RenewIdentity", "identity")
    assert [*parity.window_only_actions(tmp_path)] == ["RenewIdentity"]
