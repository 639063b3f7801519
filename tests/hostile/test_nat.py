"""A node behind a router that blocks incoming calls is called through its seed, within seconds and without any setting."""

from pathlib import Path

import pytest

from hostile import nat


@pytest.mark.privileged
def test_a_node_behind_a_router_that_blocks_calls_is_called_through_the_seed(tmp_path: Path) -> None:
    if reason := nat.why_not():
        pytest.skip(reason)
    met = nat.meet(tmp_path)
    assert met.address.startswith(f"/ip4/{nat.SEED}/")
    assert "/p2p-circuit/" in met.address
