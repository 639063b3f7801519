"""The ways to pause, as words and commands: the same on Home and in the tray."""

import time
from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from waggle.gui.i18n.formatting import clock, tr
from waggle.protocol.commands import Pause, new_id

MORNING = 8  # o'clock


def tomorrow_morning(now: float) -> float:
    """Eight o'clock tomorrow; before five in the morning, eight o'clock today, because it is still the same night."""
    then = time.localtime(now)
    days = 0 if then.tm_hour < 5 else 1
    return time.mktime((then.tm_year, then.tm_mon, then.tm_mday + days, MORNING, 0, 0, 0, 0, -1))


def at_once() -> Pause:
    """A pause until somebody resumes."""
    return Pause(id=new_id())


def ways(now: float) -> list[tuple[str, Pause]]:
    """The choices at the time `now`: words and command."""
    return [
        (tr("For 1 hour, until %1").replace("%1", clock(now + 3600)), Pause(id=new_id(), seconds=3600)),
        (tr("Until tomorrow morning"), Pause(id=new_id(), seconds=tomorrow_morning(now) - now)),
        (tr("Until I am away"), Pause(id=new_id(), until_away=True)),
        (tr("After this round"), Pause(id=new_id(), after_round=True)),
    ]


def fill(menu: QMenu, ask: Callable[[Pause], None], clock_now: Callable[[], float] = time.time) -> None:
    """Fill a menu with the choices, again each time it opens, because they name times."""

    def refill() -> None:
        menu.clear()
        for words, command in ways(clock_now()):
            menu.addAction(words, _asker(ask, command))

    menu.aboutToShow.connect(refill)
    refill()


def _asker(ask: Callable[[Pause], None], command: Pause) -> Callable[[], None]:
    return lambda: ask(command)
