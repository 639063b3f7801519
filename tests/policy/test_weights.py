"""Weight files in every precision, as torch reads and writes them."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from waggle.policy import weights


@pytest.fixture
def some() -> torch.Tensor:
    torch.manual_seed(0)
    ties = torch.tensor([1.00390625, 1.01171875, -1.00390625, 0.0, 1e-40, 3e38, 1.0])  # halfway between two of bfloat16's numbers
    return torch.cat((torch.randn(993) * 10 ** torch.linspace(-6, 4, 993), ties)).view(10, 100)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_written_is_what_torch_would_write(some, precision, tmp_path):
    weights.write({"a": some.numpy(), "b": some.numpy()[0]}, tmp_path / "ours", precision)
    found = load_file(tmp_path / "ours")
    assert torch.equal(found["a"], some.to(getattr(torch, precision)))
    assert torch.equal(found["b"], some[0].to(getattr(torch, precision)))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_what_torch_wrote_is_read_in_fp32(some, precision, tmp_path):
    stored = some.clamp(-6e4, 6e4).to(getattr(torch, precision))
    save_file({"a": stored}, tmp_path / "theirs")
    found = weights.read(tmp_path / "theirs")
    assert found["a"].dtype == np.float32
    np.testing.assert_array_equal(found["a"], stored.float().numpy())


def test_a_precision_that_is_none_of_ours_is_no_weight(tmp_path):
    save_file({"a": torch.zeros(2, dtype=torch.int64)}, tmp_path / "theirs")
    with pytest.raises(KeyError):
        weights.read(tmp_path / "theirs")
