#!/usr/bin/env python3
"""Start Waggle on an emulated Linux for ARM, and write linux_arm.json beside this file.

    sudo .venv/bin/python tests/measured/linux_arm.py FOLDER

It makes a Debian 13 for ARM in FOLDER if there is none (8 GB; needs debootstrap, qemu-user-static and the extra `package`),
installs the locked wheels, compiles pycosat there, and runs `waggle doctor` and `waggle selftest` by qemu's user emulation.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import figures_file

sys.path[0] = str(figures_file.ROOT / "packaging")  # not this folder, which has a packaging.py

import locked  # noqa: E402

PYTHON, TARGET = "3.13", "aarch64-manylinux_2_39"  # Debian 13 has this Python, and glibc 2.41
SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
PACKAGES = "python3-dev,gcc,libc6-dev"
BY_ITSELF = ("pycosat", "setuptools")  # compiled there, and what compiles it
BUILD = "import runpy, setuptools, sys; sys.argv[1:] = ['-q', 'build']; runpy.run_path('setup.py')"
COMMANDS = {"doctor": (), "selftest": ("--set", "computer.priority=normal")}  # else whatever else runs here goes first
COMPILE = f'cd /source/pycosat-*/ && PYTHONPATH=/source python3 -c "{BUILD}" && cp build/lib*/* /{SITE}'


def main() -> int:
    figures_file.require_clean_tree()
    root = Path(sys.argv[1]).resolve()
    if not (root / "etc/debian_version").exists():
        words = ["debootstrap", "--arch=arm64", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(root)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    copy_source(root / "waggle")
    with running(root):
        if not list((root / SITE).glob("pycosat*.so")):
            install(root)
        figures: dict[str, object] = {"machine": inside(root, "uname", "-m").stdout.strip()}
        for command, options in COMMANDS.items():
            shutil.rmtree(root / "home", ignore_errors=True)
            began = time.monotonic()
            done = inside(root, "python3", "-m", "waggle", command, "--home", "/home/waggle", *options)
            sys.stdout.write(done.stdout + done.stderr)
            figures |= {f"{command}_rc": done.returncode, f"{command}_s": round(time.monotonic() - began)}
        figures["rounds"] = rounds(root / "home/waggle/events")
    figures_file.write(Path(__file__).resolve(), figures)
    return 0


def install(root: Path) -> None:
    """The locked wheels; pycosat, which has none, is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        without = Path(folder, "without.txt")
        without.write_text("pycosat; sys_platform != 'linux'\n", encoding="utf-8")
        to_arm = [
            "--python-platform",
            TARGET,
            "--python-version",
            PYTHON,
            "--python",
            sys.executable,
            "--target",
            str(root / SITE),
        ]
        of_waggle = ["-c", str(locked.LOCK), "--override", str(without), "-r", str(locked.PROJECT)]
        subprocess.run([*locked.uv(), "pip", "install", "-q", "--link-mode", "copy", *to_arm, *of_waggle], check=True)
    (root / "source").mkdir(exist_ok=True)
    named = [f"{name}=={locked.versions()[name]}" for name in BY_ITSELF]
    download = [
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        "pycosat",
        "-d",
        str(root / "source"),
    ]
    subprocess.run([sys.executable, *download, *named], check=True)
    for path in (root / "source").iterdir():
        shutil.unpack_archive(path, root / "source", "gztar" if path.name.endswith(".tar.gz") else "zip")
    inside(root, "sh", "-c", COMPILE).check_returncode()


def copy_source(to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    packed = subprocess.check_output(["git", "archive", "HEAD", "app", "resources"], cwd=figures_file.ROOT)
    subprocess.run(["tar", "-x", "-C", str(to)], input=packed, check=True)


@contextmanager
def running(root: Path) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("proc", "dev"):
            subprocess.run(["mount", "--bind", f"/{name}", str(root / name)], check=True)
            stack.callback(subprocess.run, ["umount", "-l", str(root / name)], check=False)
        yield


def inside(root: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    variables = ("PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8", "PYTHONPATH=/waggle/app", "QT_QPA_PLATFORM=offscreen")
    words = ["chroot", str(root), "/usr/bin/env", "-i", *variables, *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def rounds(records: Path) -> int:
    lines = (line for path in records.glob("*.jsonl") for line in path.read_bytes().splitlines())
    return sum(json.loads(line)["type"] == "RoundCompleted" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
