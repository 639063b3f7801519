"""A solo node has the methods of a swarm node."""

from network.loopback import judged
from waggle.network.solo_node import SoloNode


async def test_alone_nothing_is_shared_and_nothing_comes() -> None:
    solo = SoloNode()
    await solo.start()
    assert solo.share(1, 2, [judged(1, 1).group], "starter") == (0, 0)
    solo.take([judged(1, 1)])
    assert solo.waiting() == ()
    await solo.run()
    await solo.close()
