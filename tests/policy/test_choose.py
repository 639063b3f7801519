"""Opening a policy, and letting it go."""

import weakref

import pytest
import torch

from waggle import paths
from waggle.errors import ModelError
from waggle.policy.choose import choose, let_go, open_policy


def test_a_model_that_nobody_uses_any_more_is_gone_before_the_next_one_is_measured():
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    circle: list[object] = [opened]
    circle.append(circle)
    policy = weakref.ref(opened.policy)
    del opened, circle
    let_go()
    assert policy() is None


def test_a_card_that_torch_counts_and_cannot_use_is_left_and_said(monkeypatch):
    """torch counts cards that are too old for its programs, and says so when the first one is used."""

    def too_old(*_: object, **__: object) -> None:
        raise RuntimeError(
            "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be late."
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GeForce GTX 1080")
    monkeypatch.setattr(torch, "arange", too_old)
    found, why = choose("auto"), "CUDA error: no kernel image is available for execution on the device"
    assert (found.device, found.reason) == ("cpu", f"GeForce GTX 1080 cannot be used: {why}")
    with pytest.raises(ModelError, match=f"torch cannot use the device cuda: {why}"):
        choose("cuda")


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_device_that_is_not_here_is_refused_in_words(device):
    if getattr(torch, device).is_available():
        pytest.skip("it is here")
    with pytest.raises(ModelError, match=f"torch finds no device {device} here"):
        open_policy(paths.starter(), device=device, threads=1)
