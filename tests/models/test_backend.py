"""Open and close a policy."""

import json
import shutil
import weakref
from functools import partial
from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models.backend import choose_device, open_policy, release_memory
from waggle.models.shared import model_config

STARTER_TOKENS = model_config.read(paths.starter()).vocab_size


def test_a_model_that_nobody_uses_any_more_is_gone_before_the_next_one_is_measured():
    opened = open_policy(paths.starter(), device="cpu", threads=1)
    circle: list[object] = [opened]
    circle.append(circle)
    policy = weakref.ref(opened.policy)
    del opened, circle
    release_memory()
    assert policy() is None


def test_a_card_that_torch_counts_and_cannot_use_is_left_and_said(monkeypatch):
    """torch also counts cards that are too old for its kernels; it only fails when the card is used."""

    def too_old(*_: object, **__: object) -> None:
        raise RuntimeError(
            "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be late."
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GeForce GTX 1080")
    monkeypatch.setattr(torch, "arange", too_old)
    choice, why = choose_device("auto"), "CUDA error: no kernel image is available for execution on the device"
    assert (choice.device, choice.reason) == ("cpu", f"GeForce GTX 1080 cannot be used: {why}")
    with pytest.raises(ModelError, match=f"torch cannot use the device cuda: {why}"):
        choose_device("cuda")


def one_too_many(folder: Path, *, special: bool) -> None:
    """Add a token beyond the last row of the embedding."""
    shutil.copytree(paths.starter(), folder, dirs_exist_ok=True)
    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    token = AddedToken("<more>", special=special)
    words.add_special_tokens([token]) if special else words.add_tokens([token])
    assert words.token_to_id("<more>") == json.loads((folder / "config.json").read_text())["vocab_size"]
    words.save(str(folder / "tokenizer.json"))


def stops_beyond(folder: Path) -> None:
    shutil.copytree(paths.starter(), folder, dirs_exist_ok=True)
    (folder / "generation_config.json").write_text('{"eos_token_id": 100000}')


def begins_beyond(folder: Path) -> None:
    one_too_many(folder, special=True)
    (folder / "chat_template.jinja").write_text("<more>{{ messages[0].content }}")


@pytest.mark.parametrize("odd", [partial(one_too_many, special=False), stops_beyond, begins_beyond])
def test_words_beyond_the_embedding_are_refused_for_a_strangers_text_would_end_the_engine(tmp_path, odd):
    odd(tmp_path)
    with pytest.raises(ModelError, match=f"do not fit it: it has {STARTER_TOKENS} tokens"):
        open_policy(tmp_path, device="cpu", threads=1)


def test_a_special_token_beyond_the_embedding_that_no_text_can_hold_does_no_harm(tmp_path):
    """Fine-tunes have this: a padding token that was never trained."""
    one_too_many(tmp_path, special=True)
    assert open_policy(tmp_path, device="cpu", threads=1).tokenizer.encode("<more>").max() < STARTER_TOKENS


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_device_that_is_not_here_is_refused_in_words(device):
    if getattr(torch, device).is_available():
        pytest.skip("it is here")
    with pytest.raises(ModelError, match=f"torch finds no device {device} here"):
        open_policy(paths.starter(), device=device, threads=1)
