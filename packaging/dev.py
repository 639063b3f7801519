#!/usr/bin/env python3
"""Waggle's developer commands. Standard library only, and valid in Python 3.8, so that an older Python gets a clear message.

python3 packaging/dev.py run [...]   set everything up, then open the window (passes arguments on to waggle)
python3 packaging/dev.py test [...]  set everything up, lint, then run all tests but slow and quiet ones (arguments go to pytest)
python3 packaging/dev.py lab NAME    run an experiment or a recipe of the laboratory (passes arguments on)
python3 packaging/dev.py lint        ruff, mypy, the import contracts and the names
python3 packaging/dev.py setup       only set up: .venv with the versions of packaging/lock.txt
python3 packaging/dev.py doctor      only check: Python, Qt's system libraries, a screen
python3 packaging/dev.py package     build the package for this system into dist/ (see build.py)
python3 packaging/dev.py vulnerabilities     look every locked package and p2pd's modules up in OSV (needs the network)
python3 packaging/dev.py bench [...] play the same round in Waggle, TRL and GenRL (passes arguments on to waggle-lab bench)
python3 packaging/dev.py clean       remove .venv and .venv-bench
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV, BENCH = ROOT / ".venv", ROOT / ".venv-bench"
LOCK, PROJECT = ROOT / "packaging/lock.txt", ROOT / "pyproject.toml"
WINDOWS = os.name == "nt"
PYTHON, BENCH_PYTHON = (place / ("Scripts/python.exe" if WINDOWS else "bin/python") for place in (VENV, BENCH))
OLDEST, NEWEST = (3, 11), (3, 13)
SUPPORTED = f"Python 3.{OLDEST[1]} to 3.{NEWEST[1]}"

# What Qt's wheels do not include: shared library -> Debian package. Qt's own error message about them is misleading.
QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
}

LINT = (
    ("-m", "ruff", "format", "--check", "-q", "."),
    ("-m", "ruff", "check", "-q", "."),
    ("-m", "mypy"),
    ("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"),
    ("packaging/names.py",),
)

# The set-up creates an environment, for which Debian's Python needs a package, and compiles pycosat, which has no wheels; on
# Windows it does without.
SET_UP = {
    "python3-venv": lambda: importlib.util.find_spec("ensurepip"),
    "gcc": lambda: shutil.which("cc") or shutil.which("gcc"),
    "python3-dev": lambda: (Path(sysconfig.get_path("include")) / "Python.h").exists(),
}

MAC_COMPILER = "xcode-select --install"

CUDA = 7  # exit code of HAS_CUDA
HAS_CUDA = f"import sys, torch; sys.exit({CUDA} if torch.version.cuda else 0)"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
ANSWER_S = 15.0
PCI = Path("/sys/bus/pci/devices")
LEAN = ("python3 packaging/dev.py clean && "
        "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu python3 packaging/dev.py package")  # fmt: skip

TEST_PROGRAMS = {"Xvfb": "xvfb", "xwininfo": "x11-utils"}  # a screen for the window's end-to-end tests


def main(arguments: list[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "doctor":
        return doctor()
    if command == "clean":
        for place in (VENV, BENCH):
            shutil.rmtree(place, ignore_errors=True)
        return 0
    commands = {
        "run": run, "test": test, "lint": lambda _: lint(), "lab": lab, "setup": lambda _: 0, "package": package, "bench": bench,
        "vulnerabilities": vulnerabilities,
    }  # fmt: skip
    if command not in commands:
        print(__doc__)
        return 2
    setup()
    return commands[command](rest)


def run(rest: list[str]) -> int:
    """Open the window, or run another command of waggle; without a screen waggle itself reports it."""
    if has_screen() and is_window(rest):
        libraries(for_tests=False)
    arguments = ("-m", "waggle", *with_whole_paths(rest))
    if WINDOWS:
        return waggle_python(*arguments)
    os.chdir(ROOT)  # replaces this process, whose command line would keep the key of an invite; waggle hides it in its own
    os.execve(str(PYTHON), [str(PYTHON), *arguments], environment())


def test(rest: list[str]) -> int:
    import suite  # needs Python 3.11

    libraries(for_tests=True)
    compiled = ("-m", "compileall", "-q", "app")  # once here: processes that may not write would each compile it again
    return lint() or waggle_python(*compiled) or suite.run(rest, waggle_python)


def is_window(rest: list[str]) -> bool:
    """Whether these arguments open the window: options only, an invite's link or its file; a word is another command."""
    return not rest or rest[0].startswith(("-", "waggle:")) or rest[0].lower().endswith(".waggle")


def with_whole_paths(rest: list[str]) -> list[str]:
    """Make paths of invite files absolute, because waggle runs in the source root."""
    paths = {word: Path(word) for word in rest if word.lower().endswith(".waggle")}
    return [str(paths[word].absolute()) if word in paths and paths[word].is_file() else word for word in rest]


def lint() -> int:
    """Check format, lint, types, import contracts and names; returns the first exit code that is not zero."""
    for step in LINT:
        if code := waggle_python(*step):
            return code
    return 0


def setup() -> None:
    """Create .venv with exactly the locked versions, unless it is up to date."""
    if not is_supported():
        sys.exit(f"Waggle needs {SUPPORTED}; this is {sys.version.split()[0]}.")
    mark = VENV / ".waggle-stamp"
    if mark.exists() and mark.read_text() == stamp():
        return
    began = time.time()
    get(missing_to_set_up(), "The set-up needs packages that are not installed.")
    if sys.platform == "darwin" and not has_compiler():
        sys.exit(f"The set-up compiles a package in C and needs the command line tools. Install them with\n    {MAC_COMPILER}")
    if not is_whole(PYTHON):
        print(f"Creating {VENV} ...", flush=True)
        venv.create(VENV, clear=True, with_pip=True, symlinks=not WINDOWS)
    requirements = [*project()["dependencies"], *optional("dev")]
    install(requirements)
    if WINDOWS:  # by itself, because pip would compile pycosat, without which Waggle judges as well
        pip("install", "--no-deps", "reasoning-gym")
    mark.write_text(stamp())
    print(f"Set up in {time.time() - began:.0f} s.", flush=True)


def install(requirements: list[str]) -> None:
    """Say what has to be downloaded, download it where a person can watch, and install it."""
    import downloads  # needs Python 3.9

    options, folder = ["-c", str(LOCK), *wheels_for_this_computer()], VENV / "downloads"
    print("Working out what is needed ...", flush=True)
    try:
        needed = downloads.planned(PYTHON, requirements, options)
        folder.mkdir(exist_ok=True)
        print(downloads.summary(needed, folder), flush=True)
        if missing := downloads.lacking_room(needed, folder):
            sys.exit(f"The disk of {VENV} lacks {missing / 1e9:.1f} GB. Make room, then start again.")
        files = downloads.fetch(needed, folder, lambda words: print(f"    {words}", flush=True))
    except (
        subprocess.CalledProcessError,
        KeyError,
        ValueError,
        OSError,
    ) as error:
        print(f"The downloads cannot be shown here ({error}). pip makes them by itself.", flush=True)
        subprocess.check_call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", *options, *requirements])
        return
    if files:
        print(f"Installing {len(files)} packages ...", flush=True)
        pip("install", *wheels_for_this_computer(), *map(str, files))
    shutil.rmtree(folder, ignore_errors=True)


def wheels_for_this_computer() -> list[str]:
    """Options of pip: without an NVIDIA card, torch without CUDA, which is 4 GB less. PIP_EXTRA_INDEX_URL goes first."""
    if sys.platform != "linux" or has_nvidia_card() or os.environ.get("PIP_EXTRA_INDEX_URL") or not has_cpu_wheels():
        return []
    return ["--extra-index-url", CPU_WHEELS]


@functools.cache
def has_cpu_wheels() -> bool:
    """Whether the index with torch for processors answers. Where it does not, pip would ask it in vain for every package."""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{CPU_WHEELS}/torch/", method="HEAD"), timeout=ANSWER_S):
            return True
    except OSError:
        return False


def has_nvidia_card() -> bool:
    """Whether this Linux has an NVIDIA card, whether or not its driver is installed already."""
    if any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists():  # the latter: Windows' Linux, where cards are shared
        return True
    vendors = (path for path in PCI.glob("*/vendor") if (path.parent / "class").is_file())
    return any(
        vendor.read_text().strip() == "0x10de" and (vendor.parent / "class").read_text().startswith("0x03") for vendor in vendors
    )


def is_supported() -> bool:
    return OLDEST <= sys.version_info[:2] <= NEWEST


def is_whole(python: Path) -> bool:
    """Whether an environment is complete and has this version of Python."""
    look = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    try:
        return subprocess.run([python, "-c", look], capture_output=True, check=False).returncode == 0
    except OSError:  # there is no such program
        return False


def project() -> dict[str, Any]:
    import tomllib  # needs Python 3.11

    return tomllib.loads(PROJECT.read_text())["project"]


def optional(extra: str) -> list[str]:
    return project()["optional-dependencies"][extra]


def lab(rest: list[str]) -> int:
    return waggle_python("-m", "waggle_lab", *rest)


def bench(rest: list[str]) -> int:
    set_up_bench()
    return waggle_python("-m", "waggle_lab", "bench", *rest, python=BENCH_PYTHON)


def set_up_bench() -> None:
    """Create .venv-bench with the other trainers; it also sees the packages of .venv, so that all use the same torch."""
    mark = BENCH / ".waggle-stamp"
    if mark.exists() and mark.read_text() == stamp():
        return
    venv.create(BENCH, with_pip=False, symlinks=not WINDOWS)
    (packages_of(BENCH_PYTHON) / "waggle.pth").write_text(f"{packages_of(PYTHON)}\n")
    print("Installing the trainers to compare with ...", flush=True)
    pip("--python", str(BENCH_PYTHON), "install", "--no-deps", *optional("bench"))
    mark.write_text(stamp())


def packages_of(python: Path) -> Path:
    """The folder of an environment's packages."""
    output = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    return Path(output.strip())


def package(rest: list[str]) -> int:
    """Freeze the app and wrap it for this system; Qt's system libraries must be installed to be included."""
    libraries(for_tests=False)
    if sys.platform == "linux" and waggle_python("-c", HAS_CUDA) == CUDA:
        sys.exit(f"The torch in .venv includes CUDA, about 4 GB that no installer should contain. Get another one:\n    {LEAN}")
    pip("install", *optional("package"))
    return waggle_python(str(ROOT / "packaging/build.py"), *rest)


def vulnerabilities(rest: list[str]) -> int:
    return waggle_python(str(ROOT / "packaging/vulnerabilities.py"), *rest)


def pip(*arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "-c", str(LOCK))
    subprocess.check_call([str(PYTHON), "-m", "pip", *arguments, *quiet])


def stamp() -> str:
    """A digest of everything that decides what is installed."""
    digest = hashlib.sha256(repr(sys.version_info[:3]).encode())
    for path in (LOCK, PROJECT):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def missing_packages(*, for_tests: bool) -> list[str]:
    """Debian packages whose libraries this computer lacks."""
    if not sys.platform.startswith("linux"):
        return []
    missing = []
    for library, package in QT_LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(package)
    if for_tests:
        missing += [package for program, package in TEST_PROGRAMS.items() if not shutil.which(program)]
    return missing


def missing_to_set_up() -> list[str]:
    """Missing Debian packages without which .venv cannot be created."""
    return [package for package, here in SET_UP.items() if not here()] if sys.platform.startswith("linux") else []


def has_compiler() -> bool:
    """Whether a Mac can compile a package in C; there, `cc` may exist and only offer its installation."""
    try:
        return subprocess.run(["xcode-select", "--print-path"], capture_output=True, check=False).returncode == 0
    except OSError:  # no such program
        return False


def libraries(*, for_tests: bool) -> None:
    get(missing_packages(for_tests=for_tests), "Qt needs system libraries that are not installed.")


def get(missing: list[str], why: str) -> None:
    """Install packages if allowed (root on Debian); otherwise print why they are needed and the command, and exit."""
    if not missing:
        return
    line = apt_line(missing)
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing:", *missing, flush=True)
        quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.check_call(["apt-get", "update"], **quiet)
        subprocess.check_call(line, **quiet)
        return
    print(why, "On Debian or Ubuntu:")
    print("    sudo", *line)
    sys.exit(3)


def apt_line(missing: list[str]) -> list[str]:
    return ["apt-get", "install", "-y", "--no-install-recommends", *missing]


def has_screen() -> bool:
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def doctor() -> int:
    unready, missing = missing_to_set_up(), missing_packages(for_tests=True)
    print(f"Python {sys.version.split()[0]}: {'fine' if is_supported() else 'not supported, Waggle needs ' + SUPPORTED}")
    print("Installed:", "yes" if (VENV / ".waggle-stamp").exists() else "no (python3 packaging/dev.py setup)")
    print("Set-up:", "missing " + " ".join(unready) if unready else "all here")
    if sys.platform == "darwin" and not has_compiler():
        print(f"    missing the command line tools: {MAC_COMPILER}")
    print("Qt's system libraries:", "missing " + " ".join(missing) if missing else "all here")
    if missing := [*unready, *missing]:
        print("    sudo", *apt_line(missing))
    print("Screen:", "yes" if has_screen() else "no (the engine works without one)")
    return 3 if missing or not is_supported() else 0


def waggle_python(*arguments: str, python: Path = PYTHON) -> int:
    """Run the environment's Python with the source root on its path; leave Ctrl+C to it, as it gets the signal, too."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.call([str(python), *arguments], cwd=ROOT, env=environment())
    finally:
        signal.signal(signal.SIGINT, before)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "app")}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
