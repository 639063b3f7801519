"""Wraps the frozen folder for Windows: one installer for one person, made by NSIS."""

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def wrap(folder: Path, named: str, to: Path) -> list[Path]:
    return [installer(folder, folder.parent / "waggle.ico", named, to)]


def installer(folder: Path, icon: Path, named: str, to: Path) -> Path:
    """Warnings of makensis count as errors. Signing it is the release workflow's, which has the certificate."""
    made = to / f"Waggle-{named}-setup.exe"
    said = {"VERSION": named, "NUMBERS": numbers(named), "PAYLOAD": folder, "ICON": icon, "OUT": made}
    defined = [f"-D{name}={value}" for name, value in said.items()]
    subprocess.run(["makensis", "-WX", "-V2", *defined, str(HERE / "windows/waggle.nsi")], check=True)
    return made


def numbers(named: str) -> str:
    """Windows wants four numbers."""
    found = [number for number in re.findall(r"\d+", named) if int(number) < 65536]
    return ".".join([*found, "0", "0", "0", "0"][:4])
