#!/usr/bin/env python3
"""Measures the .deb where there is nothing of ours, and writes packaging.json beside this file; standard library only.

    sudo python3 tests/measured/packaging.py [--clone FOLDER] [--root FOLDER] [--pictures FOLDER]

In a clean clone the .deb is built (`--clone` goes on with one that has dist/ already). In a bare Debian 12, without any Python,
made by debootstrap (`--root` goes on with one), it is installed by apt, started from its desktop entry on a virtual screen by an
ordinary user, joined there by a second one who opens an invite link, upgraded to a newer one and purged. Wants root, debootstrap,
Xvfb, xdotool and the network.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keep

ENTRY = "/usr/share/applications/io.waggle.Waggle.desktop"
USER, OTHER = "ann", "bob"
SECONDS = 900.0  # to give up after; on a busy computer a first round alone took five minutes
CONTINUE, JOIN = (1118, 698), (1145, 468)  # in a window of the size that it first has, and with so many specialties
SPECIALTIES = [["base_conversion", "easy"], ["fraction_simplification", "easy"]]
OTHERS = {"var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "home", "proc", "sys", "dev", "tmp", "run", "etc/ld.so.cache",
          "usr/share/applications/mimeinfo.cache"}  # fmt: skip


def main() -> int:
    keep.require_clean()
    asked = argparse.ArgumentParser()
    asked.add_argument("--clone", type=Path)
    asked.add_argument("--root", type=Path)
    asked.add_argument("--pictures", type=Path)
    chosen = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = chosen.clone or build(Path(folder) / "clone")
        root = Path(folder) / "root"
        subprocess.run(["cp", "-a", str(chosen.root or bare(Path(folder) / "bare")), str(root)], check=True)
        built = json.loads((clone / "dist/build.json").read_text())
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=clone, text=True).strip()
        with mounted(root), screen(root) as display:
            figures = live(clone, root, display, chosen.pictures) | unfrozen(clone, Path(folder) / "home", display)
    sizes = {"deb_mib": next(size for name, size in built["mib"].items() if name.endswith(".deb")), **built}
    kept = ("deb_mib", "mib", "installed_mib", "largest_parts_mib", "cpu_seconds", "peak_mib", "seconds")
    named = {"cpu_seconds": "build_cpu_s", "peak_mib": "build_peak_mib", "seconds": "build_s", "mib": "artefacts_mib"}
    figures |= {named.get(name, name): sizes[name] for name in kept if name in sizes}
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
    for number, user in enumerate((USER, OTHER), 1234):
        inside(root, "useradd", "--create-home", "--uid", str(number), user)
    inside(root, "apt-get", "update", "-q")
    apt(root, "install", "libglib2.0-bin", "desktop-file-utils")  # start an entry, and know who opens a link, as a desktop does
    try:
        yield
    finally:
        for _, place in reversed(places):
            subprocess.run(["umount", "--lazy", str(root / place)], check=True)


@contextlib.contextmanager
def screen(root: Path) -> Iterator[str]:
    """A virtual screen that both sides reach, through its abstract socket."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1400x900x24", "-ac", "-noreset"]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as said:
        yield f":{said.readline().strip()}"
    server.terminate()
    server.wait()


def live(clone: Path, root: Path, display: str, pictures: Path | None) -> dict[str, object]:
    """Installed, started, joined by a second person, upgraded, purged."""
    busy = round(os.getloadavg()[0], 1)  # whoever else uses this computer slows every start
    package = next((clone / "dist").glob("*.deb"))
    newer = raised(package, root)
    shutil.copy(package, root / "tmp/waggle.deb")
    apt(root, "install", *needed(package))  # so that what is left is the package's own doing
    before = listing(root)
    apt(root, "install", "/tmp/waggle.deb")
    home = home_of(root, USER)
    figures: dict[str, object] = {"load_average_before": busy}
    first = start(root, display, home)
    figures |= {f"{name}_frozen_first": value for name, value in first.items()}
    figures |= {f"{name}_frozen": value for name, value in start(root, display, home).items()}
    figures |= invited(clone, root, display, pictures)
    rounds = newest_round(home)
    apt(root, "install", f"/tmp/{newer.name}")
    start(root, display, home)
    figures["rounds_kept_by_an_upgrade"] = rounds <= newest_round(home)
    apt(root, "install", "--allow-downgrades", "/tmp/waggle.deb")
    rounds = newest_round(home)
    start(root, display, home)
    figures["rounds_kept_by_a_downgrade"] = rounds <= newest_round(home)
    inside(root, "su", OTHER, "-c", "waggle goodbye --remove all,identity < /dev/null")
    figures["left_by_goodbye"] = sorted(path.name for path in home_of(root, OTHER).rglob("*"))
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
    """Open the desktop entry; until the window stands, and until a round is played; then close it."""
    began, now = time.monotonic(), time.time()
    with opened(root, display, USER, "launch", ENTRY):
        return watched(display, home, began, now)


def invited(clone: Path, root: Path, display: str, pictures: Path | None) -> dict[str, float]:
    """One makes a swarm; another, who never started Waggle, opens the link to it and joins by clicks; until both have shared."""
    home, other, now = home_of(root, USER), home_of(root, OTHER), time.time()
    with opened(root, display, USER, "launch", ENTRY):
        until(lambda: played_since(home, now), "a round")
        link = invite(home)
        began = time.monotonic()
        with screen(root) as second, opened(root, second, OTHER, "open", link):
            until(lambda: on_screen(second), "the window of the other")
            until(lambda: any(other.glob("events/*")) or go_on(second, other), "the engine of the other")
            until(lambda: has(other, "StartedAgain") or click(second, JOIN), "the way there")
            until(lambda: all(has(one, "PeerGroupsArrived") for one in (home, other)), "groups of each other")
            took = time.monotonic() - began
            if pictures:
                picture(clone, display, pictures / "inviting.png")
                picture(clone, second, pictures / "joined.png")
            return {"joined_by_link_s": round(took, 1)}


def invite(home: Path) -> str:
    """Asked of the engine as its window would: make a swarm, go there, and write a link to it."""
    made = asked(home, "CreateSwarm", name="Two laptops", specialties=SPECIALTIES)["swarm"]
    charter = made["charter"]  # type: ignore[index]
    asked(home, "ChooseSwarm", charter=charter)
    until(lambda: any(event["type"] == "Ready" and event["charter"] == charter for event in recorded(home)), "the new swarm")
    return str(asked(home, "WriteInvite")["link"])


def asked(home: Path, command: str, **fields: object) -> dict[str, object]:
    """The first answer of an engine."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(home / "control/engine.sock"))
        asking.sendall(json.dumps({"type": command, "id": "asked", **fields}).encode() + b"\n")
        answer: dict[str, object] = json.loads(asking.makefile("rb").readline())
    if answer["type"] == "CommandRefused":
        sys.exit(f"{command}: {answer['title']}")
    return answer


def home_of(root: Path, user: str) -> Path:
    return root / f"home/{user}/.local/share/waggle"


@contextlib.contextmanager
def opened(root: Path, display: str, user: str, *gio: str) -> Iterator[None]:
    """What a desktop does for an ordinary user, with an entry of the menu or a link; all of Waggle is closed in the end."""
    environment = {"DISPLAY": display, "HOME": f"/home/{user}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    subprocess.run(["chroot", f"--userspec={user}", str(root), "gio", *gio], env=environment, check=True)
    try:
        yield
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
        click(display, CONTINUE)


def click(display: str, place: tuple[int, int]) -> None:
    command = ["xdotool", "mousemove", *map(str, place), "click", "1"]
    subprocess.run(command, env={**os.environ, "DISPLAY": display}, check=False)
    time.sleep(0.5)  # for what follows to stand


def picture(clone: Path, display: str, path: Path) -> None:
    code = "import sys; from PIL import ImageGrab; ImageGrab.grab(xdisplay=sys.argv[1]).save(sys.argv[2])"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([clone / ".venv/bin/python", "-c", code, display, path], check=True)


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
    """Qt has a second, hidden window of the same name."""
    command = ["xdotool", "search", "--onlyvisible", "--name", "^Waggle$"]
    return not subprocess.run(command, env={**os.environ, "DISPLAY": display}, capture_output=True, check=False).returncode


def recorded(home: Path) -> Iterator[dict[str, object]]:
    for path in sorted(home.glob("events/*")):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # the last line is being written
                yield json.loads(line)


def played_since(home: Path, moment: float) -> float:
    """When the first round after a moment ended; 0 while there is none."""
    ends = (float(event["at"]) for event in recorded(home) if event["type"] == "RoundCompleted")  # type: ignore[arg-type]
    return next((at for at in ends if at > moment), 0.0)


def has(home: Path, kind: str) -> bool:
    return any(event["type"] == kind for event in recorded(home))


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
