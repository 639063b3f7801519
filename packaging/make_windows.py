"""Wraps the frozen folder for Windows: an installer for one user, built with NSIS."""

import re
import subprocess
import sys
from pathlib import Path

import windows_sign
from PIL import Image

HERE = Path(__file__).resolve().parent
PICTURES = {"SIDE": (164, 314), "HEADER": (150, 57)}  # pixels, as the installer's pages want them
GROUND = (250, 249, 243)  # the window's


def wrap(folder: Path, named: str, to: Path) -> list[Path]:
    windows_sign.sign(*map(str, sorted(folder.glob("*.exe"))))
    return [installer(folder, folder.parent / "waggle.ico", named, to)]


def installer(folder: Path, icon: Path, named: str, to: Path) -> Path:
    """Build the installer; warnings of makensis are errors."""
    setup_program = to / f"Waggle-{named}-setup.exe"
    definitions = {"VERSION": named, "NUMBERS": numbers(named), "PAYLOAD": folder, "ICON": icon, "OUT": setup_program}
    definitions |= {"SIDE": icon.with_name("side.bmp"), "HEADER": icon.with_name("header.bmp")}
    for name, size in PICTURES.items():
        picture(icon, size).save(definitions[name])
    definitions |= {"PYTHON": sys.executable, "SIGN": HERE / "windows_sign.py"}
    defined = [f"-D{name}={value}" for name, value in definitions.items()]
    subprocess.run(["makensis", "-WX", "-V2", "-INPUTCHARSET", "UTF8", *defined, str(HERE / "windows/waggle.nsi")], check=True)
    return setup_program


def picture(icon: Path, size: tuple[int, int]) -> Image.Image:
    """The icon on a light ground, in the middle of a picture of this size."""
    canvas = Image.new("RGB", size, GROUND)
    with Image.open(icon) as drawn:
        scaled = drawn.convert("RGBA")
    edge = min(size) * 3 // 4
    scaled = scaled.resize((edge, edge), Image.Resampling.LANCZOS)
    canvas.paste(scaled, ((size[0] - edge) // 2, (size[1] - edge) // 2), scaled)
    return canvas


def resource(named: str) -> str:
    """The version resource of a program, shown in Explorer, in PyInstaller's format."""
    four = tuple(int(number) for number in numbers(named).split("."))
    words = {
        "CompanyName": "Waggle contributors", "FileDescription": "Waggle", "FileVersion": named, "InternalName": "Waggle",
        "LegalCopyright": "Waggle contributors, Apache-2.0", "ProductName": "Waggle", "ProductVersion": named,
    }  # fmt: skip
    strings = ", ".join(f"StringStruct({key!r}, {value!r})" for key, value in words.items())
    return (
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={four}, prodvers={four}, mask=0x3F, OS=0x40004, fileType=1), "
        f"kids=[StringFileInfo([StringTable('040904B0', [{strings}])]), VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n"
    )


def numbers(named: str) -> str:
    """The version as the four numbers that Windows needs."""
    parts = [number for number in re.findall(r"\d+", named) if int(number) < 65536]
    return ".".join([*parts, "0", "0", "0", "0"][:4])
