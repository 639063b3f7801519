#!/usr/bin/env python3
"""Measures the .deb where there is nothing of ours, and writes packaging.json beside this file; standard library only.

    sudo python3 tests/measured/packaging.py [--clone FOLDER] [--root FOLDER]

In a clean clone the .deb is built (`--clone` goes on with one that has dist/ already). In a bare Debian 12, without any Python,
made by debootstrap (`--root` goes on with one), it is installed by apt, started from its desktop entry on a virtual screen by an
ordinary user, upgraded to a newer one and purged. Wants root, debootstrap, Xvfb, xwininfo, xdotool and the network.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keep

ENTRY = "/usr/share/applications/io.waggle.Waggle.desktop"
USER = "ann"
SECONDS = 300.0
CONTINUE = (1118, 698)  # in a window of the size that it first has
OTHERS = {"var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "home", "proc", "sys", "dev", "tmp", "run", "etc/ld.so.cache"}


def main() -> int:
    keep.require_clean()
    asked = argparse.ArgumentParser()
    asked.add_argument("--clone", type=Path)
    asked.add_argument("--root", type=Path)
    chosen = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = chosen.clone or build(Path(folder) / "clone")
        root = Path(folder) / "root"
        subprocess.run(["cp", "-a", str(chosen.root or bare(Path(folder) / "bare")), str(root)], check=True)
        built = json.loads((clone / "dist/build.json").read_text())
        with mounted(root), screen(root) as display:
            figures = live(clone, root, display) | unfrozen(clone, Path(folder) / "home", display)
    sizes = {"deb_mib": next(size for name, size in built["mib"].items() if name.endswith(".deb")), **built}
    kept = ("deb_mib", "mib", "installed_mib", "largest_parts_mib", "cpu_seconds", "peak_mib", "seconds")
    named = {"cpu_seconds": "build_cpu_s", "peak_mib": "build_peak_mib", "seconds": "build_s", "mib": "artefacts_mib"}
    figures |= {named.get(name, name): sizes[name] for name in kept}
    figures["load_average"] = round(os.getloadavg()[0], 1)  # whoever else uses this computer slows every start
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=clone, text=True).strip()
    keep.write(Path(__file__).resolve(), dict(sorted(figures.items())), commit=commit)
    return 0


def build(clone: Path) -> Path:
    """In one command, as the README says."""
    subprocess.run(["git", "clone", "--quiet", str(keep.ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "packaging/dev.py", "package"], cwd=clone, check=True)
    return clone


def bare(root: Path) -> Path:
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root), "http://deb.debian.org/debian"], check=True)
    return root


@contextlib.contextmanager
def mounted(root: Path) -> Iterator[None]:
    """What a running system has; a user; the names of hosts and the certificates that apt's mirror needs here."""
    places = [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev"), ("tmpfs", "dev/shm"), ("devpts", "dev/pts")]
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    for kind, place in places:
        (root / place).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", kind, kind, str(root / place)], check=True)
    (root / "dev/shm").chmod(0o1777)
    inside(root, "useradd", "--create-home", "--uid", "1234", USER)
    inside(root, "apt-get", "update", "-q")
    inside(root, "apt-get", "install", "-y", "-q", "--no-install-recommends", "libglib2.0-bin")  # `gio launch`, as a desktop does
    try:
        yield
    finally:
        for _, place in reversed(places):
            subprocess.run(["umount", "--lazy", str(root / place)], check=True)


@contextlib.contextmanager
def screen(root: Path) -> Iterator[str]:
    """A virtual screen that both sides reach, through its abstract socket."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1400x900x24", "-ac"]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as said:
        yield f":{said.readline().strip()}"
    server.terminate()
    server.wait()


def live(clone: Path, root: Path, display: str) -> dict[str, object]:
    """Installed, started, upgraded, purged."""
    package = next((clone / "dist").glob("*.deb"))
    newer = raised(package, root)
    shutil.copy(package, root / "tmp/waggle.deb")
    apt(root, "install", *needed(package))  # so that what is left is the package's own doing
    before = listing(root)
    apt(root, "install", "/tmp/waggle.deb")
    home = root / f"home/{USER}/.local/share/waggle"
    figures: dict[str, object] = {}
    first = start(root, display, home)
    figures |= {f"{name}_frozen_first": value for name, value in first.items()}
    figures |= {f"{name}_frozen": value for name, value in start(root, display, home).items()}
    rounds = newest_round(home)
    apt(root, "install", f"/tmp/{newer.name}")
    start(root, display, home)
    figures["rounds_kept_by_an_upgrade"] = rounds <= newest_round(home)
    apt(root, "install", "--allow-downgrades", "/tmp/waggle.deb")
    rounds = newest_round(home)
    start(root, display, home)
    figures["rounds_kept_by_a_downgrade"] = rounds <= newest_round(home)
    apt(root, "purge", "waggle")
    left = sorted(listing(root) - before)
    return figures | {"left_after_purge_files": len(left), "left_after_purge": left[:20], "data_kept_by_purge": home.is_dir()}


def raised(package: Path, root: Path) -> Path:
    """The same package under a higher version."""
    stage = root / "tmp/raised"
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(stage)], check=True)
    control = (stage / "DEBIAN/control").read_text().splitlines(keepends=True)
    told = [line if not line.startswith("Version:") else "Version: 99.0.0\n" for line in control]
    (stage / "DEBIAN/control").write_text("".join(told))
    made = root / "tmp/newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "--build", str(stage), str(made)], check=True)
    shutil.rmtree(stage)
    return made


def needed(package: Path) -> list[str]:
    told = subprocess.check_output(["dpkg-deb", "--field", str(package), "Depends"], text=True)
    return [one.split(" ")[0] for one in told.strip().split(", ")]


def start(root: Path, display: str, home: Path) -> dict[str, float]:
    """Open the desktop entry as an ordinary user; until the window stands, and until a round is played; then close it."""
    environment = {"DISPLAY": display, "HOME": f"/home/{USER}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    began, now = time.monotonic(), time.time()
    launched = ["chroot", f"--userspec={USER}", str(root), "gio", "launch", ENTRY]
    subprocess.run(launched, env=environment, check=True)
    try:
        return watched(display, home, began, now)
    finally:
        close(display, root)


def watched(display: str, home: Path, began: float, now: float) -> dict[str, float]:
    until(lambda: on_screen(display), "a window")
    shown = time.monotonic() - began
    until(lambda: played_since(home, now) or go_on(display, home), "a round")
    return {"window_ms": round(shown * 1000), "first_round_s": round(played_since(home, now) - now, 1)}


def go_on(display: str, home: Path) -> None:
    """Click where the first start's questions have "Continue", while no engine has said anything."""
    if not any(home.glob("events/*")):
        command = ["xdotool", "mousemove", *map(str, CONTINUE), "click", "1"]
        subprocess.run(command, env={**os.environ, "DISPLAY": display}, check=False)
        time.sleep(0.5)  # for the next question to stand


def unfrozen(clone: Path, home: Path, display: str) -> dict[str, float]:
    """The same from the source, with the same screen, the second of two starts."""
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": str(clone / "app"), "QT_QPA_PLATFORM": "xcb"}
    told: dict[str, float] = {}
    for _ in range(2):
        began, now = time.monotonic(), time.time()
        window = subprocess.Popen([clone / ".venv/bin/python", "-m", "waggle", "--home", str(home)], env=environment)
        try:
            told = watched(display, home, began, now)
        finally:
            window.terminate()
            window.wait()
        until(lambda: not on_screen(display), "the window's end")
    return {f"{name}_unfrozen": value for name, value in told.items()}


def on_screen(display: str) -> bool:
    said = subprocess.run(["xwininfo", "-display", display, "-name", "Waggle"], capture_output=True, text=True, check=False)
    return "Map State: IsViewable" in said.stdout


def recorded(home: Path) -> Iterator[dict[str, object]]:
    for path in sorted(home.glob("events/*")):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # the last line is being written
                yield json.loads(line)


def played_since(home: Path, moment: float) -> float:
    """When the first round after a moment ended; 0 while there is none."""
    ends = (float(event["at"]) for event in recorded(home) if event["type"] == "RoundCompleted")  # type: ignore[arg-type]
    return next((at for at in ends if at > moment), 0.0)


def newest_round(home: Path) -> int:
    played = (event["summary"]["round"] for event in recorded(home) if event["type"] == "RoundCompleted")  # type: ignore[index]
    return max(played, default=-1)


def close(display: str, root: Path) -> None:
    """Ask what runs from /opt/waggle in this root to leave, as a session that ends does; it is gone before this returns."""
    for pid in running(root):
        with contextlib.suppress(ProcessLookupError):  # its parent took it along
            os.kill(pid, 15)
    until(lambda: not running(root) and not on_screen(display), "the app's end")


def running(root: Path) -> list[int]:
    """The processes whose program lies in this root."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.readlink(process / "exe").startswith(str(root / "opt/waggle")):
                found.append(int(process.name))
    return found


def listing(root: Path) -> set[str]:
    """Every file that is not somebody else's business."""
    found = set[str]()
    for folder, inner, files in os.walk(root):
        here = Path(folder).relative_to(root)
        inner[:] = [name for name in inner if str(here / name) not in OTHERS]
        found.update(str(here / name) for name in files)
    return found - OTHERS


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {SECONDS:.0f} s")
        time.sleep(0.02)


def apt(root: Path, *words: str) -> None:
    inside(root, "apt-get", words[0], "-y", "-q", "--no-install-recommends", *words[1:])


def inside(root: Path, *command: str) -> None:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
    subprocess.run(["chroot", str(root), *command], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    raise SystemExit(main())
