#!/usr/bin/env python3
"""Measure the .deb on a bare Debian, and write packaging.json beside this file; standard library only.

    sudo python3 tests/measured/packaging.py [--clone FOLDER] [--root FOLDER] [--pictures FOLDER]

It builds the .deb in a clean clone (or takes `--clone`, which has dist/ already). In a bare Debian 12 without Python, made by
debootstrap (or `--root`), apt installs it, an ordinary user starts it from its desktop entry on a virtual screen, a second user
joins by an invite link, and apt upgrades and purges it. It needs root, debootstrap, Xvfb, xdotool and the network.
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

import figures_file

ENTRY = "/usr/share/applications/io.waggle.Waggle.desktop"
USER, OTHER = "ann", "bob"
TIMEOUT_S = 900.0  # long, because on a busy computer the first round alone took five minutes
NEXT, JOIN = ("Return",), ("Right", "space")  # in set-up; in the preview of a swarm, where "Not now" has the focus
SPECIALTIES = [["base_conversion", "easy"], ["fraction_simplification", "easy"]]
NOT_OURS = {"var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "home", "proc", "sys", "dev", "tmp", "run", "etc/ld.so.cache",
          "usr/share/applications/mimeinfo.cache"}  # fmt: skip


def main() -> int:
    figures_file.require_clean_tree()
    parser = argparse.ArgumentParser()
    parser.add_argument("--clone", type=Path, help="a clone with dist/, instead of building one")
    parser.add_argument("--root", type=Path, help="a bare Debian, instead of making one")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of both windows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = options.clone or build(Path(folder) / "clone")
        root = Path(folder) / "root"
        subprocess.run(["cp", "-a", str(options.root or make_bare_debian(Path(folder) / "bare")), str(root)], check=True)
        built = json.loads((clone / "dist/build.json").read_text())
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=clone, text=True).strip()
        with mounted(root), screen(root) as display:
            figures = measure_installed(clone, root, display, options.pictures) | measure_from_source(
                clone, Path(folder) / "home", display
            )
    sizes = {"deb_mib": next(size for name, size in built["mib"].items() if name.endswith(".deb")), **built}
    recorded_keys = ("deb_mib", "mib", "installed_mib", "largest_parts_mib", "cpu_seconds", "peak_mib", "seconds")
    new_names = {"cpu_seconds": "build_cpu_s", "peak_mib": "build_peak_mib", "seconds": "build_s", "mib": "artefacts_mib"}
    figures |= {new_names.get(name, name): sizes[name] for name in recorded_keys if name in sizes}
    figures_file.write(Path(__file__).resolve(), dict(sorted(figures.items())), commit=commit)
    return 0


def build(clone: Path) -> Path:
    """Build the package with one command, as the README says; returns the clone."""
    subprocess.run(["git", "clone", "--quiet", str(figures_file.ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "packaging/dev.py", "package"], cwd=clone, check=True)
    return clone


def make_bare_debian(root: Path) -> Path:
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root), "http://deb.debian.org/debian"], check=True)
    return root


@contextlib.contextmanager
def mounted(root: Path) -> Iterator[None]:
    """Mount what a running system has; add two users, name resolution, and tools that act as a desktop."""
    places = [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev"), ("tmpfs", "dev/shm"), ("devpts", "dev/pts")]
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    for kind, place in places:
        (root / place).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", kind, kind, str(root / place)], check=True)
    (root / "dev/shm").chmod(0o1777)
    for number, user in enumerate((USER, OTHER), 1234):
        inside(root, "useradd", "--create-home", "--uid", str(number), user)
    inside(root, "apt-get", "update", "-q")
    # to start an entry and to find the program for a link, as a desktop does
    apt(root, "install", "libglib2.0-bin", "desktop-file-utils")
    try:
        yield
    finally:
        for _, place in reversed(places):
            subprocess.run(["umount", "--lazy", str(root / place)], check=True)


@contextlib.contextmanager
def screen(root: Path) -> Iterator[str]:
    """Start a virtual screen; both sides reach it through its abstract socket. Yields the display."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1400x900x24", "-ac", "-noreset"]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as display_output:
        yield f":{display_output.readline().strip()}"
    server.terminate()
    server.wait()


def measure_installed(clone: Path, root: Path, display: str, pictures: Path | None) -> dict[str, object]:
    """Measure the package while it is installed, started, joined by a second person, upgraded, downgraded and purged."""
    load_average = round(os.getloadavg()[0], 1)  # other programs slow every start
    package = next((clone / "dist").glob("*.deb"))
    newer = with_higher_version(package, root)
    shutil.copy(package, root / "tmp/waggle.deb")
    apt(root, "install", *dependencies(package))  # first, so that all files left over are the package's own
    before = list_files(root)
    apt(root, "install", "/tmp/waggle.deb")
    home = home_of(root, USER)
    figures: dict[str, object] = {"load_average_before": load_average}
    first = start(root, display, home)
    figures |= {f"{name}_frozen_first": value for name, value in first.items()}
    figures |= {f"{name}_frozen": value for name, value in start(root, display, home).items()}
    figures |= measure_joining(clone, root, display, pictures)
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
    leftovers = sorted(list_files(root) - before)
    return figures | {
        "left_after_purge_files": len(leftovers),
        "left_after_purge": leftovers[:20],
        "data_kept_by_purge": home.is_dir(),
    }


def with_higher_version(package: Path, root: Path) -> Path:
    """Build the same package with a higher version; returns its path."""
    stage = root / "tmp/raised"
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(stage)], check=True)
    control = (stage / "DEBIAN/control").read_text().splitlines(keepends=True)
    lines = [line if not line.startswith("Version:") else "Version: 99.0.0\n" for line in control]
    (stage / "DEBIAN/control").write_text("".join(lines))
    newer = root / "tmp/newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "--build", str(stage), str(newer)], check=True)
    shutil.rmtree(stage)
    return newer


def dependencies(package: Path) -> list[str]:
    depends = subprocess.check_output(["dpkg-deb", "--field", str(package), "Depends"], text=True)
    return [dependency.split(" ")[0] for dependency in depends.strip().split(", ")]


def start(root: Path, display: str, home: Path) -> dict[str, float]:
    """Open the desktop entry, time the window and the first round, and close it."""
    began, now = time.monotonic(), time.time()
    with open_as_user(root, display, USER, "launch", ENTRY):
        return time_start(display, home, began, now)


def measure_joining(clone: Path, root: Path, display: str, pictures: Path | None) -> dict[str, float]:
    """One user creates a swarm, another one, new to Waggle, joins by its link with a few keys: seconds until both have shared."""
    home, other, now = home_of(root, USER), home_of(root, OTHER), time.time()
    with open_as_user(root, display, USER, "launch", ENTRY):
        until(lambda: played_since(home, now), "a round")
        link = invite(home)
        began = time.monotonic()
        with screen(root) as second, open_as_user(root, second, OTHER, "open", link):
            until(lambda: on_screen(second), "the window of the other")
            until(lambda: is_set_up(second, other), "the engine of the other")
            until(lambda: has(other, "StartedAgain") or press(second, *JOIN), "the way there")
            until(lambda: all(has(home_of_user, "PeerGroupsArrived") for home_of_user in (home, other)), "groups of each other")
            seconds = time.monotonic() - began
            if pictures:
                picture(clone, display, pictures / "inviting.png")
                picture(clone, second, pictures / "joined.png")
            return {"joined_by_link_s": round(seconds, 1)}


def invite(home: Path) -> str:
    """Ask the engine, as its window would, to create a swarm, to join it, and to write a link to it; returns the link."""
    swarm = ask_engine(home, "CreateSwarm", name="Two laptops", specialties=SPECIALTIES)["swarm"]
    charter = swarm["charter"]  # type: ignore[index]
    ask_engine(home, "ChooseSwarm", charter=charter)
    until(lambda: any(event["type"] == "Ready" and event["charter"] == charter for event in recorded(home)), "the new swarm")
    return str(ask_engine(home, "WriteInvite")["link"])


def ask_engine(home: Path, command: str, **fields: object) -> dict[str, object]:
    """Send a command to an engine; returns its first answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(home / "control/engine.sock"))
        connection.sendall(json.dumps({"type": command, "id": "asked", **fields}).encode() + b"\n")
        answer: dict[str, object] = json.loads(connection.makefile("rb").readline())
    if answer["type"] == "CommandRefused":
        sys.exit(f"{command}: {answer['title']}")
    return answer


def home_of(root: Path, user: str) -> Path:
    return root / f"home/{user}/.local/share/waggle"


@contextlib.contextmanager
def open_as_user(root: Path, display: str, user: str, *gio: str) -> Iterator[None]:
    """Open a menu entry or a link as a desktop does for an ordinary user; at the end, close all of Waggle."""
    environment = {"DISPLAY": display, "HOME": f"/home/{user}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    subprocess.run(["chroot", f"--userspec={user}", str(root), "gio", *gio], env=environment, check=True)
    try:
        yield
    finally:
        close(display, root)


def time_start(display: str, home: Path, began: float, now: float) -> dict[str, float]:
    until(lambda: on_screen(display), "a window")
    window_s = time.monotonic() - began
    until(lambda: is_set_up(display, home) and played_since(home, now), "a round")
    return {"window_ms": round(window_s * 1000), "first_round_s": round(played_since(home, now) - now, 1)}


def is_set_up(display: str, home: Path) -> bool:
    """Whether an engine has run; else go one step further in the questions of the first start."""
    begun = any(home.glob("events/*"))
    if not begun:
        press(display, *NEXT)
    return begun


def press(display: str, *keys: str) -> None:
    """Press keys in the window, one after the other. There is no window manager that would give it the focus."""
    window = ["search", "--onlyvisible", "--name", "^Waggle$", "windowfocus"]
    subprocess.run(["xdotool", *window, "key", *keys], env={**os.environ, "DISPLAY": display}, check=False)
    time.sleep(0.5)  # until the next view is there


def picture(clone: Path, display: str, path: Path) -> None:
    code = "import sys; from PIL import ImageGrab; ImageGrab.grab(xdisplay=sys.argv[1]).save(sys.argv[2])"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([clone / ".venv/bin/python", "-c", code, display, path], check=True)


def measure_from_source(clone: Path, home: Path, display: str) -> dict[str, float]:
    """Time the second of two starts from source, on the same screen."""
    environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": str(clone / "app"), "QT_QPA_PLATFORM": "xcb"}
    figures: dict[str, float] = {}
    for _ in range(2):
        began, now = time.monotonic(), time.time()
        window = subprocess.Popen([clone / ".venv/bin/python", "-m", "waggle", "--home", str(home)], env=environment)
        try:
            figures = time_start(display, home, began, now)
        finally:
            window.terminate()
            window.wait()
        until(lambda: not on_screen(display), "the window's end")
    return {f"{name}_unfrozen": value for name, value in figures.items()}


def on_screen(display: str) -> bool:
    """Whether the window is visible; Qt has a second, hidden window of the same name."""
    command = ["xdotool", "search", "--onlyvisible", "--name", "^Waggle$"]
    return not subprocess.run(command, env={**os.environ, "DISPLAY": display}, capture_output=True, check=False).returncode


def recorded(home: Path) -> Iterator[dict[str, object]]:
    for path in sorted(home.glob("events/*")):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # the last line is being written
                yield json.loads(line)


def played_since(home: Path, moment: float) -> float:
    """When the first round after a moment ended; 0 if there is none yet."""
    ends = (float(event["at"]) for event in recorded(home) if event["type"] == "RoundCompleted")  # type: ignore[arg-type]
    return next((at for at in ends if at > moment), 0.0)


def has(home: Path, kind: str) -> bool:
    return any(event["type"] == kind for event in recorded(home))


def newest_round(home: Path) -> int:
    played = (event["summary"]["round"] for event in recorded(home) if event["type"] == "RoundCompleted")  # type: ignore[index]
    return max(played, default=-1)


def close(display: str, root: Path) -> None:
    """End all programs of /opt/waggle in this root, as the end of a desktop session does, and wait for them."""
    for pid in running_pids(root):
        with contextlib.suppress(ProcessLookupError):  # it ended with its parent
            os.kill(pid, 15)
    until(lambda: not running_pids(root) and not on_screen(display), "the app's end")


def running_pids(root: Path) -> list[int]:
    """The processes whose program is in this root."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.readlink(process / "exe").startswith(str(root / "opt/waggle")):
                pids.append(int(process.name))
    return pids


def list_files(root: Path) -> set[str]:
    """All files except those of other packages and of the system."""
    files_found = set[str]()
    for folder, inner, files in os.walk(root):
        relative = Path(folder).relative_to(root)
        inner[:] = [name for name in inner if str(relative / name) not in NOT_OURS]
        files_found.update(str(relative / name) for name in files)
    return files_found - NOT_OURS


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {TIMEOUT_S:.0f} s")
        time.sleep(0.02)


def apt(root: Path, *words: str) -> None:
    inside(root, "apt-get", words[0], "-y", "-q", "--no-install-recommends", *words[1:])


def inside(root: Path, *command: str) -> None:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
    subprocess.run(["chroot", str(root), *command], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    raise SystemExit(main())
