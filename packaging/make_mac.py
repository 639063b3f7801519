"""Wraps the bundle for Apple Silicon: signs it from the inside out, puts it on a disk image, notarises and staples it.

Without `CODESIGN_IDENTITY` the signature is ad hoc, the least that Apple Silicon accepts; Gatekeeper then asks the user to allow
the app in Settings. Without `NOTARY_PROFILE` (from `xcrun notarytool store-credentials`) nothing is sent to Apple.
"""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAGIC = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # Mach-O of 64 bits, and of several architectures


def wrap(bundle: Path, named: str, to: Path) -> list[Path]:
    for path in inside_out(bundle):
        sign(path)
    subprocess.run(["codesign", "--verify", "--deep", "--strict", str(bundle)], check=True)
    image = to / f"Waggle-{named}-arm64.dmg"
    stage = bundle.parent / "image"
    subprocess.run(["rm", "-rf", str(stage), str(image)], check=True)
    stage.mkdir()
    subprocess.run(["ditto", str(bundle), str(stage / bundle.name)], check=True)
    (stage / "Applications").symlink_to("/Applications")
    create = ["hdiutil", "create", "-volname", "Waggle", "-srcfolder", str(stage), "-format", "ULFO", str(image)]
    subprocess.run(create, check=True)
    sign(image)
    if profile := os.environ.get("NOTARY_PROFILE"):
        subprocess.run(["xcrun", "notarytool", "submit", str(image), "--keychain-profile", profile, "--wait"], check=True)
        subprocess.run(["xcrun", "stapler", "staple", str(image)], check=True)
    return [image]


def inside_out(bundle: Path) -> list[Path]:
    """Every Mach-O file, the deepest first, and the bundle last: a signature covers everything below it."""
    programs = [path for path in bundle.rglob("*") if path.is_file() and not path.is_symlink() and is_program(path)]
    return [*sorted(programs, key=lambda path: (-len(path.parts), str(path))), bundle]


def is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in MAGIC


def sign(path: Path) -> None:
    """Sign a file or a bundle; with the hardened runtime only where there is an identity.

    Under that runtime, libraries must have the team of their program, and an ad hoc signature has no team.
    """
    identity = os.environ.get("CODESIGN_IDENTITY") or "-"
    hardened = ["--timestamp", "--options", "runtime", "--entitlements", str(HERE / "mac/entitlements.plist")]
    subprocess.run(["codesign", "--force", "--sign", identity, *(hardened if identity != "-" else ()), str(path)], check=True)
