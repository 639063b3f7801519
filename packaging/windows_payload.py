"""Collects the win_amd64 wheels of all dependencies, on any system: `python3 packaging/windows_payload.py FOLDER`.

PyInstaller builds the installer on Windows. This script finds out before whether every locked version has a wheel for
Windows. Pure packages without one are built from their source; pycosat (in C, and no charter needs it) is replaced by a stub.
"""

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import app_contents
from packaging.requirements import Requirement

LOCK = app_contents.ROOT / "packaging/lock.txt"
STUBS = {"pycosat": 'raise ImportError("pycosat is not part of Waggle on Windows")\n'}
WINDOWS = {
    "sys_platform": "win32", "os_name": "nt", "platform_system": "Windows", "platform_machine": "AMD64",
    "python_version": "3.11", "python_full_version": "3.11.9", "implementation_name": "cpython",
    "platform_python_implementation": "CPython", "extra": "",
}  # fmt: skip


def main(folder: Path) -> int:
    """Download and unpack all wheels and report missing ones; exit status 1 if a package cannot be had at all."""
    wheels, site = folder / "wheels", folder / "site"
    requirements = tomllib.loads((app_contents.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    built_here, missing, names = list[str](), list[str](), set[str]()
    while requirements:
        needed = Requirement(requirements.pop())
        name = needed.name.lower().replace("_", "-").replace(".", "-")
        if (
            name in names
            or name in STUBS
            or name in app_contents.NOWHERE
            or (needed.marker and not needed.marker.evaluate(WINDOWS))
        ):
            continue
        names.add(name)
        if not (wheel := download(needed.name, wheels / name, built_here)):
            missing.append(name)
            continue
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(site)
        requirements += PathDistribution(next(site.glob(f"{wheel.name.split('-')[0]}-*.dist-info"))).requires or []
    for name, text in STUBS.items():
        (site / f"{name}.py").write_text(text, encoding="utf-8")
    tell(site, names, built_here, missing)
    return 1 if missing else 0


def download(name: str, to: Path, built_here: list[str]) -> Path | None:
    """The wheel for Windows, or one built here from pure source (then `built_here` gets its name); None if there is neither."""
    pip = [sys.executable, "-m", "pip"]
    common = ["--quiet", "--disable-pip-version-check", "--no-deps", "-c", str(LOCK)]
    windows = ["--only-binary", ":all:", "--platform", "win_amd64", "--python-version", "311", "-d", str(to)]
    if not list(to.glob("*.whl")) and subprocess.call([*pip, "download", *common, *windows, name], stderr=subprocess.DEVNULL):
        subprocess.call([*pip, "wheel", *common, "--no-build-isolation", "-w", str(to), name], stderr=subprocess.DEVNULL)
        built_here.append(name)
    usable = [path for path in to.glob("*.whl") if path.name.endswith(("-any.whl", "-win_amd64.whl"))]
    return usable[0] if usable else None


def tell(site: Path, names: set[str], built_here: list[str], missing: list[str]) -> None:
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 2**20
    print(f"{len(names)} packages for Windows, {size:.0f} MiB unpacked, in {site}")
    print("Without a wheel, built from pure source:", ", ".join(sorted(built_here)) or "none")
    print("Without a wheel, replaced by a stub:", ", ".join(STUBS))
    print("Missing:", ", ".join(missing) or "none")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
