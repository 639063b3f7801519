#!/usr/bin/env python3
"""Builds the packages for this system. Run it as `python3 packaging/dev.py package`, which sets everything up first.

Checks the excluded modules, freezes the app into one folder, adds the notices, and wraps the folder: a .deb and a portable
archive on Linux, an installer on Windows, a disk image on a Mac. Writes them to dist/, with an SBOM, checksums and sizes.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import app_contents
import check_exclusions
import make_linux
import make_mac
import make_windows
import notices
import version

ROOT = Path(__file__).resolve().parent.parent
WORK, DIST = ROOT / "build", ROOT / "dist"
PARTS = 10  # how many of the largest parts the report names


def main() -> int:
    began = time.monotonic()
    if sys.platform == "win32" and not shutil.which("makensis"):
        sys.exit("The installer is built with NSIS, which is not on the PATH: winget install NSIS.NSIS")
    if "--unchecked" not in sys.argv and (code := check_exclusions.main()):
        return code
    named = version.of_this_tree()
    folder = WORK / "Waggle"
    freeze(folder, named)
    notices.write(folder / "notices")
    DIST.mkdir(exist_ok=True)
    shutil.copyfile(folder / "notices/sbom.cdx.json", DIST / f"Waggle-{named}-{sys.platform}.cdx.json")
    match sys.platform:
        case "linux":
            packages = make_linux.wrap(folder, named, DIST)
        case "win32":
            packages = make_windows.wrap(folder, named, DIST)
        case "darwin":
            packages = make_mac.wrap(WORK / "Waggle.app", named, DIST)
        case other:
            sys.exit(f"There is no installer for {other}.")
    report(folder, packages, began)
    return 0


def freeze(folder: Path, named: str) -> None:
    """Run PyInstaller. Exit if it fails, or if a library that the app links is missing on this computer."""
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "WAGGLE_VERSION": named, "PYTHONHASHSEED": "0", **icon(), **resource(named)}
    command = ["-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", "--distpath", str(WORK)]
    spec = ["--workpath", str(WORK / "work"), str(ROOT / "packaging/waggle.spec")]
    done = subprocess.run([sys.executable, *command, *spec], env=environment, stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(f"PyInstaller ended with code {done.returncode}.")
    if missing := app_contents.missing(done.stderr):
        sys.exit("\n".join(("Install these first (`packaging/dev.py doctor` names most of them):", *missing)))


def icon() -> dict[str, str]:
    """Draw the icon in this system's format; returns the environment for PyInstaller. Linux uses the SVG itself."""
    if sys.platform == "linux":
        return {}
    form = "ico" if sys.platform == "win32" else "icns"
    drawn = WORK / f"waggle.{form}"
    drawn.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, str(ROOT / "packaging/icon.py"), str(drawn)], check=True)
    return {"WAGGLE_ICON": str(drawn)}


def resource(named: str) -> dict[str, str]:
    """Write the version resource of the Windows programs; returns the environment for PyInstaller."""
    if sys.platform != "win32":
        return {}
    version_file = WORK / "version.txt"
    version_file.write_text(make_windows.resource(named), encoding="utf-8")
    return {"WAGGLE_VERSION_FILE": str(version_file)}


def report(folder: Path, packages: list[Path], began: float) -> None:
    """Write dist/SHA256SUMS, and dist/build.json with sizes, time and memory of the build."""
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in packages}
    (DIST / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in sums.items()), encoding="utf-8")
    figures = {
        "mib": {path.name: mib(path) for path in packages},
        "installed_mib": mib(folder),
        "largest_parts_mib": dict(sorted(parts(folder).items(), key=lambda part: -part[1])[:PARTS]),
        "seconds": round(time.monotonic() - began),
        **spent(),
    }
    (DIST / "build.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))


def parts(folder: Path) -> dict[str, int]:
    """The size of each entry of the folder and of its `_internal` folder, in MiB."""
    inside = [*(path for path in folder.iterdir() if path.name != "_internal"), *(folder / "_internal").iterdir()]
    return {str(path.relative_to(folder)): mib(path) for path in inside}


def mib(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return round(sum(file.lstat().st_size for file in files if file.is_file() and not file.is_symlink()) / 2**20)


def spent() -> dict[str, int]:
    """CPU time and peak memory of the build's child processes."""
    if sys.platform == "win32":
        return {}
    import resource

    all_of_it = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {"cpu_seconds": round(all_of_it.ru_utime + all_of_it.ru_stime), "peak_mib": round(all_of_it.ru_maxrss / unit)}


if __name__ == "__main__":
    sys.exit(main())
