"""Help asks other doors of Waggle, in processes of their own, and only when a person presses."""

from pathlib import Path

import waggle
from waggle.gui.help_page import HelpPage
from waggle.gui.journal import Journal


def test_whether_there_is_a_newer_version_is_asked_only_when_pressed_and_the_answer_is_shown(look, qtbot, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
    page = HelpPage(look, Journal(), None)
    qtbot.addWidget(page)
    asked = page.update_asked
    assert not asked.output
    with qtbot.waitSignal(asked.done, timeout=30_000):
        asked.ask()
    assert "without a key for updates" in asked.output
    page.close()
