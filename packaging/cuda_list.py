#!/usr/bin/env python3
"""Writes resources/cuda.json: the files of the CUDA pack, with their sums, as pip finds them for the locked torch.

python3 packaging/cuda_list.py FOLDER     downloads them there (2.5 GB) to know what they take unpacked; run it on Linux, with the
Python that the release workflow freezes, whenever packaging/lock.txt names another torch.
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
INDEX = ("--index-url", "https://pypi.org/simple")  # no other: its torch brings CUDA along


def main(folder: Path) -> int:
    places = {url.rpartition("/")[2]: url for url in wheel_addresses(f"torch=={torch()}")}
    pip("download", "--quiet", "--no-deps", "--dest", str(folder), *INDEX, *places.values())
    wheels = [
        {"url": url, "sha256": digest(folder / name), "size": (folder / name).stat().st_size}
        for name, url in sorted(places.items())
    ]
    pack = {
        "torch": torch(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "system": sys.platform,
        "machine": platform.machine(),
        "unpacked": sum(entry.file_size for name in places for entry in zipfile.ZipFile(folder / name).infolist()),
        "wheels": wheels,
    }
    LIST.write_text(json.dumps(pack, indent=1) + "\n", encoding="utf-8")
    return 0


def torch() -> str:
    """The version that the lock names."""
    named = re.search(r"^torch==([0-9.]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None
    return named[1]


def wheel_addresses(requirement: str) -> list[str]:
    """The addresses of torch and of the libraries that it links; what else it asks for is in the app, or compiles kernels."""
    report = json.loads(pip("install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", *INDEX, requirement))
    urls = {part["metadata"]["name"]: part["download_info"]["url"] for part in report["install"]}
    return [url for name, url in urls.items() if re.match(r"torch$|nvidia-", name)]


def pip(*arguments: str) -> bytes:
    """As if nobody had configured it here."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_") or name == "PIP_CERT"}
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, env={**environment, "PIP_CONFIG_FILE": os.devnull}, stdout=subprocess.PIPE, check=True).stdout


def digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
