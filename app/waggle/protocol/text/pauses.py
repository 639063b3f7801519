"""The ways to pause, as words and commands: the same on Home, in the tray and in `waggle top`."""

import time

from waggle.core.message import Message
from waggle.protocol.commands import Pause, new_id
from waggle.protocol.schedule import time_of_day

HOUR = 3600.0  # seconds
MORNING = 8  # o'clock


def at_once() -> Pause:
    """A pause until somebody resumes."""
    return Pause(id=new_id())


def for_a_while(now: float) -> list[tuple[Message, Pause]]:
    """The pauses that end by themselves, or begin later, at the unix time `now`."""
    return [
        (Message("For 1 hour, until %1", time_of_day(now + HOUR)), Pause(id=new_id(), seconds=HOUR)),
        (Message("Until tomorrow morning"), Pause(id=new_id(), seconds=tomorrow_morning(now) - now)),
        (Message("Until I am away"), Pause(id=new_id(), until_away=True)),
        (Message("After this round"), Pause(id=new_id(), after_round=True)),
    ]


def tomorrow_morning(now: float) -> float:
    """Eight o'clock tomorrow; before five in the morning, eight o'clock today, because it is still the same night."""
    then = time.localtime(now)
    days = 0 if then.tm_hour < 5 else 1
    return time.mktime((then.tm_year, then.tm_mon, then.tm_mday + days, MORNING, 0, 0, 0, 0, -1))
