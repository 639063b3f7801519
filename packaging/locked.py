"""Checks that packaging/lock.txt locks every package of every platform: `python packaging/locked.py` (asks the package index).

There is a single lock for all platforms, because a version should be the same everywhere; pip ignores the names that a platform
does not need. uv resolves for each platform and Python as if it ran there. The test suite does the same without a network, with
what is installed (tests/packaging/test_locked.py).
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import app_contents
from packaging.requirements import Requirement

LOCK, PROJECT = app_contents.ROOT / "packaging/lock.txt", app_contents.ROOT / "pyproject.toml"
EXTRAS = ("dev", "lab", "package")  # `bench` is installed without the packages that it depends on
PYTHONS = ("3.11", "3.12", "3.13")
BY_ITSELF = ("reasoning-gym",)  # installed on Windows without the packages that it depends on, see dev.py
WITHOUT_PYCOSAT = "pycosat; sys_platform != 'win32'\n"


@dataclass(frozen=True)
class Platform:
    """`target` is uv's name; the rest are values of environment markers."""

    target: str
    sys_platform: str
    os_name: str
    platform_system: str
    platform_machine: str

    def environment(self, python: str) -> dict[str, str]:
        """The environment that markers are evaluated in."""
        return {
            "sys_platform": self.sys_platform, "os_name": self.os_name, "platform_system": self.platform_system,
            "platform_machine": self.platform_machine, "python_version": python, "python_full_version": f"{python}.9",
            "implementation_name": "cpython", "platform_python_implementation": "CPython",
        }  # fmt: skip


WINDOWS = Platform("x86_64-pc-windows-msvc", "win32", "nt", "Windows", "AMD64")
PLATFORMS = (
    Platform("x86_64-manylinux_2_35", "linux", "posix", "Linux", "x86_64"),
    Platform("aarch64-manylinux_2_39", "linux", "posix", "Linux", "aarch64"),
    Platform("aarch64-apple-darwin", "darwin", "posix", "Darwin", "arm64"),
    WINDOWS,
)


def versions() -> dict[str, str]:
    """The locked version of each package, by its normalised name."""
    lines = (line.partition("#")[0].strip() for line in LOCK.read_text(encoding="utf-8").splitlines())
    return {normalised(line.partition("==")[0]): line.partition("==")[2] for line in lines if line}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(extras: Iterable[str] = EXTRAS) -> list[str]:
    """What the project itself depends on, with these extras, on any platform."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]


def resolved(platform: Platform, python: str) -> set[str]:
    """The names of all packages of a platform, as far as what is installed here says what it depends on."""
    environment = platform.environment(python)
    names, waiting = set[str](), [(each, frozenset[str]()) for each in requirements()]
    visited = set[tuple[str, str]]()
    while waiting:
        text, extras = waiting.pop()
        needed = Requirement(text)
        name = normalised(needed.name)
        if needed.marker and not any(needed.marker.evaluate(environment | {"extra": extra}) for extra in extras or {""}):
            continue
        names.add(name)
        for extra in {"", *needed.extras}:
            if (name, extra) in visited:
                continue
            visited.add((name, extra))
            waiting += [(each, frozenset({"", extra})) for each in _dependencies(name, platform)]
    return names


def _dependencies(name: str, platform: Platform) -> list[str]:
    if platform is WINDOWS and name in BY_ITSELF:
        return []
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:  # a package of another platform: none of them depends on others today
        return []


def resolution(target: str, python: str, extras: Iterable[str] = (), *, oldest_mac: str = "15.0") -> list[dict[str, Any]]:
    """The packages that uv resolves for a platform, as pylock.toml lists them: name, version, and wheels or a source archive.

    Raises CalledProcessError where it cannot resolve; its `stderr` names a package without a wheel.
    """
    with tempfile.TemporaryDirectory() as folder:
        without, alone, output = (Path(folder, name) for name in ("without.txt", "alone.txt", "pylock.toml"))
        without.write_text(WITHOUT_PYCOSAT, encoding="utf-8")
        alone.write_text("\n".join(BY_ITSELF), encoding="utf-8")
        chosen = [word for extra in extras for word in ("--extra", extra)]
        settings = ["-q", "--format", "pylock.toml", "-c", str(LOCK), "--override", str(without), "-o", str(output)]
        subprocess.run(
            [*uv(), "pip", "compile", "--python-platform", target, "--python-version", python, *settings, *chosen, str(PROJECT),
             str(alone)],
            check=True, stderr=subprocess.PIPE, text=True, env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": oldest_mac},
        )  # fmt: skip
        packages: list[dict[str, Any]] = tomllib.loads(output.read_text(encoding="utf-8"))["packages"]
    return packages


def unlocked(platform: Platform, python: str) -> Iterator[str]:
    """What uv resolves for a platform that is not locked. Raises CalledProcessError where it cannot resolve."""
    locked = versions()
    for package in resolution(platform.target, python, EXTRAS):
        if normalised(package["name"]) not in locked:
            yield f"{package['name']}=={package['version']}"


def uv() -> list[str]:
    """The command of uv, which the extra `package` installs."""
    return [sys.executable, "-m", "uv"]


def main() -> int:
    """Exit status 1 if a platform has a package that is not locked."""
    faults = 0
    for platform in PLATFORMS:
        for python in PYTHONS:
            for line in unlocked(platform, python):
                print(f"{platform.target}, Python {python}: {line} is not in {LOCK.name}")
                faults += 1
    print("Every package of every platform is locked." if not faults else "Add them.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
