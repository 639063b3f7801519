#!/usr/bin/env python3
"""Resolve the locked packages for six platforms and three Pythons, and write platforms.json and the table of docs/platforms.md.

It asks the package index and downloads no package. The extra `package` brings uv, which resolves as if it ran on that platform.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import figures_file

sys.path[0] = str(figures_file.ROOT / "packaging")  # not this folder, which has a packaging.py

import locked  # noqa: E402

PAGE = figures_file.ROOT / "docs/platforms.md"
BEGIN, END = "<!-- written by tests/measured/platforms.py -->\n", "<!-- end -->\n"
GLIBC = ("2.28", "2.34", "2.35", "2.39")
MACOS = ("13.0", "14.0", "15.0")
LINUX, MAC, WINDOWS = "glibc", "macOS", "Windows"
PLATFORMS = {
    "Linux, x86_64": (LINUX, "x86_64-manylinux_{}"),
    "Linux, ARM": (LINUX, "aarch64-manylinux_{}"),
    "macOS, Apple Silicon": (MAC, "aarch64-apple-darwin"),
    "macOS, Intel": (MAC, "x86_64-apple-darwin"),
    "Windows, x86_64": (WINDOWS, "x86_64-pc-windows-msvc"),
    "Windows, ARM": (WINDOWS, "aarch64-pc-windows-msvc"),
}
VERSIONS = {LINUX: GLIBC, MAC: MACOS, WINDOWS: ("",)}  # of the system, from the oldest
NO_WHEEL = re.compile(r"Because ([\w-]+).*? has no wheels with a matching", re.DOTALL)
CUDA = re.compile(r"torch$|triton$|nvidia-|cuda-")


def main() -> int:
    figures_file.require_clean_tree()
    figures: dict[str, object] = {
        name: {python: resolved(*platform, python) for python in locked.PYTHONS} for name, platform in PLATFORMS.items()
    }
    figures_file.write(Path(__file__).resolve(), figures)
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(before + BEGIN + table(figures) + END + after, encoding="utf-8")
    return 0


def resolved(system: str, target: str, python: str) -> dict[str, object]:
    """What the app needs on the oldest version of the system that it can be had for; and, once, how much a set-up downloads."""
    oldest, packages = on_the_oldest(system, target, python)
    if not packages:
        return {"lacks": oldest}
    figures = {
        "oldest": oldest,
        "packages": len(packages),
        "from_source": [each["name"] for each in packages if not each.get("wheels")],
        "download_mib": mib(packages),
    }
    if python != locked.PYTHONS[0]:
        return figures
    set_up_oldest, set_up = on_the_oldest(system, target, python, ("dev",))
    return figures | {
        "setup_oldest": set_up_oldest,
        "setup_download_mib": mib(set_up),
        "setup_download_without_torch_and_cuda_mib": mib([each for each in set_up if not CUDA.match(each["name"])]),
    }


def on_the_oldest(system: str, target: str, python: str, extras: Iterable[str] = ()) -> tuple[str, list[dict[str, Any]]]:
    """The oldest version of the system that has all packages, and these; or a package that the newest one lacks, and none."""
    lacks = ""
    for version in VERSIONS[system]:
        name, oldest_mac = target.format(version.replace(".", "_")), version if system == MAC else ""
        try:
            return f"{system} {version}".strip(), locked.resolution(name, python, extras, oldest_mac=oldest_mac)
        except subprocess.CalledProcessError as error:
            missing = NO_WHEEL.search(error.stderr)
            if missing is None:
                sys.exit(error.stderr)
            lacks = missing[1]
    return lacks, []


def mib(packages: list[dict[str, Any]]) -> int:
    """The size of what is downloaded. Where several wheels fit, the largest counts."""
    files = [each.get("wheels") or [each["sdist"]] for each in packages]
    return round(sum(max(file.get("size", 0) for file in each) for each in files) / 2**20)


def table(figures: dict[str, object]) -> str:
    """The Markdown table."""
    head = ["platform", *(f"Python {python}" for python in locked.PYTHONS), "download"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name, by_python in figures.items():
        assert isinstance(by_python, dict)
        whole = [each for each in by_python.values() if "oldest" in each]
        sizes = sorted({each["download_mib"] for each in whole})
        download = f"{sizes[0]} to {sizes[-1]} MiB" if len(sizes) > 1 else f"{sizes[0]} MiB" if sizes else ""
        lines.append(f"| {name} | {' | '.join(map(cell, by_python.values()))} | {download} |")
    return "\n".join(lines) + "\n"


def cell(result: dict[str, object]) -> str:
    return (
        f"no: {result['lacks']} has no wheel" if "lacks" in result else f"from {result['oldest']}".replace("from Windows", "yes")
    )


if __name__ == "__main__":
    sys.exit(main())
