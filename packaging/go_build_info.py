"""The Go modules of an executable, from the build information that Go links into it: what `go version -m` prints, without Go.

Format: src/debug/buildinfo and src/runtime/debug/mod.go of Go 1.18 and later. Executables that UPX has packed, such as p2pd in
hivemind's wheel, hold it in their memory only: these are started on Linux, bound to this computer,
and ended as soon as they speak.
"""

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = b"\xff Go buildinf:"
HEADER = 32  # bytes: the magic, pointer size and flags, then zeros
INLINE = 2  # flag: the strings stand behind the header, not behind pointers
SENTINEL = 16  # bytes around the table of modules
MAX_STRING = 1 << 20
MAX_FILE = 512 << 20
MAX_REGION = 256 << 20  # of memory; Go's text and data are far smaller
START_S = 60.0  # for an executable to unpack itself and say something
PACKED = b"UPX!"
ALONE = ("-hostAddrs", "/ip4/127.0.0.1/tcp/0")  # arguments of p2pd: listen here only, without peers


class UnreadableBuildInfo(Exception):
    """An executable that does not say of which modules it is built."""


class GoBuild(NamedTuple):
    """`modules` maps paths to versions without the v: the dependencies, replacements in place of what they replace."""

    go: str
    modules: dict[str, str]
    unversioned: tuple[str, ...]  # modules built from a working tree: nobody can look these up


def read(executable: Path) -> GoBuild:
    """The build information of an executable. Raises UnreadableBuildInfo."""
    try:
        if executable.stat().st_size > MAX_FILE:
            raise UnreadableBuildInfo(f"{executable.name} is too large")
        content = executable.read_bytes()
    except OSError as error:
        raise UnreadableBuildInfo(f"{executable.name} cannot be read: {error.strerror}") from error
    if PACKED not in content:
        return parse(content)
    if not sys.platform.startswith("linux"):
        raise UnreadableBuildInfo(f"{executable.name} is packed, and can be looked into on Linux only")
    for region in _memory_of(executable):
        if MAGIC in region:
            return parse(region)
    raise UnreadableBuildInfo(f"{executable.name} holds no build information of Go")


def parse(content: bytes) -> GoBuild:
    """The build information in the bytes of an executable or of its memory. Raises UnreadableBuildInfo."""
    start = content.find(MAGIC)
    if start < 0:
        raise UnreadableBuildInfo("no build information of Go")
    if len(content) < start + HEADER or not content[start + len(MAGIC) + 1] & INLINE:
        raise UnreadableBuildInfo("the build information of a Go before 1.18, or of another format")
    go, end = _string(content, start + HEADER)
    table, _ = _string(content, end)
    try:
        return _modules(go.decode().removeprefix("go").split()[0], table[SENTINEL:-SENTINEL].decode())
    except (UnicodeDecodeError, IndexError) as error:
        raise UnreadableBuildInfo("damaged build information") from error


def _modules(go: str, table: str) -> GoBuild:
    modules, unversioned, replaced = dict[str, str](), list[str](), ""
    for line in table.splitlines():
        kind, *fields = line.split("\t")
        if kind not in ("mod", "dep", "=>"):
            continue
        path, version = fields[0], fields[1]
        if kind == "=>":
            modules.pop(replaced, None)
        replaced = path
        if re.fullmatch(r"v\d\S*", version):
            modules[path] = version.removeprefix("v")
        else:
            unversioned.append(path)
    if not modules:
        raise UnreadableBuildInfo("build information without modules")
    return GoBuild(go, modules, tuple(unversioned))


def _string(content: bytes, at: int) -> tuple[bytes, int]:
    """A string behind its length, a varint, and where it ends."""
    length = shift = 0
    while True:
        if at >= len(content) or shift > 28:
            raise UnreadableBuildInfo("damaged build information")
        byte = content[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if length > MAX_STRING or at + length > len(content):
        raise UnreadableBuildInfo("damaged build information")
    return content[at : at + length], at + length


def _memory_of(executable: Path) -> Iterator[bytes]:
    """What lies in the memory of a p2pd that has unpacked itself, region by region."""
    with tempfile.TemporaryDirectory() as folder:
        command = [executable, *ALONE, "-listen", f"/unix{folder}/control"]
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
        except OSError as error:
            raise UnreadableBuildInfo(f"{executable.name} does not start: {error.strerror}") from error
        clock = threading.Timer(START_S, process.kill)
        clock.start()
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it speaks, or has ended: either way it is unpacked or gone
            yield from _regions(process.pid)
        except OSError as error:
            raise UnreadableBuildInfo(f"the memory of {executable.name} cannot be read: {error.strerror}") from error
        finally:
            clock.cancel()
            process.kill()
            process.communicate()


def _regions(pid: int) -> Iterator[bytes]:
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            bounds, rights, *_ = line.split()
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            if "r" not in rights or end - begin > MAX_REGION or "[v" in line:  # the kernel's own regions cannot be read
                continue
            memory.seek(begin)
            yield memory.read(end - begin)
