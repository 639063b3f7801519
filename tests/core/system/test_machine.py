"""Test the limits of control groups with files in the kernel's form, and an affinity mask with a real one."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from waggle.core.system import machine

GB = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch) -> Path:
    """An empty hierarchy, with this process in /a/b."""
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN", tmp_path / "own")
    (tmp_path / "cgroup/a/b").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/a/b\n")
    return tmp_path / "cgroup"


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
def test_without_limits_all_of_the_computer_may_be_used(groups):
    write(groups / "a", memory__max="max\n", memory__current="123\n", cpu__max="max 100000\n")
    assert machine.available_memory() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert machine.total_memory() == psutil.virtual_memory().total
    assert machine.usable_cores() == len(os.sched_getaffinity(0))


def test_the_narrowest_group_decides(groups):
    """Of the processes in /a, 1 GB is free; /a/b alone may have more. Caches count as free."""
    write(
        groups / "a",
        memory__max=f"{3 * GB}\n",
        memory__current=f"{5 * GB // 2}\n",
        memory__stat=f"anon 1\ninactive_file {GB // 2}\n",
    )
    write(groups / "a/b", memory__max=f"{8 * GB}\n", memory__current=f"{GB}\n")
    assert machine.available_memory() == GB
    assert machine.total_memory() == 3 * GB


def test_a_full_group_has_nothing_left(groups):
    write(groups / "a/b", memory__max=f"{GB}\n", memory__current=f"{GB + 4096}\n")
    assert machine.available_memory() == 0


def test_a_quota_of_processor_time_counts_as_cores(groups):
    write(groups / "a", cpu__max="50000 100000\n")
    assert machine.usable_cores() == 1


def test_the_older_version_is_read_too(groups, tmp_path):
    (tmp_path / "own").write_text("4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n")
    (groups / "memory/a").mkdir(parents=True)
    write(
        groups / "memory/a",
        memory__limit_in_bytes=f"{2 * GB}\n",
        memory__usage_in_bytes=f"{GB}\n",
        memory__stat="total_inactive_file 0\n",
    )
    assert machine.available_memory() == GB


@pytest.mark.parametrize("content", ["", "nonsense", "0::/../..\n", "0::/gone\n"])
def test_what_cannot_be_read_sets_no_limit(groups, tmp_path, content):
    (tmp_path / "own").write_text(content)
    assert machine.total_memory() == psutil.virtual_memory().total


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system lets os set no affinity mask")
def test_an_affinity_mask_counts():
    ask = "import os; os.sched_setaffinity(0, {0}); from waggle.core.system import machine; print(machine.usable_cores())"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout == "1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="locks are files on Linux only")
@pytest.mark.parametrize(("options", "fault"), [("ro", "Read-only file system"), ("rw", "")])
def test_shared_memory_that_cannot_be_written_is_said(options, fault):
    code = "from waggle.core.system.machine import shared_memory_fault; print(shared_memory_fault())"
    words = f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$0" -c "$1"'
    ran = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", words, sys.executable, code],
        env=os.environ | {"PYTHONPATH": "app"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "mount" in ran.stderr or "unshare" in ran.stderr:
        pytest.skip("this computer makes no mount namespaces")
    assert ran.stdout.strip() == fault
