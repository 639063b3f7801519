"""Test that a model whose log-probs are no finite numbers is refused, on every path and in every training mode."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.tiny_kinds import make_kind
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models.backend import open_policy
from waggle.models.shared import weight_files
from waggle.models.shared.finite_rows import EXPONENTS, require_finite
from waggle.models.shared.pulse import has_pulse
from waggle.models.shared.training_mode import TrainingMode

EMBEDDING, UP = "model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """A model that the fast path computes, and one that only transformers computes; both with the tokenizer of the starter."""
    vocabulary = weight_files.arrays_by_name(paths.starter())[EMBEDDING].shape[0]
    generic = make_kind("smollm3", tmp_path_factory.mktemp("generic"), vocab_size=vocabulary)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(paths.starter() / name, generic)
    return {"fast": paths.starter(), "mlx": paths.starter(), "generic": generic}


def with_one_nan(arrays: dict[str, np.ndarray]) -> None:
    """One damaged number of the head, in the row of a token that the text hardly has: each log-prob is among all tokens."""
    arrays["lm_head.weight" if "lm_head.weight" in arrays else EMBEDDING][-1, 0] = np.nan


def with_infinity(arrays: dict[str, np.ndarray]) -> None:
    """As of a model that was stored in fp16, which ends at 65,504."""
    arrays[UP] = np.where(np.arange(arrays[UP].size).reshape(arrays[UP].shape) == 5, 1e6, arrays[UP]).astype(np.float16)


def with_overflow(arrays: dict[str, np.ndarray]) -> None:
    """Finite weights whose products are not."""
    arrays[UP] = np.full_like(arrays[UP], 3e38)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("damage", [with_one_nan, with_infinity, with_overflow])
@pytest.mark.parametrize(
    ("path", "method", "precision"),
    [
        ("fast", "full", "float32"), ("fast", "full", "bfloat16"), ("fast", "lean", "bfloat16"), ("fast", "lora", "bfloat16"),
        ("generic", "full", "float32"), ("generic", "lean", "bfloat16"), ("mlx", "full", "float32"), ("mlx", "lora", "bfloat16"),
    ],
)  # fmt: skip
def test_a_model_without_finite_numbers_is_refused(
    models, tmp_path, path, method, precision, damage: Callable[[dict[str, np.ndarray]], None]
):
    device = "cpu"
    if path == "mlx":
        pytest.importorskip("mlx.core")
        device = "mlx"
    training = TrainingMode(method, precision)
    folder = shutil.copytree(models[path], tmp_path / "model")
    opened = open_policy(folder, device=device, threads=1, training=training)
    assert has_pulse(opened.policy)
    arrays = {name: array.copy() for name, array in weight_files.load(folder / weight_files.WEIGHTS).items()}
    damage(arrays)
    weight_files.save(arrays, folder / weight_files.WEIGHTS)
    with pytest.raises(ModelError, match="The model's answers are no numbers") as caught:
        open_policy(folder, device=device, threads=1, training=training)
    assert "choose another model" in caught.value.advice


class Measured:
    """A policy with these log-probs."""

    training = TrainingMode()

    def __init__(self, bad: float | None, place: int) -> None:
        self._bad, self._place = bad, place

    def logprobs(self, texts, temperature):
        logp = np.full(sum(map(len, texts[0].completions)), -2.0, np.float32)
        if self._bad is not None:
            logp[self._place] = self._bad
        return [logp]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_single_log_prob_that_is_no_number_is_enough(bad, place):
    assert has_pulse(Measured(None, place))
    assert not has_pulse(Measured(bad, place))


@pytest.mark.parametrize("precision", ["F32", "BF16", "F16"])
def test_a_row_of_an_embedding_that_no_log_prob_shows_is_found(tmp_path, precision):
    folder = make_kind("llama", tmp_path, vocab_size=97)
    arrays = {name: weight_files.round_to(array, precision, np.random.default_rng(0)) for name, array in
              weight_files.load(folder / "model.safetensors").items()}  # fmt: skip
    assert "lm_head.weight" in arrays, "a head of its own"
    weight_files.save(arrays, folder / "model.safetensors")
    require_finite(folder, 97)
    bits = arrays[EMBEDDING].view(f"u{arrays[EMBEDDING].itemsize}")
    bits[-1, 0] = EXPONENTS[precision] + 1  # NaN
    weight_files.save(arrays, folder / "model.safetensors")
    with pytest.raises(ModelError, match="words that are no numbers"):
        require_finite(folder, 97)
