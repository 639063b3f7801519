"""Wraps the frozen folder for Linux: a .deb without maintainer scripts, and an archive that installs for one user."""

import contextlib
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import version

HERE = Path(__file__).resolve().parent
ICON = HERE.parent / "resources/waggle.svg"
NAME = "io.waggle.Waggle"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)")


def wrap(folder: Path, named: str, to: Path) -> list[Path]:
    """Both packages, or the archive alone if the tools for a .deb are missing."""
    if missing := [name for name in ("dpkg-deb", "dpkg-query", "objdump") if not shutil.which(name)]:
        print(f"No .deb: {', '.join(missing)} not found.")
        print("The archive lacks the notices of this system's libraries: do not publish it.")
        return [archive(folder, named, to)]
    notices(folder)
    return [deb(folder, named, to), archive(folder, named, to)]


def notices(folder: Path) -> None:
    """Add the copyright file of every Debian package whose library the app includes."""
    (folder / "notices/libraries").mkdir(parents=True, exist_ok=True)
    for library in (folder / "_internal").glob("lib*.so*"):
        with contextlib.suppress(
            subprocess.CalledProcessError
        ):  # it is of no package: it came in a wheel, which has its own notice
            package = owner(library.name)
            shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"notices/libraries/{package}.txt")


def deb(folder: Path, named: str, to: Path) -> Path:
    """Build the .deb: /opt/waggle, a link in /usr/bin, desktop files, and services that only the user starts."""
    stage = folder.parent / "deb"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(folder, stage / "opt/waggle", symlinks=True, copy_function=os.link)
    put(HERE / f"linux/{NAME}.desktop", stage / f"usr/share/applications/{NAME}.desktop")
    put(HERE / f"linux/{NAME}.metainfo.xml", stage / f"usr/share/metainfo/{NAME}.metainfo.xml")
    put(HERE / f"linux/{NAME}.mime.xml", stage / f"usr/share/mime/packages/{NAME}.xml")
    put(ICON, stage / f"usr/share/icons/hicolor/scalable/apps/{NAME}.svg")
    put(HERE / "services/waggle-engine.service", stage / "usr/lib/systemd/user/waggle-engine.service")
    put(HERE / "waggle-seed.service", stage / "usr/lib/systemd/system/waggle-seed.service")
    put(HERE / "linux/copyright", stage / "usr/share/doc/waggle/copyright")
    with gzip.GzipFile(stage / "usr/share/doc/waggle/changelog.gz", "wb", mtime=0) as packed:
        packed.write((HERE.parent / "CHANGELOG.md").read_bytes())
    (stage / "usr/bin").mkdir()
    (stage / "usr/bin/waggle").symlink_to("/opt/waggle/waggle")
    machine = MACHINES[os.uname().machine]
    control(stage, version.for_debian(named), machine)
    settle(stage)
    package = to / f"waggle_{version.for_debian(named)}_{machine}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z12", "--build", str(stage), str(package)], check=True)
    return package


def archive(folder: Path, named: str, to: Path) -> Path:
    """Build the archive for every other distribution: unpack it and start waggle, or run install.sh for a menu entry."""
    package = to / f"Waggle-{named}-linux-{os.uname().machine}.tar.gz"
    with tarfile.open(package, "w:gz", compresslevel=6) as packed:
        packed.add(folder, f"Waggle-{named}", filter=anonymous)
        for path in (HERE / "linux/install.sh", HERE / f"linux/{NAME}.desktop", HERE / f"linux/{NAME}.mime.xml", ICON):
            packed.add(path, f"Waggle-{named}/{path.name}", filter=anonymous)
    return package


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def settle(stage: Path) -> None:
    """Set ordinary file modes, which do not depend on the umask."""
    for path in (stage, *stage.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def control(stage: Path, named: str, machine: str) -> None:
    """Write DEBIAN/control, with the dependencies of the binaries, and DEBIAN/md5sums."""
    files = sorted(path for path in stage.rglob("*") if path.is_file() and not path.is_symlink())
    fields = (HERE / "linux/control").read_text(encoding="utf-8").format(
        version=named,
        machine=machine,
        size=sum(path.stat().st_size for path in files) // 1024,
        needs=", ".join(needs(stage)),
    )  # fmt: skip
    (stage / "DEBIAN").mkdir()
    (stage / "DEBIAN/control").write_text(fields, encoding="utf-8")
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(stage)}\n" for path in files)
    (stage / "DEBIAN/md5sums").write_text("".join(sums), encoding="utf-8")


def needs(stage: Path) -> list[str]:
    """The Debian packages of the linked libraries that the app does not include, libc6 with its version."""
    names, here, newest = set[str](), set[str](), (0, 0)
    for path in stage.rglob("*"):
        here.add(path.name)
        if not is_program(path):
            continue
        headers = subprocess.run(["objdump", "-p", str(path)], capture_output=True, text=True, check=True).stdout
        names.update(re.findall(r"NEEDED +(\S+)", headers))
        newest = max(newest, *((int(major), int(minor)) for major, minor in GLIBC.findall(headers)), (0, 0))
    packages = {owner(library) for library in names - here}
    return [f"libc6 (>= {newest[0]}.{newest[1]})", *sorted(packages - {"libc6"})]


def is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def owner(library: str) -> str:
    """The Debian package of a shared library on this computer; raises CalledProcessError if there is none."""
    output = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=True).stdout
    return output.partition(":")[0]
