"""The menu with the ways to pause for a while: the same on Home and in the tray."""

import time
from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from waggle.gui.i18n.formatting import tr
from waggle.protocol.commands import Pause
from waggle.protocol.text.pauses import for_a_while


def fill(menu: QMenu, ask: Callable[[Pause], None], clock_now: Callable[[], float] = time.time) -> None:
    """Fill a menu with the choices, again each time it opens, because they name times."""

    def refill() -> None:
        menu.clear()
        for words, command in for_a_while(clock_now()):
            menu.addAction(tr(words), _asker(ask, command))

    menu.aboutToShow.connect(refill)
    refill()


def _asker(ask: Callable[[Pause], None], command: Pause) -> Callable[[], None]:
    return lambda: ask(command)
