#!/usr/bin/env python3
"""Go from the first start to an invite in a friend's hand, once by mouse alone, and once by keyboard and a screen reader's words.

    python tests/measured/first_invite.py [mouse | keyboard]

Run it in the development environment, on Linux with Xvfb, xdotool, dbus-daemon and at-spi2-core. Each way starts the real window
with an empty home. The mouse clicks where the accessibility interface says that something lies on the screen. Each key depends
on nothing but the words that a screen reader says. At the end the invite is in the clipboard, and a friend who never started
Waggle joins with it by command. What was pressed and heard, and pictures of the mouse's way, go to `first_invite/`, and figures
to first_invite.json, beside this file.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import figures_file
from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QPolygonF

sys.path[:0] = [str(figures_file.ROOT / "app"), str(figures_file.ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
from end_to_end.programs import PATIENCE, WAGGLE, Program, running, until, virtual_screen  # noqa: E402
from end_to_end.screen_reader import Box, ScreenReader, session_bus  # noqa: E402
from waggle.cli.shared import engine as engine_answers  # noqa: E402
from waggle.core import paths  # noqa: E402
from waggle.core.errors import EngineError, SwarmError  # noqa: E402
from waggle.gui.state.inputs.invite_picture import invite_in_picture  # noqa: E402
from waggle.protocol.state import State  # noqa: E402

RESULTS = Path(__file__).with_suffix("")
DESKTOP = figures_file.ROOT / "tests/end_to_end/desktop.py"
MOST_KEYS = 60
PAUSE_S = 10.0  # after a key that is followed by no word
WINDOW = ("search", "--sync", "--onlyvisible", "--name", "^Waggle$")
BUTTONS = ("push button", "check box", "radio button")
POINTER = (
    (0, 0),
    (0, 26),
    (6, 20),
    (11, 31),
    (15, 29),
    (10, 18),
    (18, 18),
)  # pixels from its tip, large enough for small pictures
PICTURE_WIDTH, GAP = 800, 12  # pixels: of one picture of two in a row, and between them


class Computer:
    """A computer on which Waggle starts for the first time: its screen, its session and an empty home."""

    def __init__(self, folder: Path, screen: dict[str, str], session: dict[str, str]) -> None:
        self.home = paths.Home(folder / "waggle")
        self._environment = {
            **screen,
            **session,
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "LANG": "C.UTF-8",
        }
        self.reader = ScreenReader(session)
        self.started = time.monotonic()
        self._waggle = Program("--home", str(self.home.root), environment=self._environment)
        self.window = self.hand(*WINDOW).split()[0]

    def hand(self, *words: str) -> str:
        """Move the mouse or press keys, in the words of xdotool; returns what it printed."""
        return self._run("xdotool", *words)

    def window_box(self) -> QRect:
        """Where the window is. It begins at the corner of the screen, because no window manager puts it elsewhere."""
        width, height = self.hand("getwindowgeometry", self.window).split()[-1].split("x")
        return QRect(0, 0, int(width), int(height))

    def clipboard(self) -> str:
        return self._run(sys.executable, str(DESKTOP), "clipboard")

    def picture(self, file: Path) -> None:
        self._run(sys.executable, str(DESKTOP), "picture", str(file))

    def _run(self, *command: str) -> str:
        return subprocess.run(command, env=self._environment, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def close(self) -> None:
        self.reader.close()
        self._waggle.kill()  # its engine notices, and exits by itself


class Mouse:
    """A person who clicks what is on the screen. Each picture is of the moment before a click, and the last one of the end."""

    def __init__(self, computer: Computer, folder: Path) -> None:
        self._computer, self._folder = computer, folder
        self.clicks, self.pictures = 0, list[Path]()
        self._at = 0, 0

    def click(self, name: str) -> None:
        """Wait until a button with this name is on the screen, and click its middle."""
        box = until(lambda: self._find(name), f"there is no {name} on the screen")
        self._at = box.x + box.width // 2, box.y + box.height // 2
        self._computer.hand("mousemove", "--sync", *map(str, self._at))
        self.take_picture()
        self._computer.hand("click", "1")
        self.clicks += 1

    def take_picture(self) -> None:
        """Take a picture of the window, with the pointer drawn in."""
        file = self._folder / f"{len(self.pictures) + 1}.png"
        self._computer.picture(file)
        image = QImage(str(file)).copy(self._computer.window_box())
        painter = QPainter(image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor("black"))
        painter.setPen(QColor("white"))
        painter.drawPolygon(QPolygonF([QPointF(self._at[0] + x, self._at[1] + y) for x, y in POINTER]))
        painter.end()
        image.save(str(file))
        self.pictures.append(file)

    def _find(self, name: str) -> Box | None:
        things = self._computer.reader.look()
        return next((thing.box for thing in things if thing.name == name and thing.role in BUTTONS), None)


class Keyboard:
    """A person who sees nothing: each key depends on what the screen reader said last."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer
        self.keys, self.words, self._transcript = 0, 0, list[str]()
        self._sentences: list[str] = []  # after the last key

    def listen(self, seconds: float) -> None:
        self._sentences = self._computer.reader.hear(seconds)
        self._transcript += [f'        "{words}"' for words in self._sentences] or ["        (silence)"]
        self.words += sum(len(words.split()) for words in self._sentences)

    def press(self, key: str) -> None:
        self._transcript.append(f"[{key}]")
        self._computer.hand("key", key)
        self.keys += 1
        self.listen(PAUSE_S)

    def press_button(self, name: str) -> None:
        """Press Tab until it says a button with this name, then Enter. After a whole round, wait until something is said."""
        visited = set[str]()
        while not any(f"{name}, button" in words for words in self._sentences):
            assert self.keys < MOST_KEYS, f"Tab does not lead to {name}:\n{self.transcript()}"
            if (place := "".join(self._sentences[-1:])) in visited:
                visited.clear()
                self.listen(PATIENCE)
                assert self._sentences, f"Tab leads round, and never to {name}:\n{self.transcript()}"
            else:
                visited.add(place)
                self.press("Tab")
        self.press("Return")

    def transcript(self) -> str:
        return "\n".join((*self._transcript, ""))


def by_mouse(computer: Computer, folder: Path) -> dict[str, object]:
    mouse = Mouse(computer, folder)
    for name in ("Continue", "Start", "Invite someone", "Copy link"):
        mouse.click(name)
    copied_at = time.monotonic()
    link = until(computer.clipboard, "nothing was copied")
    until(lambda: code_on_screen(computer, folder / "code.png") == link, "the QR code on the screen is not that of the link")
    mouse.take_picture()
    tile(mouse.pictures).save(str(RESULTS / "mouse.png"), quality=0)
    return {
        "seconds": round(copied_at - computer.started, 1), "clicks": mouse.clicks, "qr_code_is_the_link": True,
        **join_as_friend(computer, link, folder),
    }  # fmt: skip


def code_on_screen(computer: Computer, file: Path) -> str:
    """The invite in the QR code on the screen; empty if there is none."""
    computer.picture(file)
    try:
        return invite_in_picture(file)
    except SwarmError:
        return ""


def by_keyboard(computer: Computer, folder: Path) -> dict[str, object]:
    computer.hand("windowfocus", "--sync", computer.window)  # as the window manager of a desktop does
    keyboard = Keyboard(computer)
    try:
        keyboard.listen(PATIENCE)
        for name in ("Continue", "Start", "Invite someone", "Copy link"):
            keyboard.press_button(name)
    finally:
        (RESULTS / "keyboard.txt").write_text(keyboard.transcript())
    copied_at = time.monotonic()
    link = until(computer.clipboard, "nothing was copied")
    return {
        "seconds": round(copied_at - computer.started, 1), "keys": keyboard.keys, "words_heard": keyboard.words,
        **join_as_friend(computer, link, folder),
    }  # fmt: skip


def join_as_friend(host: Computer, link: str, folder: Path) -> dict[str, object]:
    """A friend, who never started Waggle, joins with the link by command, and both become peers."""
    friend = paths.Home(folder / "friend")
    hasten = [*WAGGLE, "set", "computer.priority=normal", "--home", str(host.home.root)]
    subprocess.run(hasten, check=True, capture_output=True)  # the usual one waits for all other work on this computer
    began = time.monotonic()
    subprocess.run([*WAGGLE, "join", "--yes", link, "--home", str(friend.root)], check=True, capture_output=True)
    with running(Program("engine", "--home", str(friend.root), "--set", "computer.priority=normal")) as engine:
        try:
            for home, other in ((friend, host.home), (host.home, friend)):
                until(lambda home=home, other=other: is_peer(home, other), f"{home.root.name} does not meet {other.root.name}")
            seconds = time.monotonic() - began
        finally:
            engine.process.terminate()  # it does not end with its input, as those of a window do
    return {"friend_joined": True, "friend_joined_s": round(seconds, 1), "link_characters": len(link)}


def is_peer(home: paths.Home, other: paths.Home) -> bool:
    """Whether the node of a home is connected with the node of the other."""
    state, state_there = state_of(home), state_of(other)
    if state is None or state_there is None or state_there.ready is None:
        return False
    return state_there.ready.node in {peer.id for peer in state.connected}


def state_of(home: paths.Home) -> State | None:
    try:
        return engine_answers.status(home)
    except EngineError:  # the engine is not there yet
        return None


def tile(files: Sequence[Path]) -> QImage:
    """All pictures in one, from left to right and top to bottom, two in a row."""
    images = [QImage(str(file)).scaledToWidth(PICTURE_WIDTH, Qt.TransformationMode.SmoothTransformation) for file in files]
    height, rows = images[0].height(), (len(images) + 1) // 2
    whole = QImage(2 * PICTURE_WIDTH + 3 * GAP, rows * height + (rows + 1) * GAP, QImage.Format.Format_RGB32)
    whole.fill(QColor("silver"))
    painter = QPainter(whole)
    for i, image in enumerate(images):
        painter.drawImage(QPointF(GAP + i % 2 * (PICTURE_WIDTH + GAP), GAP + i // 2 * (height + GAP)), image)
    painter.end()
    return whole


@contextlib.contextmanager
def new_computer(folder: Path) -> Iterator[Computer]:
    with virtual_screen() as screen, session_bus() as session:
        computer = Computer(folder, screen, session)
        try:
            yield computer
        finally:
            computer.close()


WAYS = {"mouse": by_mouse, "keyboard": by_keyboard}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", nargs="?", choices=WAYS, help="only this one; no figures are written")
    options = parser.parse_args()
    if options.way is None:
        figures_file.require_clean_tree()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = QGuiApplication([])  # in which the pictures are put together
    RESULTS.mkdir(exist_ok=True)
    figures = dict[str, object]()
    for way, go in WAYS.items():
        if options.way in (None, way):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, new_computer(Path(folder)) as computer:
                figures[way] = go(computer, Path(folder))
    del application
    if options.way is None:
        figures_file.write(Path(__file__).resolve(), figures)
    else:
        print(figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
