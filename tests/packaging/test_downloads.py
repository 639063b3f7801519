"""The set-up says what comes and how large it is, shows how far it is, and resumes: with a real pip and index."""

import hashlib
import http.server
import sys
import threading
import zipfile
from pathlib import Path

import dev
import downloads
import pytest

BIG = 3_000_000


def wheel(folder: Path, name: str, size: int, needs: str = "") -> Path:
    """A wheel that pip can install, with `size` bytes that do not compress."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}/data.bin", b"x" * size)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


class Index(http.server.ThreadingHTTPServer):
    """A package index, which breaks a connection off after `breaks` bytes, once each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.breaks, self.ranges = folder, list[int](), list[str]()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def options(self) -> list[str]:
        return ["--index-url", f"http://127.0.0.1:{self.server_port}/simple/", "--no-cache-dir"]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Index

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        folder, name = self.server.folder, self.path.strip("/").split("/")[-1]
        if self.path.startswith("/simple/"):
            links = "".join(
                f'<a href="/files/{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">{path.name}</a>'
                for path in folder.glob(f"{name}-*.whl")
            )
            return self._answer(f"<html><body>{links}</body></html>".encode(), 200)
        begin = 0
        if part := self.headers.get("Range"):
            self.server.ranges.append(part)
            begin = int(part.removeprefix("bytes=").removesuffix("-"))
        return self._answer((folder / name).read_bytes()[begin:], 206 if begin else 200)

    def _answer(self, content: bytes, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.server.breaks and len(content) > 1_000_000:
            content = content[: self.server.breaks.pop(0)]
            self.close_connection = True
        self.wfile.write(content)


@pytest.fixture
def index(tmp_path):
    (tmp_path / "served").mkdir()
    wheel(tmp_path / "served", "waggletestbig", BIG)
    wheel(tmp_path / "served", "waggletestsmall", 1000, needs="waggletestbig")
    server = Index(tmp_path / "served")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def planned(index):
    return downloads.planned(Path(sys.executable), ["waggletestsmall"], index.options)


def test_the_size_is_said_before_anything_comes(planned, tmp_path):
    assert {each.name: each.size > 0 for each in planned} == {"waggletestbig": True, "waggletestsmall": True}
    words = downloads.summary(planned, tmp_path)
    assert "2 packages, 3 MB" in words
    assert "waggletestbig 3 MB" in words
    assert "Installed, they take" in words
    assert downloads.lacking_room(planned, tmp_path) == 0


def test_it_says_what_comes_and_how_far_it_is_and_all_of_it_is_whole(planned, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SHOWN_S", 0.0)
    lines = []
    files = downloads.fetch(planned, tmp_path / "here", lines.append)
    assert any("MB of 3 MB: waggletestbig" in line for line in lines)
    assert lines[-1] == "3 MB of 3 MB: all here"
    assert all(zipfile.ZipFile(file).testzip() is None for file in files)


def test_a_connection_that_breaks_off_is_gone_on_with_where_it_was(index, planned, tmp_path):
    index.breaks = [1_200_000, 700_000]
    downloads.fetch(planned, tmp_path / "here", lambda words: None)
    assert index.ranges == ["bytes=1200000-", "bytes=1900000-"]


def test_a_set_up_that_was_ended_goes_on_with_what_is_here(index, planned, tmp_path, monkeypatch):
    index.breaks = [1_200_000]
    monkeypatch.setattr(downloads, "TRIES", 1)
    with pytest.raises(OSError, match="What was downloaded is kept"):
        downloads.fetch(planned, tmp_path / "here", lambda words: None)
    second_try = downloads.planned(Path(sys.executable), ["waggletestsmall"], index.options)
    assert "1 MB of it are here" in downloads.summary(second_try, tmp_path / "here")
    downloads.fetch(second_try, tmp_path / "here", lambda words: None)
    assert index.ranges == ["bytes=1200000-"]


def test_a_file_that_came_damaged_is_removed_and_said(planned, tmp_path, index):
    (index.folder / "waggletestsmall-1.0-py3-none-any.whl").write_bytes(b"another")
    small = [each for each in planned if each.name == "waggletestsmall"]
    small = [downloads.Download(each.name, each.version, each.url, each.sha256) for each in small]
    with pytest.raises(OSError, match="came damaged"):
        downloads.fetch(small, tmp_path / "here", lambda words: None)
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(("system", "card", "variable", "answers", "cpu"), [
    ("linux", False, "", True, True), ("linux", True, "", True, False), ("linux", False, "https://mine", True, False),
    ("darwin", False, "", True, False), ("linux", False, "", False, False),
])  # fmt: skip
def test_wheels_without_cuda_are_picked_where_there_is_no_card(monkeypatch, system, card, variable, answers, cpu):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(dev, "has_cpu_wheels", lambda: answers)
    monkeypatch.setattr(dev, "has_nvidia_card", lambda: card)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", variable)
    assert (dev.CPU_WHEELS in dev.wheels_for_this_computer()) == cpu


def test_an_index_that_does_not_answer_is_left_out(monkeypatch):
    monkeypatch.setattr(dev, "CPU_WHEELS", "http://127.0.0.1:9/whl/cpu")
    dev.has_cpu_wheels.cache_clear()
    assert not dev.has_cpu_wheels()
    dev.has_cpu_wheels.cache_clear()


@pytest.mark.parametrize(("vendor", "kind", "is_card"), [
    ("0x10de", "0x030000", True), ("0x10de", "0x030200", True), ("0x8086", "0x030000", False), ("0x10de", "0x040300", False),
])  # fmt: skip
def test_a_card_counts_also_before_its_driver_is_installed(tmp_path, monkeypatch, vendor, kind, is_card):
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this computer has a card")
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0/vendor").write_text(vendor + "\n")
    (tmp_path / "0000:01:00.0/class").write_text(kind + "\n")
    monkeypatch.setattr(dev, "PCI", tmp_path)
    assert dev.has_nvidia_card() == is_card
