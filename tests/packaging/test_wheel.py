"""The wheel, installed outside the source: what `pipx install` gives a user."""

import email
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import version

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_it_holds_the_starter_the_look_and_nothing_of_the_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("starter/model.safetensors", "audit.jsonl", "look/tokens.toml", "look/icons/home.svg", "waggle.svg"):
        assert f"waggle/resources/{name}" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"waggle", "waggle_lab"}
    assert not [name for name in names if "test" in name.lower() and not name.endswith("selftest.py")]


def test_it_has_the_version_of_the_source_and_names_the_licences_of_all_it_holds(wheel):
    packed = zipfile.ZipFile(wheel)
    metadata = email.message_from_bytes(packed.read(next(name for name in packed.namelist() if name.endswith("/METADATA"))))
    assert metadata["Version"] == version.of_source()
    assert metadata["License-Expression"] == "Apache-2.0 AND OFL-1.1"
    assert len(metadata.get_all("License-File")) == 3
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier")


def test_installed_in_an_environment_of_its_own_it_finds_what_ships_with_it(wheel, tmp_path):
    venv.create(tmp_path / "v", symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "v"), "platbase": str(tmp_path / "v")}))
    # the dependencies, which are already installed
    (site / "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "from waggle.cli import main as cli; from waggle.core import paths; "
        "print(paths.resources(), paths.starter().is_dir()); cli.main(['--version'])"
    )
    output = subprocess.run([tmp_path / "v/bin/python", "-c", code], capture_output=True, text=True, check=True, env={})
    assert output.stdout.splitlines()[0] == f"{site / 'waggle/resources'} True"
    assert output.stdout.splitlines()[1].startswith("waggle 0.")
