"""Installs the built package as a user would, tries it, and removes it: `python packaging/smoke.py dist`.

It plays three rounds of the starter model without a swarm, takes a screenshot of the window that replays them, plays three
rounds of a model with a chat template and of one that transformers computes (not on a Mac), and starts a seed (not on Windows).
The release workflow runs it on all three systems; on Linux it needs root.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import app_contents

SECONDS = 300


def main(dist: Path) -> int:
    match sys.platform:
        case "linux":
            linux(dist)
        case "win32":
            windows(dist)
        case _:
            mac(dist)
    return 0


def linux(dist: Path) -> None:
    package = next(dist.glob("*.deb")).resolve()
    root = [] if os.geteuid() == 0 else ["sudo"]
    run(*root, "apt-get", "install", "-y", "--no-install-recommends", str(package))
    attempt(Path("/usr/bin/waggle"), Path("/usr/bin/waggle"), dist)
    run(*root, "apt-get", "purge", "-y", "waggle")
    gone(Path("/opt/waggle"), Path("/usr/share/applications/io.waggle.Waggle.desktop"))


def windows(dist: Path) -> None:
    place = Path(tempfile.mkdtemp()) / "Waggle"
    run(str(next(dist.glob("*-setup.exe")).resolve()), "/S", f"/D={place}")
    attempt(place / "Waggle.exe", place / "waggle-console.exe", dist)
    run(
        str(place / "uninstall.exe"), "/S", f"_?={place}"
    )  # without `_?=` it continues in a copy of itself, which cannot be waited for
    gone(place / "Waggle.exe", place / "_internal")


def mac(dist: Path) -> None:
    mount = Path(tempfile.mkdtemp())
    run("hdiutil", "attach", str(next(dist.glob("*.dmg"))), "-nobrowse", "-readonly", "-mountpoint", str(mount))
    place = Path(tempfile.mkdtemp()) / "Waggle.app"
    run("ditto", str(mount / "Waggle.app"), str(place))
    run("hdiutil", "detach", str(mount))
    run("codesign", "--verify", "--deep", "--strict", str(place))
    attempt(place / "Contents/MacOS/Waggle", place / "Contents/MacOS/waggle-console", dist)
    shutil.rmtree(place)


def attempt(window: Path, console: Path, dist: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run(str(console), "selftest", "--home", str(home / "alone"))
        recording = next((home / "alone/events").glob("*"))
        picture = dist / f"window-{sys.platform}.png"
        run(str(window), "--replay", str(recording), "--page", "home", "--screenshot", str(picture.resolve()))
        if not picture.exists():
            sys.exit("The window left no picture.")
        chatting = shutil.copytree(app_contents.RESOURCES / "starter", home / "chatting")
        (chatting / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
        run(str(console), "selftest", "--home", str(home / "talking"), "--set", f"model.folder={chatting}")
        if sys.platform != "darwin":
            generic = generic_model(home / "generic")
            run(str(console), "selftest", "--home", str(home / "computing"), "--set", f"model.folder={generic}")
        if sys.platform != "win32":
            seed([str(console)], home / "seed")


def generic_model(folder: Path) -> Path:
    """A copy of the starter with another activation, which only transformers computes."""
    shutil.copytree(app_contents.RESOURCES / "starter", folder)
    configuration = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**configuration, "hidden_act": "gelu"}), encoding="utf-8")
    return folder


def seed(program: Sequence[str], home: Path) -> str:
    """Start a seed; returns its address, which comes from p2pd. Exits if it prints none in time."""
    command = [*program, "seed", "--home", str(home), "--set", "swarm.host=127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ending = threading.Timer(SECONDS, process.kill)
        ending.start()
        output = list[str]()
        for line in process.stdout:
            output.append(line)
            if line.startswith("/"):
                break
        ending.cancel()
        process.terminate()
    if not output or "/p2p/" not in output[-1]:
        sys.exit(f"The seed gave no address: {''.join(output)!r}")
    print(output[-1], end="")
    return output[-1].strip()


def run(*command: str) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, check=True, timeout=SECONDS)


def gone(*paths: Path) -> None:
    if leftovers := [str(path) for path in paths if path.exists()]:
        sys.exit(f"Left behind: {', '.join(leftovers)}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
