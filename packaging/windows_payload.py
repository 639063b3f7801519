"""Installs the locked wheels for Windows into a folder, on any system: `python packaging/windows_payload.py FOLDER`.

PyInstaller builds the installer on Windows. This script finds out before whether every locked version has a wheel for Windows,
and tests/windows runs what it installs. Pure packages without a wheel are built from their source.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import locked

PYTHON = "3.11"


def main(folder: Path) -> int:
    """Exit status 1 if a package cannot be had, or is not locked."""
    install(folder)
    names = sorted(path.name.removesuffix(".dist-info").partition("-")[0] for path in folder.glob("*.dist-info"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    outside = [name for name in names if locked.normalised(name) not in locked.versions()]
    print(f"{len(names)} packages for Windows, {size:.0f} MiB unpacked, in {folder}")
    print("Not locked:", ", ".join(outside) or "none")
    return 1 if outside else 0


def install(folder: Path, extras: Iterable[str] = ()) -> None:
    """Install Waggle's dependencies for Windows, with these extras. Raises CalledProcessError if one cannot be had."""
    with tempfile.TemporaryDirectory() as temporary:
        without, listed = Path(temporary, "without.txt"), Path(temporary, "requirements.txt")
        without.write_text(locked.WITHOUT_PYCOSAT, encoding="utf-8")
        listed.write_text("\n".join([*locked.requirements(extras), *locked.BY_ITSELF]), encoding="utf-8")
        of_windows = ["--python-platform", locked.WINDOWS.target, "--python-version", PYTHON, "--python", sys.executable]
        subprocess.run(
            [*locked.uv(), "pip", "install", "-q", "--link-mode", "copy", *of_windows, "--target", str(folder),
             "-c", str(locked.LOCK), "--override", str(without), "-r", str(listed)], check=True,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
