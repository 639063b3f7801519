"""A window that is made anew, in other words or larger ones: what was chosen, typed and waited for is there; no passphrase is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from gui.test_live import arrived
from gui.test_swarms import EASY, HERE, OFFERS, OTHER
from waggle.gui.choices import Choices
from waggle.gui.current import Current
from waggle.gui.engine_process import EngineProcess
from waggle.gui.live import Live
from waggle.gui.look import Look
from waggle.gui.shell import Shell
from waggle.gui.window import Window
from waggle.paths import Home
from waggle.protocol import events
from waggle.protocol.gatherings import SwarmShown, SwarmsTold
from waggle.protocol.state import AnyEvent

pytestmark = pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
SILENT = [sys.executable, "-c", "import sys; sys.stdin.read()"]  # an engine that takes its time with everything
HERE_NOW = SwarmShown(charter=HERE, name="First light", specialties=(EASY,), known=True, active=True)
BEGUN = (
    ready(charter=HERE, swarm="First light"),
    events.PhaseChanged(phase="contributing", round=613),
    SwarmsTold(swarms=(HERE_NOW, OTHER), offers=OFFERS),
)
WAYS = [{"window.text_percent": 130}, {"window.language": "de"}]


@pytest.fixture
def shell(look: Look, tmp_path: Path, qtbot: QtBot) -> Iterator[Shell]:
    engine = EngineProcess(SILENT, backoff=())
    made = Shell(look, Current(), engine, Choices(None), Home(tmp_path).prepare())
    made.begin("home")
    with qtbot.waitSignal(engine._process.started, timeout=60_000):
        made.start()
    tell(made, *BEGUN)
    yield made
    made.choices.set({"window.language": "en", "window.text_percent": 100})
    with qtbot.waitSignal(engine.ended, timeout=60_000):
        engine.stop()
    window = made.window
    shiboken6.delete(made)
    shiboken6.delete(window)


def tell(shell: Shell, *told: AnyEvent) -> None:
    for event in told:
        shell._current.take(event)
    shell._current.flush()


def renew(shell: Shell, way: dict[str, str | int]) -> Window:
    """As a person does: in Settings, whichever page they come from. And they go back to it."""
    before, came_from = shell.window, shell.window.page
    before.show_page("settings")
    shell.choices.set(way)
    assert shell.window is not before
    shell.window.show_page(came_from)
    return shell.window


@pytest.mark.parametrize("way", WAYS)
def test_a_feed_stays_frozen_and_filtered(shell: Shell, way: dict[str, str | int]) -> None:
    def live() -> Live:
        made = shell.window.pages["live"]
        assert isinstance(made, Live)
        return made

    tell(shell, arrived(30))
    shell.window.show_page("live")
    live()._whose.choose(2)
    live()._feed._cards[0]._toggle()
    live()._freeze.setChecked(True)
    tell(shell, arrived(40))
    renew(shell, way)
    tell(shell, arrived(50))
    assert live()._whose.index == 2
    assert live()._freeze.isChecked()
    (shown,) = [made for made in live()._feed._cards if not made.isHidden()]
    assert shown._card is not None
    assert (shown._card.key, shown.is_open) == ("p/(30,)", True)
    assert "2" in live()._line.words()
    live()._chooser("Fractions")()
    renew(shell, {"window.text_percent": 90})
    assert live()._specialty == "Fractions"
    assert [action.isChecked() for action in live()._menu.actions()].index(True) == 1
    assert live()._menu_button.text() == ("Brüche" if "window.language" in way else "Fractions")


def test_the_chosen_peer_the_table_and_what_is_looked_for_go_on(shell: Shell) -> None:
    tell(shell, *(events.PeerChanged(peer=events.PeerInfo(id=name, name=name, connection="direct")) for name in ("a", "b")))
    shell.window.show_page("peers")
    shell.window.peers.choose("b")
    shell.window.show_page("help")
    shell.window.pages["help"]._log.search.setText("asked")  # type: ignore[attr-defined]
    shell.window.show_page("progress")
    shell.window.pages["progress"]._axis.choose(1)  # type: ignore[attr-defined]
    shell.window.pages["progress"].show_table(True)  # type: ignore[attr-defined]
    pages = renew(shell, WAYS[1]).pages
    assert pages["progress"]._axis.index == 1  # type: ignore[attr-defined]
    assert pages["progress"]._as_table.isChecked()  # type: ignore[attr-defined]
    assert pages["help"]._log.search.text() == "asked"  # type: ignore[attr-defined]
    shell.window.show_page("peers")
    assert shell.window.peers._chosen == "b"
    assert [row.row() for row in shell.window.peers._view.selectionModel().selectedRows()] == [1]
