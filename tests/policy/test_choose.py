"""Opening a policy, and letting it go."""

import weakref

import pytest
import torch

from waggle import paths
from waggle.errors import ModelError
from waggle.policy.choose import let_go, open_policy


def test_a_model_that_nobody_uses_any_more_is_gone_before_the_next_one_is_measured():
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    circle: list[object] = [opened]
    circle.append(circle)
    policy = weakref.ref(opened.policy)
    del opened, circle
    let_go()
    assert policy() is None


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_device_that_is_not_here_is_refused_in_words(device):
    if getattr(torch, device).is_available():
        pytest.skip("it is here")
    with pytest.raises(ModelError, match=f"torch finds no device {device} here"):
        open_policy(paths.starter(), device=device, threads=1)
