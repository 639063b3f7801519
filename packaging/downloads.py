"""What a set-up has to download, how large it is, and the download: with progress, checked, and resumed where it broke off.

Standard library only. pip decides what is needed; it downloads without saying how much comes, and begins a broken file anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PIECE = 1 << 18  # bytes
TRIES, PATIENCE_S = 5, 60.0
UNPACKED = 2.7  # times the size of the downloads: what wheels take on the disk, measured for the locked versions
SHOWN_S = 1.0  # between two lines of progress on a terminal, ten times as long elsewhere


@dataclass(frozen=True)
class Download:
    """A wheel or source archive. `size`: bytes; 0: the server does not tell. `sha256`: empty if the index names none."""

    name: str
    version: str
    url: str
    sha256: str = ""
    size: int = 0

    @property
    def file_name(self) -> str:
        return urllib.parse.unquote(urllib.parse.urlsplit(self.url).path.rpartition("/")[2])


def planned(python: Path, requirements: Sequence[str], options: Sequence[str]) -> list[Download]:
    """What pip would install that is not here yet, with sizes. Raises CalledProcessError and OSError if pip cannot say it."""
    command = [str(python), "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", "--disable-pip-version-check"]
    report = json.loads(subprocess.check_output([*command, *options, *requirements], text=True))
    downloads = [_download(entry) for entry in report["install"]]
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(_with_size, downloads))


def summary(downloads: Sequence[Download], folder: Path) -> str:
    """What will come, in one or two sentences, before anything does."""
    total, here = sum(each.size for each in downloads), sum(_here(each, folder) for each in downloads)
    largest = sorted(downloads, key=lambda each: -each.size)[:3]
    named = ", ".join(f"{each.name} {_size(each.size)}" for each in largest if each.size)
    words = f"To download: {len(downloads)} packages, {_size(total)}" + (f" ({named} are the largest)." if named else ".")
    resumed = f" {_size(here)} of it are here from an earlier try." if here else ""
    return f"{words}{resumed} Installed, they take about {_size(total * UNPACKED)}."


def lacking_room(downloads: Sequence[Download], folder: Path) -> int:
    """The bytes that the disk lacks for the downloads and what is unpacked from them."""
    total = sum(each.size for each in downloads)
    missing = total - sum(_here(each, folder) for each in downloads)
    return max(0, int(missing + total * UNPACKED) - shutil.disk_usage(folder).free)


def fetch(downloads: Sequence[Download], folder: Path, say: Callable[[str], None]) -> list[Path]:
    """Download all into a folder; returns the files. What came of a file stays there if it breaks off. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = _Progress(sum(each.size for each in downloads), sum(_here(each, folder) for each in downloads), say)
    files = []
    for each in sorted(downloads, key=lambda each: each.size):
        if each.url.startswith("file:"):  # pip has built or stored it here
            files.append(Path(urllib.request.url2pathname(urllib.parse.urlsplit(each.url).path)))
        else:
            files.append(_fetched(each, folder, progress))
    progress.end()
    return files


class _Progress:
    """Says how much of everything is here, and what comes now."""

    def __init__(self, total: int, here: int, say: Callable[[str], None]) -> None:
        self.total, self.here, self._say = total, here, say
        self._began = (time.monotonic(), here)
        self._said_at = -1e9
        self._every = SHOWN_S if sys.stdout.isatty() else 10 * SHOWN_S

    def add(self, count: int, name: str) -> None:
        self.here += count
        now = time.monotonic()
        if now - self._said_at >= self._every:
            self._said_at = now
            self._say(f"{_size(self.here)} of {_size(self.total)}{self._rest(now)}: {name}")

    def _rest(self, now: float) -> str:
        came, passed = self.here - self._began[1], now - self._began[0]
        if passed < 2 * SHOWN_S or not came or self.here >= self.total:
            return ""
        seconds = (self.total - self.here) * passed / came
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"

    def end(self) -> None:
        self._say(f"{_size(self.here)} of {_size(self.total)}: all here")


def _download(entry: dict[str, object]) -> Download:
    metadata, info = entry["metadata"], entry["download_info"]
    assert isinstance(metadata, dict)
    assert isinstance(info, dict)
    hashes = info.get("archive_info", {}).get("hashes", {})
    return Download(metadata["name"], metadata["version"], info["url"], hashes.get("sha256", ""))


def _with_size(download: Download) -> Download:
    if download.url.startswith("file:"):
        return download
    try:
        request = urllib.request.Request(download.url, method="HEAD")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
    except (OSError, ValueError):  # this server answers no such question: its file comes all the same
        return download
    return Download(download.name, download.version, download.url, download.sha256, size)


def _here(download: Download, folder: Path) -> int:
    for path in (folder / download.file_name, folder / f"{download.file_name}.part"):
        if path.is_file():
            return min(path.stat().st_size, download.size or path.stat().st_size)
    return 0


def _fetched(download: Download, folder: Path, progress: _Progress) -> Path:
    file = folder / download.file_name
    if file.is_file():
        return file
    part = file.with_name(f"{file.name}.part")
    for attempt in range(TRIES):
        try:
            _continue(download, part, progress)
            break
        except (OSError, urllib.error.HTTPError) as error:
            if attempt == TRIES - 1:
                raise OSError(
                    f"{download.url} cannot be downloaded: {error}. What was downloaded is kept: start again."
                ) from error
            time.sleep(2**attempt if attempt else 0.1)
    if download.sha256 and _sha256(part) != download.sha256:
        part.unlink()
        raise OSError(f"{download.file_name} came damaged, and was removed: start again.")
    part.replace(file)
    return file


def _continue(download: Download, part: Path, progress: _Progress) -> None:
    """Fetch the rest of a file. Raises OSError if the connection ends before it does."""
    here = part.stat().st_size if part.is_file() else 0
    if download.size and here >= download.size:
        return
    request = urllib.request.Request(download.url, headers={"Range": f"bytes={here}-"} if here else {})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        resumes = answer.status == 206
        if here and not resumes:  # this server begins at the beginning
            progress.here -= here
        with part.open("ab" if resumes else "wb") as file:
            while piece := answer.read(PIECE):
                file.write(piece)
                progress.add(len(piece), download.name)
    if download.size and part.stat().st_size < download.size:
        raise OSError("the connection ended early")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _size(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"
