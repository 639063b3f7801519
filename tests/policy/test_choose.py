"""Opening a policy, and letting it go."""

import weakref

from waggle import paths
from waggle.policy.choose import let_go, open_policy


def test_a_model_that_nobody_uses_any_more_is_gone_before_the_next_one_is_measured():
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    circle: list[object] = [opened]
    circle.append(circle)
    policy = weakref.ref(opened.policy)
    del opened, circle
    let_go()
    assert policy() is None
