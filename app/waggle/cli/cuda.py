"""`waggle cuda`: shows what the CUDA pack needs, downloads it, or removes it."""

import argparse
import sys
from pathlib import Path

import msgspec

from waggle.core import cuda_download
from waggle.core.cuda_download import CudaPack
from waggle.core.errors import CudaError

SOURCE = "It comes from the Python package index, under the licences of PyTorch and NVIDIA."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--get", action="store_true", help="download it, or continue an interrupted download")
    parser.add_argument("--remove", action="store_true", help="remove it")
    parser.add_argument("--stdio", action="store_true", help="with --get: print progress as JSON lines")


def run(arguments: argparse.Namespace) -> int:
    """Show, download or remove the pack. Raises CudaError."""
    pack = cuda_download.shipped_pack()
    if not cuda_download.fits(pack):
        title = "Only the installed Waggle for Linux on Intel and AMD processors takes CUDA in addition."
        raise CudaError(title, "Where pip installed Waggle, its torch brings CUDA along on Linux.")
    return run_on(pack, cuda_download.packs_folder(), arguments)


def run_on(pack: CudaPack, root: Path, arguments: argparse.Namespace) -> int:
    """Do what the arguments say with this pack, in this folder. Raises CudaError."""
    if arguments.remove:
        cuda_download.remove(root)
        return _say("CUDA is removed. The engine computes on the processor from its next start.")
    if arguments.get:
        cuda_download.fetch(pack, root, ProgressLines(lines=arguments.stdio))
        return 0 if arguments.stdio else _say("CUDA is installed. Waggle uses it from its next start.")
    return _say(about(pack, root))


def about(pack: CudaPack, root: Path) -> str:
    """How much of the pack is here, and what to do next."""
    sizes = f"{pack.size / 1e9:.1f} GB to download, {pack.unpacked / 1e9:.1f} GB on the disk"
    match cuda_download.state_of(pack, root):
        case "here":
            return f"CUDA for torch {pack.torch} is in {cuda_download.folder_of(pack, root)}. `waggle cuda --remove` removes it."
        case "begun":
            return f"CUDA is here in part. `waggle cuda --get` continues ({sizes} in all), `--remove` removes it."
        case "offered":
            return f"An NVIDIA graphics card is here. `waggle cuda --get` downloads what computes on it: {sizes}. {SOURCE}"
        case _:
            return f"No driver of an NVIDIA graphics card was found. With one, `waggle cuda --get` gets CUDA: {sizes}. {SOURCE}"


class ProgressLines:
    """Prints the progress of a download at every percent: as JSON lines for a window, or for a person."""

    def __init__(self, *, lines: bool) -> None:
        self._lines, self._percent = lines, -1

    def __call__(self, here: int, total: int) -> None:
        if (percent := here * 100 // total) != self._percent:
            self._percent = percent
            _say(msgspec.json.encode((here, total)).decode() if self._lines else f"{percent}% of {total / 1e9:.1f} GB")


def _say(words: str) -> int:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()
    return 0
