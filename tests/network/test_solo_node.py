"""A solo node has what a round and the engine use of a swarm node."""

import pytest

from network.loopback import judged
from waggle.core.errors import EngineError
from waggle.network.solo_node import SoloNode


async def test_alone_nothing_is_shared_and_nothing_comes() -> None:
    solo = SoloNode()
    assert solo.share(1, 2, [judged(1, 1).group], "starter") == (0, 0)
    solo.take([judged(1, 1)])
    assert solo.waiting() == ()
    assert solo.outbox.newest() == ()
    assert await solo.addresses() == []
    await solo.run()
    with pytest.raises(EngineError, match="no peers in a swarm of one"):
        solo.choose(bytes(38), "muted")
