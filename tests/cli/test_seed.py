"""The seed works in a home of its own, and asks for as many open files as this system grants."""

import sys

import pytest

from waggle.cli import main, seed
from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.engine.control import server

resource = pytest.importorskip("resource", reason="Windows has no such limit")


@pytest.mark.parametrize("granted", [24_576, 10_240, 256])
def test_a_kernel_that_grants_fewer_open_files_than_its_limit_says_is_no_end(monkeypatch, granted):
    """As a Mac does, whose hard limit is no limit: `kern.maxfilesperproc` is what counts."""
    limits = [(256, resource.RLIM_INFINITY)]

    def setrlimit(_which, requested):
        if requested[0] > granted:
            raise ValueError("current limit exceeds maximum limit")
        limits.append(requested)

    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    seed._allow_many_connections()
    assert limits[-1] == (granted, resource.RLIM_INFINITY)


@pytest.mark.skipif(sys.platform == "darwin", reason="the kernel may grant less")
def test_as_many_files_as_the_limit_allows_may_be_open():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        seed._allow_many_connections()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(before[1], 65_536), before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_home_in_which_another_one_works_is_refused(tmp_path, capsys):
    claimed = server.claim_home(paths.Home(tmp_path).prepare())
    try:
        assert main.main(["seed", "--home", str(tmp_path)]) == 1
    finally:
        claimed.release()
    assert capsys.readouterr().err.startswith("waggle: Another engine, or a seed, is running for this folder.\n")
    assert not (tmp_path / "identity.key").exists()


def test_a_host_that_is_no_address_of_this_computer_is_named(tmp_path):
    with pytest.raises(SwarmError, match=r"192\.0\.2\.1 cannot be listened on: "):
        seed._port_of_old(paths.Home(tmp_path), "192.0.2.1")
    assert not (tmp_path / "seed_port").exists()
