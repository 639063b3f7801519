"""The invite in a picture: found in photos and screenshots, and strangers' pictures are refused with a reason."""

import asyncio
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QTransform
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from waggle.core.errors import SwarmError
from waggle.core.qr_code import modules
from waggle.gui.application.qt_application import Application
from waggle.gui.application.window.file_drop import _kind
from waggle.gui.engine_client import picture_invite
from waggle.gui.state.inputs import invite_picture
from waggle.gui.state.inputs.invite_link import is_picture
from waggle.gui.widgets.pasted_picture import PastedPicture

pytest.importorskip("zxingcpp", reason="reads the codes")
LINK = f"waggle://join?charter={'ab' * 32}&name=Two%20laptops&seed=/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW{'x' * 44}"
PIXELS = 6  # of a module


def code(words: str = LINK) -> QImage:
    """The code as the window draws it, on white."""
    rows = modules(words)
    picture = QImage((len(rows) + 8) * PIXELS, (len(rows) + 8) * PIXELS, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.white)
    painter = QPainter(picture)
    for y, row in enumerate(rows):
        for x, dark in enumerate(row):
            if dark:
                painter.fillRect((x + 4) * PIXELS, (y + 4) * PIXELS, PIXELS, PIXELS, Qt.GlobalColor.black)
    painter.end()
    return picture


def photo() -> QImage:
    """The code on a grey wall, turned by some degrees."""
    wall = QImage(3000, 2000, QImage.Format.Format_RGB32)
    wall.fill(QColor("#b9b2a8"))
    painter = QPainter(wall)
    painter.drawImage(900, 400, code().transformed(QTransform().rotate(7)).scaled(1000, 1000))
    painter.end()
    return wall


def bomb(width: int, height: int) -> bytes:
    """A small file that says it is a large picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + rows + chunk(b"IEND", b"")


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "bmp"])
@pytest.mark.parametrize("draw", [code, photo])
def test_an_invite_is_found_in_screenshots_and_photos(tmp_path: Path, draw, ending: str) -> None:
    path = tmp_path / f"invite.{ending}"
    assert draw().save(str(path))
    assert invite_picture.invite_in_picture(path) == LINK


def test_a_transparent_code_is_dark_on_white(tmp_path: Path) -> None:
    clear = code().convertToFormat(QImage.Format.Format_ARGB32)
    clear.setAlphaChannel(clear.createMaskFromColor(0xFFFFFFFF, Qt.MaskMode.MaskOutColor))
    clear.save(str(tmp_path / "clear.png"))
    assert invite_picture.invite_in_picture(tmp_path / "clear.png") == LINK


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b"hello", "This is no picture that Waggle can read."),
        (b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', "This is no picture that Waggle can read."),
        (bomb(60_000, 60_000), "The picture is too large."),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 90, "The picture is damaged."),
        (bytes(invite_picture.MOST_BYTES + 1), "The picture is too large."),
    ],
)
def test_what_is_no_picture_is_refused_with_a_reason(tmp_path: Path, content: bytes, title: str) -> None:
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(SwarmError) as refused:
        invite_picture.invite_in_picture(tmp_path / "x.png")
    assert refused.value.title == title


def test_a_picture_without_a_code_and_a_code_of_something_else_are_told_apart(tmp_path: Path) -> None:
    white = QImage(600, 400, QImage.Format.Format_RGB32)
    white.fill(Qt.GlobalColor.white)
    for picture, title in ((white, "There is no QR code"), (code("https://example.org"), "is no invite")):
        picture.save(str(tmp_path / "x.png"))
        with pytest.raises(SwarmError, match=title):
            invite_picture.invite_in_picture(tmp_path / "x.png")


def read(picture: Path | QImage, qtbot: QtBot) -> str:
    task = asyncio.get_running_loop().create_task(picture_invite.invite_in(picture))
    qtbot.waitUntil(task.done)
    return task.result()


def test_the_window_has_a_process_read_it(tmp_path: Path, qtbot: QtBot) -> None:
    photo().save(str(tmp_path / "photo.jpg"))
    assert read(tmp_path / "photo.jpg", qtbot) == LINK
    assert read(code(), qtbot) == LINK, "from the clipboard"
    (tmp_path / "photo.jpg").write_bytes(b"no")
    with pytest.raises(SwarmError) as refused:
        read(tmp_path / "photo.jpg", qtbot)
    assert (refused.value.title, refused.value.advice) == (
        "This is no picture that Waggle can read.", "It reads PNG, JPEG, WebP, BMP and GIF.",
    )  # fmt: skip


def test_the_command_prints_it(tmp_path: Path) -> None:
    code().save(str(tmp_path / "x.png"))
    command = [sys.executable, "-m", "waggle", "invite", "--in", str(tmp_path / "x.png")]
    with (tmp_path / "out").open("w") as output:
        subprocess.run(command, stdout=output, check=True, timeout=120)
    assert (tmp_path / "out").read_text() == f"{LINK}\n"


def test_a_picture_is_pasted_and_text_is_left_to_the_field(qapp: Application, qtbot: QtBot) -> None:
    field, pasted = QLineEdit(), list[object]()
    qtbot.addWidget(field)
    PastedPicture(field).pasted.connect(pasted.append)
    field.show()
    QGuiApplication.clipboard().setImage(code())
    qtbot.keyClick(field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert [type(each) for each in pasted] == [QImage]
    QGuiApplication.clipboard().setText("waggle://join?x")
    qtbot.keyClick(field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert (len(pasted), field.text()) == (1, "waggle://join?x")


def test_what_is_dragged_is_known_by_its_name() -> None:
    kinds = {
        name: _kind([name]) for name in ("/a/photo.JPG", "/a/our.waggle", "/a/sums.csv", "https://example.org/x.png", "/a/x.txt")
    }
    assert list(kinds.values()) == ["invite", "invite", "questions", "nothing", "nothing"]
    assert is_picture("x.webp")
