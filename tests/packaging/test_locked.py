"""Every package of every platform is locked, also those that only Windows or a Mac needs."""

import importlib.util
import sys

import locked
import pytest

MATRIX = [(platform, python) for platform in locked.PLATFORMS for python in locked.PYTHONS]


@pytest.mark.parametrize(("platform", "python"), MATRIX, ids=lambda each: getattr(each, "target", each))
def test_everything_that_a_platform_resolves_is_locked(platform, python):
    names = locked.resolved(platform, python)
    assert not names - locked.versions().keys()


def test_the_resolution_follows_markers_of_other_platforms():
    windows, mac = (
        set.union(*(locked.resolved(platform, python) for python in locked.PYTHONS))
        for platform in (locked.WINDOWS, next(each for each in locked.PLATFORMS if each.sys_platform == "darwin"))
    )
    assert "colorama" in windows
    if importlib.util.find_spec("PyInstaller") is not None:  # the packer of the installers, which no test needs
        assert {"pywin32-ctypes", "pefile", "setuptools"} <= windows
        assert "macholib" in mac
    assert not {"pycosat", "hivemind", "secretstorage"} & windows
    assert "hivemind" in mac
    if sys.platform != "win32":  # where mlx is not installed, which says that it depends on mlx-metal
        assert "mlx-metal" in mac
    assert "pefile" not in mac
    assert "sympy" in windows, "reasoning-gym's own, without reasoning-gym"


def test_each_package_has_a_single_locked_version():
    lines = locked.LOCK.read_text(encoding="utf-8").split()
    assert len({locked.normalised(line.partition("==")[0]) for line in lines}) == len(lines)
    assert all(line.count("==") == 1 for line in lines)
