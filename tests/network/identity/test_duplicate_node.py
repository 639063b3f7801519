"""A duplicate of our identity is detected, and an earlier run of this node is not mistaken for one."""

from waggle.network.identity.duplicate_node import DuplicateNodeDetector


def test_a_twin_that_goes_on_announcing_is_noticed_once():
    mine = 1000
    twins = DuplicateNodeDetector(lambda: mine)
    messages = []
    for expires in (900, 1000, 1500, 1500, 2500, 3500):
        messages.append(twins.observe(expires))
        mine = max(mine, 1200)
    assert messages == [False, False, False, False, True, False]


def test_what_we_announced_ourselves_before_the_clock_was_set_back_is_no_twin():
    twins = DuplicateNodeDetector(lambda: 1000)
    assert not any(twins.observe(5000) for _ in range(100))


def test_before_the_first_announcement_nothing_can_be_known():
    twins = DuplicateNodeDetector(lambda: 0)
    assert not any(twins.observe(expires) for expires in (1, 2, 3))
