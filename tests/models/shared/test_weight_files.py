"""Weight files in every precision, as torch reads and writes them."""

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from waggle.models.shared import weight_files


@pytest.fixture
def some() -> torch.Tensor:
    torch.manual_seed(0)
    ties = torch.tensor([1.00390625, 1.01171875, -1.00390625, 0.0, 1e-40, 3e38, 1.0])  # halfway between two of bfloat16's numbers
    return torch.cat((torch.randn(993) * 10 ** torch.linspace(-6, 4, 993), ties)).view(10, 100)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_what_torch_wrote_is_read_as_it_is_and_written_so_that_torch_reads_it(some, precision, tmp_path):
    weights = some.clamp(-6e4, 6e4).to(getattr(torch, precision))
    save_file({"a": weights, "b": weights[0, :3].clone()}, tmp_path / "theirs")
    arrays = weight_files.load(tmp_path / "theirs")
    np.testing.assert_array_equal(weight_files.as_fp32(arrays["a"]), weights.float().numpy())
    weight_files.save(arrays, tmp_path / "ours")
    tensors = load_file(tmp_path / "ours")
    assert torch.equal(tensors["a"], weights)
    assert torch.equal(tensors["b"], weights[0, :3])


def test_arrays_of_several_precisions_stand_in_one_file(some, tmp_path):
    """Each array starts at a multiple of its item size, which programs that map the file require."""
    bits = some[0, :3].bfloat16()
    weight_files.save({"a": bits.view(torch.uint16).numpy(), "b": some.numpy()}, tmp_path / "ours")
    tensors = load_file(tmp_path / "ours")
    assert torch.equal(tensors["a"], bits)
    assert torch.equal(tensors["b"], some)
    assert all(entry.offset % 4 == 0 for entry in weight_files.arrays_in(tmp_path / "ours").values())


@pytest.mark.parametrize(("precision", "kind", "scale"), [("BF16", torch.bfloat16, 1e-5), ("F16", torch.float16, 1e-6)])
def test_rounded_to_fewer_bits_small_steps_are_there_on_average_and_what_fits_stays(precision, kind, scale):
    noise = np.random.default_rng(0)
    before = torch.tensor(noise.normal(size=(1000, 100), scale=0.02)).to(kind).float().numpy()
    step = noise.normal(size=before.shape, scale=scale).astype(np.float32)
    after = weight_files.as_fp32(weight_files.round_to(before + step, precision, noise))
    survives = float(((after - before) * step).sum() / (step * step).sum())
    assert survives == pytest.approx(1.0, abs=0.1)
    nearest = torch.tensor(before + step).to(kind).float().numpy()
    assert float(((nearest - before) * step).sum() / (step * step).sum()) < 0.6
    assert np.array_equal(weight_files.as_fp32(weight_files.round_to(before, precision, noise)), before)


def test_a_precision_that_is_none_of_ours_is_no_weight(tmp_path):
    save_file({"a": torch.zeros(2, dtype=torch.int64)}, tmp_path / "theirs")
    with pytest.raises(SafetensorError, match="I64"):
        weight_files.load(tmp_path / "theirs")
