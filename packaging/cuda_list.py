#!/usr/bin/env python3
"""Writes resources/cuda.json: the wheels of the CUDA pack (torch and bitsandbytes) with their checksums, as pip resolves them.

python3 packaging/cuda_list.py FOLDER     downloads the wheels into FOLDER (2.6 GB) to measure their unpacked size

Run it on Linux, with the Python version that the release workflow freezes, each time packaging/lock.txt gets a new torch or
bitsandbytes.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST, LOCK = ROOT / "resources/cuda.json", ROOT / "packaging/lock.txt"
INDEX = ("--index-url", "https://pypi.org/simple")  # only this index: its torch comes with CUDA


def main(folder: Path) -> int:
    requirements = [f"{name}=={locked(name)}" for name in ("torch", "bitsandbytes")]
    places = {url.rpartition("/")[2]: url for url in wheel_addresses(requirements)}
    pip("download", "--quiet", "--no-deps", "--dest", str(folder), *INDEX, *places.values())
    wheels = [
        {"url": url, "sha256": digest(folder / name), "size": (folder / name).stat().st_size}
        for name, url in sorted(places.items())
    ]
    pack = {
        "torch": locked("torch"),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "system": sys.platform,
        "machine": platform.machine(),
        "unpacked": sum(entry.file_size for name in places for entry in zipfile.ZipFile(folder / name).infolist()),
        "wheels": wheels,
    }
    LIST.write_text(json.dumps(pack, indent=1) + "\n", encoding="utf-8")
    return 0


def locked(name: str) -> str:
    """The version of a package in packaging/lock.txt."""
    named = re.search(rf"^{name}==([0-9.]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None
    return named[1]


def wheel_addresses(requirements: list[str]) -> list[str]:
    """The URLs of torch, of the NVIDIA libraries that it links and of bitsandbytes; the app ships or does not need the rest."""
    report = json.loads(pip("install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", *INDEX, *requirements))
    urls = {part["metadata"]["name"]: part["download_info"]["url"] for part in report["install"]}
    return [url for name, url in urls.items() if re.match(r"torch$|bitsandbytes$|nvidia-", name)]


def pip(*arguments: str) -> bytes:
    """Run pip without the user's configuration; returns its stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_") or name == "PIP_CERT"}
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, env={**environment, "PIP_CONFIG_FILE": os.devnull}, stdout=subprocess.PIPE, check=True).stdout


def digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
