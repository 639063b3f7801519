"""A crowd in one address range counts as one party, whatever its number of names: with public addresses, over real hivemind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostile import crowd

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.privileged
def test_a_crowd_of_one_address_range_fills_a_quarter_of_the_pool_and_pushes_nobody_out() -> None:
    words = [f"ip address add {address}/32 dev lo" for address in crowd.ADDRESSES]
    inside = " && ".join(["ip link set lo up", *words, 'exec "$@"'])
    if shutil.which("unshare") is None or shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root, `ip` and `unshare`")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", inside, "sh", sys.executable, str(Path(crowd.__file__))],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'app'}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["kept"][f"{crowd.RANGE}.0/24"] == 64
    assert report["honest"] == 20
