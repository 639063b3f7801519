"""What is this process's own, and not the computer's: limits of every kind, and surroundings that lack something."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from waggle.cli import doctor, main
from waggle.core import paths
from waggle.core.system import machine
from waggle.engine.control import server
from waggle.engine.control.server import EngineError

ROOT = Path(__file__).resolve().parents[3]
GB = 1 << 30
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers, control groups and /proc are of Linux")


@pytest.fixture
def groups(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN", tmp_path / "own")
    (tmp_path / "cgroup/cpu,cpuacct/docker/x").mkdir(parents=True)
    (tmp_path / "cgroup/memory").mkdir()
    (tmp_path / "own").write_text("4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n")
    return tmp_path / "cgroup"


@pytest.mark.parametrize(("quota", "cores"), [("100000", 1), ("-1", None), ("0", None)])
def test_a_quota_of_control_groups_of_version_1_counts(groups, quota, cores):
    folder = groups / "cpu,cpuacct/docker"
    (folder / "cpu.cfs_quota_us").write_text(quota)
    (folder / "cpu.cfs_period_us").write_text("100000")
    assert machine.usable_cores() == (cores or len(os.sched_getaffinity(0)))


def test_within_a_container_the_limit_stands_at_the_root_of_what_is_mounted_there(groups):
    (groups / "memory/memory.limit_in_bytes").write_text(str(2 * GB))
    (groups / "memory/memory.usage_in_bytes").write_text(str(GB))
    assert (machine.total_memory(), machine.available_memory()) == (2 * GB, GB)


def test_a_high_mark_is_a_limit(groups):
    (groups.parent / "own").write_text("0::/\n")
    for name, content in (("memory.max", "max"), ("memory.high", str(GB)), ("memory.current", "0")):
        (groups / name).write_text(content)
    assert machine.total_memory() == GB


def run(words: list[str], cwd: Path | None = None, prefix: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run Waggle with these environment variables alone, after a shell has done `prefix`."""
    command = f"{prefix}exec {sys.executable} -m waggle {' '.join(words)}"
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "app"), "LANG": "C.UTF-8", **environment}
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=variables, cwd=cwd, timeout=300, check=False)


def test_ulimit_bounds_the_memory_that_is_counted_on():
    code = "from waggle.core.system.machine import available_memory, total_memory; print(available_memory(), total_memory())"
    shell = f"ulimit -v 2000000; exec {sys.executable} -c '{code}'"
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "app")}
    )
    available, total = map(int, done.stdout.split())
    assert available < total == 2_048_000_000


def test_a_working_directory_that_was_removed_stops_nothing_and_is_said(tmp_path):
    (tmp_path / "gone").mkdir()
    done = run(
        ["identity", "renew", "--yes", "--home", str(tmp_path / "home")], tmp_path / "gone", f"rmdir {tmp_path / 'gone'}; "
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "home/identity.key").is_file()
    (tmp_path / "gone").mkdir()
    words = [f"{sys.executable} -c 'from waggle.core.system.machine import user_faults; print(user_faults())'"]
    code = f"rmdir {tmp_path / 'gone'}; exec {words[0]}"
    faults = subprocess.run(
        ["sh", "-c", code], cwd=tmp_path / "gone", capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "app")},
    )  # fmt: skip
    assert "working directory was removed" in faults.stdout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this computer can use."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to be a user without a name")
def test_a_user_without_home_and_name_is_told_and_works_with_a_chosen_home(open_folder):
    """As `docker run --user 54321`: no entry in passwd, no HOME."""
    code = (  # what it needs is imported first: the libraries may be closed to other users
        "import os, sys, filelock, platformdirs; from waggle.cli import identity; from waggle.cli.main import main, parser; "
        "parser(); os.setgid(54321); os.setuid(54321); sys.exit(main(sys.argv[1:]))"
    )
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "app")}

    def as_nobody(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=open_folder, check=False)

    refused = as_nobody("identity", "renew", "--yes")
    assert refused.returncode == 1
    assert "no home folder" in refused.stderr
    assert "--home" in refused.stderr
    assert not (open_folder / "~").exists(), "no folder with the name ~"
    accepted = as_nobody("identity", "renew", "--yes", "--home", str(open_folder / "home"))
    assert (accepted.returncode, accepted.stderr) == (0, "")


def test_a_home_that_is_a_link_is_used_and_one_that_leads_nowhere_is_said(tmp_path, capsys):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    (tmp_path / "lost").symlink_to(tmp_path / "unmounted")
    assert main.main(["identity", "--home", str(tmp_path / "link"), "renew", "--yes"]) == 0
    assert (tmp_path / "disk/identity.key").is_file()
    assert "a link to" in doctor._folder(paths.Home(tmp_path / "link")).says
    capsys.readouterr()
    assert main.main(["identity", "--home", str(tmp_path / "lost"), "renew", "--yes"]) == 1
    assert f"a link to {tmp_path / 'unmounted'}, which is not there" in capsys.readouterr().err
    assert not (tmp_path / "unmounted").exists()


@pytest.mark.parametrize(("what", "says"), [("fcntl.flock", "has no locks"), ("os.fsync", "cannot flush")])
def test_doctor_says_what_a_disk_lacks(tmp_path, monkeypatch, what, says):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(what, refuse)
    finding = doctor._folder(paths.Home(tmp_path).prepare())
    assert (finding.well, says in finding.says) == (False, True)
    assert not (tmp_path / machine.PROBE).exists()


@pytest.mark.parametrize("error", [OSError(37, "No locks available"), NotImplementedError("FileSystem does not support flock")])
def test_an_engine_on_a_disk_without_locks_says_so(tmp_path, monkeypatch, error):
    def refuse(*_a, **_k):
        raise error

    monkeypatch.setattr(server.FileLock, "acquire", refuse)
    with pytest.raises(EngineError, match="has no locks"):
        server.claim_home(paths.Home(tmp_path).prepare())


def test_doctor_shows_each(tmp_path):
    home = paths.Home(tmp_path).prepare()
    says = " ".join(check(home).says for check in (doctor._computer, doctor._surroundings, doctor._folder))
    for part in ("cores", "memory", "home folder", "working directory", "flushed and locked", "GB are free"):
        assert part in says
