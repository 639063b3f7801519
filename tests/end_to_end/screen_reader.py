"""What a screen reader says of a program, over the system's accessibility interface (AT-SPI), as Orca does.

It hears the program like any screen reader: through D-Bus, from outside. Where things lie on the screen comes from there, too.
As in Orca 43, the name of a group or list is said when the focus enters it, a description if it is not the name again, and of
what has the focus, a new name, description or state. Announcements are said as from Orca 45 on. No label is read by itself.
"""

import contextlib
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, Properties, new_method_call
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import DBusConnection, open_dbus_connection

ATSPI = "org.a11y.atspi"
SWITCHES = DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Status")
REGISTRY = DBusAddress("/org/a11y/atspi/registry", f"{ATSPI}.Registry", f"{ATSPI}.Registry")
ROOT = "/org/a11y/atspi/accessible/root"  # of each program, and of all of them in the registry
ON_SCREEN = 0  # AT-SPI's coordinates of the screen
PATIENCE = 30.0  # seconds for an answer of a busy program
QUIET = 0.5  # seconds without a word after which everything was said
CHECKED, ENABLED, SHOWING = 4, 8, 25  # bits of AT-SPI's set of states
ROLES = {"push button": "button", "button menu": "menu button", "text": "text field", "filler": ""}  # in other words, or in none
CHOICES = ("check box", "radio button", "toggle button")
GROUPS = ("panel", "list", "table", "dialog")  # roles of what is named when the focus enters it


class Place(NamedTuple):
    """One thing of a program: the program's name on the bus, and the thing's path there."""

    program: str
    path: str


class Box(NamedTuple):
    """Where a thing lies on the screen, in pixels."""

    x: int
    y: int
    width: int
    height: int


class Visible(NamedTuple):
    """A thing on the screen that can be used."""

    name: str
    role: str
    box: Box


@contextlib.contextmanager
def session_bus() -> Iterator[dict[str, str]]:
    """The environment of a session with a bus of its own, on which programs and screen reader meet."""
    command = ["dbus-daemon", "--session", "--nofork", "--print-address=1"]
    bus = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert bus.stdout is not None
    try:
        yield {"DBUS_SESSION_BUS_ADDRESS": bus.stdout.readline().strip()}
    finally:
        bus.terminate()
        bus.wait()


class ScreenReader:
    """Listens to the programs of a session that start after it."""

    def __init__(self, session: dict[str, str]) -> None:
        self._session = open_dbus_connection(session["DBUS_SESSION_BUS_ADDRESS"])
        for switch in ("IsEnabled", "ScreenReaderEnabled"):  # programs speak only then
            _answer(self._session, Properties(SWITCHES).set(switch, "b", True))
        (address,) = _answer(self._session, new_method_call(SWITCHES.with_interface("org.a11y.Bus"), "GetAddress"))
        self._bus = open_dbus_connection(address)
        self._signals: deque[Message] = deque()
        self._bus.filter(MatchRule(type="signal"), queue=self._signals).__enter__()
        for kind in ("Object", "Window"):
            _answer(self._bus, new_method_call(REGISTRY, "RegisterEvent", "s", (f"{kind.lower()}:",)))
            _answer(self._bus, message_bus.AddMatch(MatchRule(type="signal", interface=f"{ATSPI}.Event.{kind}")))
        self._focused: Place | None = None
        self._groups: tuple[str, ...] = ()  # the names of those around the focus
        self._last_change = ""

    def close(self) -> None:
        self._bus.close()
        self._session.close()

    def hear(self, seconds: float = PATIENCE) -> list[str]:
        """All that is said until it is quiet again; waits so long for the first word."""
        sentences: list[str] = []
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                signal = (
                    self._signals.popleft() if self._signals else self._bus.recv_until_filtered(self._signals, timeout=remaining)
                )
            except TimeoutError:
                break
            if words := self._words(signal):
                sentences.append(words)
                deadline = time.monotonic() + QUIET
        return sentences

    def look(self) -> list[Visible]:
        """All that has a name on the screen and can be used."""
        things: list[Visible] = []
        (places,) = _answer(
            self._bus, new_method_call(DBusAddress(ROOT, f"{ATSPI}.Registry", f"{ATSPI}.Accessible"), "GetChildren")
        )
        waiting = [Place(*program) for program in places]
        while waiting:
            place = waiting.pop()
            with contextlib.suppress(NoAnswer):  # it went away meanwhile
                states = self._states(place)
                if place.path != ROOT and SHOWING not in states:
                    continue
                waiting += [Place(*child) for child in self._call(place, "GetChildren")]
                if place.path != ROOT and ENABLED in states and (name := self._property(place, "Name")):
                    box = Box(*self._call(place, "GetExtents", "Component", "u", (ON_SCREEN,)))
                    things.append(Visible(name, self._role(place), box))
        return things

    def _words(self, signal: Message) -> str:
        """What is said at a signal of a program; empty for most."""
        fields, body = signal.header.fields, signal.body
        place, kind = Place(fields[HeaderFields.sender], fields[HeaderFields.path]), fields[HeaderFields.member]
        try:
            if kind == "Announcement":
                return str(body[3][1])
            if kind == "Activate":
                return f"{self._property(place, 'Name')}, window"
            if kind == "StateChanged" and body[:2] == ("focused", 1):
                return self._words_of_focus(place)
            if place == self._focused:
                return self._words_of_change(body)
        except NoAnswer:  # it went away meanwhile
            return ""
        return ""

    def _words_of_focus(self, place: Place) -> str:
        self._focused, before = place, self._groups
        self._groups = tuple(self._groups_around(place))
        entered = [f"{name}, group" for name in reversed(self._groups) if name not in before]
        return ", ".join((*entered, self._words_of(place)))

    def _words_of_change(self, change: tuple[Any, ...]) -> str:
        """What is new of the thing that has the focus."""
        match change:
            case ("accessible-name" | "accessible-description", _, _, ("s", words), *_) if words != self._last_change:
                self._last_change = words
                return str(words)
            case ("checked", checked, *_):
                return "checked" if checked else "not checked"
        return ""

    def _words_of(self, place: Place) -> str:
        """Name, role, content, state and description of a thing."""
        name, role, states = self._property(place, "Name"), self._role(place), self._states(place)
        content = self._call(place, "GetText", "Text", "ii", (0, -1)) if role == "text" else ""
        state = ("checked" if CHECKED in states else "not checked") if role in CHOICES else ""
        unavailable = "" if ENABLED in states else "unavailable"
        description = self._property(place, "Description")
        parts = (name, ROLES.get(role, role), content, state, unavailable, "" if description == name else description)
        return ", ".join(filter(None, parts))

    def _groups_around(self, place: Place) -> Iterator[str]:
        """The names of the groups that a thing is in, from the smallest to the largest."""
        around = Place(*self._property(place, "Parent"))
        while around.path not in (ROOT, "/org/a11y/atspi/null"):
            if self._role(around) in GROUPS and (name := self._property(around, "Name")):
                yield name
            around = Place(*self._property(around, "Parent"))

    def _role(self, place: Place) -> str:
        return str(self._call(place, "GetRoleName"))

    def _states(self, place: Place) -> set[int]:
        low, high = self._call(place, "GetState")
        return {bit for bit in range(64) if (low | high << 32) >> bit & 1}

    def _property(self, place: Place, name: str) -> Any:
        address = DBusAddress(place.path, place.program, f"{ATSPI}.Accessible")
        ((_signature, value),) = _answer(self._bus, Properties(address).get(name))
        return value

    def _call(self, place: Place, method: str, part: str = "Accessible", signature: str = "", arguments: tuple = ()) -> Any:
        address = DBusAddress(place.path, place.program, f"{ATSPI}.{part}")
        (value,) = _answer(self._bus, new_method_call(address, method, signature, arguments))
        return value


class NoAnswer(Exception):
    """A program did not answer: most often the thing that was asked about is gone."""


def _answer(connection: DBusConnection, call: Message) -> tuple[Any, ...]:
    reply = connection.send_and_get_reply(call, timeout=PATIENCE)
    if reply.header.message_type is not MessageType.method_return:
        raise NoAnswer(reply.body)
    return reply.body
