"""The CUDA pack: offered if there is a card, downloaded with interruptions, checked, used and removed."""

import argparse
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import system_folders
from models.local_hub import Hub, local_hub, no_hub
from waggle.cli import cuda
from waggle.core import cuda_download, resumable_download
from waggle.core.cuda_download import CudaPack, Wheel, fetch
from waggle.core.errors import CudaError
from waggle.core.resumable_download import PIECE

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "bees/cuda"
TORCH = "torch-9.9.9-cp311-cp311-manylinux_2_28_x86_64.whl"
LIBRARY = "nvidia_cublas-13.1-py3-none-manylinux_2_27_x86_64.whl"


def wheel_of(files: dict[str, bytes]) -> bytes:
    """An archive without compression, so that it is as long as its files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, inside in files.items():
            packed.writestr(name, inside)
    return content.getvalue()


FILES = {
    TORCH: wheel_of({"torch/__init__.py": b"ORIGIN = 'the pack'\n", "torch/lib/libtorch.so": b"#" * (6 * PIECE)}),
    LIBRARY: wheel_of({"nvidia/cu13/lib/libcublas.so": b"machine code"}),
}


@pytest.fixture
def index() -> Iterator[Hub]:
    with local_hub() as hub:
        hub.repositories[REPOSITORY] = dict(FILES)
        yield hub


def pack_at(endpoint: str) -> CudaPack:
    wheels = (
        Wheel(f"{endpoint}/cdn/{REPOSITORY}/{name}", hashlib.sha256(content).hexdigest(), len(content))
        for name, content in FILES.items()
    )
    return CudaPack("9.9.9", "3.11", "linux", "x86_64", sum(map(len, FILES.values())), tuple(wheels))


def quiet(_here: int, _total: int) -> None:
    pass


def test_what_has_come_is_checked_unpacked_and_told(index: Hub, tmp_path: Path) -> None:
    pack, progress = pack_at(index.endpoint), list[tuple[int, int]]()
    assert cuda_download.state_of(pack, tmp_path) == ("offered" if cuda_download.DRIVER.exists() else "")
    folder = fetch(pack, tmp_path, lambda here, total: progress.append((here, total)))
    assert cuda_download.state_of(pack, tmp_path) == "here"
    assert {path.name for path in folder.iterdir()} == {"torch", "nvidia"}
    assert (folder / "torch/__init__.py").read_bytes() == b"ORIGIN = 'the pack'\n"
    assert progress[-1] == (pack.size, pack.size)
    assert [here for here, _ in progress] == sorted(here for here, _ in progress)
    assert {path.name for path in tmp_path.iterdir()} - {".lock"} == {"9.9.9"}, "nothing is kept twice"
    requests_before = len(index.requests)
    assert fetch(pack, tmp_path, quiet) == folder
    assert len(index.requests) == requests_before, "everything is here: the network is left alone"


def test_what_counts_as_there_is_on_the_disk_before_it_counts(
    index: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files must be synced before they are marked as done: after a power failure they could be empty."""
    place, written = tmp_path / ".downloading-9.9.9", list[tuple[set[str], set[str]]]()

    def sync() -> None:
        written.append(({path.name for path in (place / "site").iterdir()}, {path.name for path in place.glob("*.done")}))

    monkeypatch.setattr(os, "sync", sync, raising=False)
    fetch(pack_at(index.endpoint), tmp_path, quiet)
    assert written == [({"torch"}, set()), ({"torch", "nvidia"}, {f"{TORCH}.done"})]


def test_a_download_killed_in_the_middle_goes_on_where_it_was(index: Hub, tmp_path: Path) -> None:
    index.hold[TORCH] = 3 * PIECE
    pack = pack_at(index.endpoint)
    child = """
import sys
from pathlib import Path
import msgspec
from waggle.core.cuda_download import CudaPack, fetch
fetch(msgspec.json.decode(sys.argv[1], type=CudaPack), Path(sys.argv[2]), lambda here, total: print(here, flush=True))
"""
    command = [sys.executable, "-c", child, msgspec.json.encode(pack).decode(), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 2 * PIECE:
                break
        process.kill()
    assert cuda_download.state_of(pack, tmp_path) == "begun"
    size_on_disk = (tmp_path / ".downloading-9.9.9" / f"{TORCH}.part").stat().st_size
    del index.hold[TORCH]
    fetch(pack, tmp_path, quiet)
    assert [request.range for request in index.requests_for(TORCH)] == ["", f"bytes={size_on_disk}-"]
    assert cuda_download.state_of(pack, tmp_path) == "here"


def test_a_connection_that_breaks_and_an_index_without_ranges_cost_time_only(index: Hub, tmp_path: Path) -> None:
    index.cut[TORCH], index.knows_range = [2 * PIECE], False
    folder = fetch(pack_at(index.endpoint), tmp_path, quiet)
    assert (folder / "torch/lib/libtorch.so").stat().st_size == 6 * PIECE


def test_a_file_that_arrives_damaged_is_fetched_once_more_and_never_used(index: Hub, tmp_path: Path) -> None:
    pack = pack_at(index.endpoint)
    index.damage[LIBRARY] = 2
    with pytest.raises(CudaError, match="arrived damaged, twice"):
        fetch(pack, tmp_path, quiet)
    assert cuda_download.state_of(pack, tmp_path) == "begun"
    index.damage[LIBRARY] = 1
    fetch(pack, tmp_path, quiet)
    assert len(index.requests_for(TORCH)) == 1, "what was whole is not fetched again"


@pytest.mark.parametrize(
    "what", ["nobody answers", "it is gone", "a page to log in", "it leads in circles", "the disk is too small"]
)
def test_what_goes_wrong_is_said_and_loses_nothing(
    index: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(resumable_download.time, "sleep", lambda _seconds: None)
    pack = pack_at(index.endpoint)
    words = {
        "nobody answers": "cannot be reached",
        "it is gone": "answered 404",
        "a page to log in": "log in first",
        "it leads in circles": "in circles",
        "the disk is too small": "GB free",
    }[what]
    index.circles = what == "it leads in circles"
    with no_hub() as nowhere:
        if what == "nobody answers":
            pack = pack_at(nowhere)
        elif what == "it is gone":
            pack = msgspec.structs.replace(pack, wheels=(Wheel(f"{index.endpoint}/gone.whl", "0" * 64, 9),))
        elif what == "a page to log in":
            index.trouble = 511
            pack = msgspec.structs.replace(pack, wheels=(Wheel(f"{index.endpoint}/api/models/{REPOSITORY}", "0" * 64, 9),))
        elif what == "the disk is too small":
            pack = msgspec.structs.replace(pack, unpacked=10**18)
        with pytest.raises(CudaError, match=words) as caught:
            fetch(pack, tmp_path, quiet)
    assert caught.value.advice.endswith(".")


def test_an_older_pack_goes_when_a_newer_one_has_come(index: Hub, tmp_path: Path) -> None:
    (tmp_path / "9.9.8/torch").mkdir(parents=True)
    fetch(pack_at(index.endpoint), tmp_path, quiet)
    assert not (tmp_path / "9.9.8").exists()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11) or sys.platform != "linux", reason="the pack is for another Python")
def test_the_installed_app_imports_torch_from_the_pack(tmp_path: Path) -> None:
    torch = tmp_path / "waggle/cuda" / cuda_download.shipped_pack().torch / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("ORIGIN = 'the pack'", encoding="utf-8")
    code = "import sys; sys.frozen = True; from waggle.core.cuda_download import use; use(); import torch; print(torch.ORIGIN)"
    places = {"PYTHONPATH": os.pathsep.join(sys.path), system_folders.CACHE: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True, check=True)
    assert done.stdout == "the pack\n"


def test_the_door_says_gets_and_removes(index: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack, root = pack_at(index.endpoint), tmp_path / "cuda"

    def output_of(**options: bool) -> str:
        arguments = {"get": False, "remove": False, "stdio": False, **options}
        assert cuda.run_on(pack, root, argparse.Namespace(**arguments)) == 0
        return capsys.readouterr().out

    assert "0.0 GB to download" in output_of()
    assert output_of(get=True).endswith("CUDA is installed. Waggle uses it from its next start.\n")
    assert "waggle cuda --remove" in output_of()
    assert "CUDA is removed" in output_of(remove=True)
    assert not root.exists()
    last = msgspec.json.decode(output_of(get=True, stdio=True).splitlines()[-1])
    assert last == [pack.size, pack.size]


def test_the_list_that_ships_is_of_the_locked_torch_and_complete() -> None:
    pack = cuda_download.shipped_pack()
    locked = re.search(r"^torch==(\S+)", (ROOT / "packaging/lock.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert locked is not None
    assert pack.torch == locked[1], "run packaging/cuda_list.py"
    names = {wheel.name.split("-")[0] for wheel in pack.wheels}
    assert {"torch", "nvidia_cublas", "nvidia_cudnn_cu13", "nvidia_nccl_cu13"} <= names
    assert all(wheel.url.startswith("https://files.pythonhosted.org/packages/") for wheel in pack.wheels)
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert f'python-version: "{pack.python}"' in workflow


def test_a_waggle_from_its_source_offers_nothing() -> None:
    """A checkout uses pip's torch, which includes CUDA on Linux."""
    assert not cuda_download.fits(cuda_download.shipped_pack())
    assert cuda_download.why_unusable() == ""
    with pytest.raises(CudaError, match="installed Waggle"):
        cuda.run(argparse.Namespace(get=True, remove=False, stdio=False))
