"""The torch policy against plain autograd on separate sequences, for every architecture."""

import ctypes
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.tiny_models import KINDS, as_transformers, make_model
from waggle.core.errors import MemoryShort, ModelError
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.torch import linear, packing
from waggle.models.torch import model as causal_lm
from waggle.models.torch.memory import memory_errors
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup
from waggle.rl.random_streams import uniforms

STOP = 1
SMAPS = Path("/proc/self/smaps")  # of Linux: a line of flags for each piece of memory
LARGE_PAGES = """
import re
import torch
import waggle.models.torch.policy
tensor = torch.ones(4 << 20)
for piece in re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read()):
    first, last = (int(end, 16) for end in piece.split(" ", 1)[0].split("-"))
    if first <= tensor.data_ptr() < last:
        print(re.search("VmFlags:(.*)", piece)[1])
"""


@pytest.fixture(params=sorted(KINDS))
def policy(request, tmp_path) -> TorchPolicy:
    return TorchPolicy(make_model(request.param, tmp_path))


@pytest.fixture
def plain(policy, tmp_path) -> Any:
    return as_transformers(policy, tmp_path)


@pytest.fixture
def llama(tmp_path) -> TorchPolicy:
    return TorchPolicy(make_model("llama", tmp_path))


def prompts(count: int = 5) -> list[np.ndarray]:
    noise = np.random.default_rng(0)
    return [noise.integers(2, 97, 3 + 9 * i).astype(np.int32) for i in range(count)]


def sample(policy: TorchPolicy, some, *, group_size: int = 4, seed: int = 1, **params):
    noise = uniforms(seed, "sample", 0, len(some), group_size, 12)
    return policy.sample(some, noise, SamplingParams(max_new=12, stops=(STOP,), **params))


def separate_logprobs(model, prompt, tokens) -> torch.Tensor:
    """The log-probs of one sequence, without cache or packing."""
    ids = torch.tensor(np.concatenate([prompt, tokens]), dtype=torch.long)[None]
    scores = torch.log_softmax(model(input_ids=ids).logits[0, :-1], -1)
    return scores.gather(-1, ids[0, 1:, None])[len(prompt) - 1 :, 0]


def batch_of(prompt, row, returns: float | None = None) -> TrainingGroup:
    """A group whose advantages and weights differ from token to token, so that an off-by-one error shows."""
    completions = tuple(completion.tokens for completion in row)
    count = sum(map(len, completions))
    advantage = np.linspace(-1, 1, count).astype(np.float32)
    weight = (np.linspace(0.5, 1.5, count) / count).astype(np.float32)
    goals = None if returns is None else np.full(count, returns, np.float32)
    return TrainingGroup(prompt, completions, advantage, weight, returns=goals)


def test_sampling_logprobs_and_plain_recomputation_agree(policy, plain):
    for prompt, row in zip(prompts(), sample(policy, prompts()), strict=True):
        (flat,) = policy.logprobs([batch_of(prompt, row)], 1.0)
        for completion, packed in zip(
            row, np.split(flat, np.cumsum([len(completion.tokens) for completion in row])[:-1]), strict=True
        ):
            expected = separate_logprobs(plain, prompt, completion.tokens).detach().numpy()
            np.testing.assert_allclose(packed, expected, atol=2e-5)
            np.testing.assert_allclose(completion.logp, expected, atol=2e-5)


def test_attention_may_come_laid_out_as_cuda_lays_it(llama, monkeypatch):
    """There, the heads of one position lie side by side, where a mask is given."""
    here = packing.F.scaled_dot_product_attention
    expected, expected_step = sample(llama, prompts(2)), gradient_norm(llama)

    def there(*parts, **more):
        return here(*parts, **more).transpose(1, 2).contiguous().transpose(1, 2)

    monkeypatch.setattr(packing.F, "scaled_dot_product_attention", there)
    rows = sample(llama, prompts(2))
    for completion, two in zip(chain.from_iterable(expected), chain.from_iterable(rows), strict=True):
        np.testing.assert_array_equal(completion.tokens, two.tokens)
    assert gradient_norm(llama) == pytest.approx(expected_step, rel=1e-5)


def gradient_norm(policy: TorchPolicy) -> float:
    (prompt,) = prompts(1)
    (row,) = sample(policy, [prompt])
    return policy.step([batch_of(prompt, row)], StepParams(learning_rate=0.0)).gradient_norm


def test_the_packed_group_gives_the_gradient_of_separate_sequences(policy, plain):
    (prompt,) = prompts(3)[2:]
    (row,) = sample(policy, [prompt])
    batch = batch_of(prompt, row)
    policy._forget_gradient()
    policy._learn([batch], StepParams(learning_rate=0.0))
    packed = {name: parameter.grad.clone() for name, parameter in policy._parameters.items()}
    policy._forget_gradient()
    pulls = np.split(batch.advantage * batch.weight, np.cumsum([len(ids) for ids in batch.completions])[:-1])
    for tokens, pull in zip(batch.completions, pulls, strict=True):
        # at ratio 1 the gradient of the clipped objective is that of -A * w * logp
        (-torch.tensor(pull) * separate_logprobs(plain, prompt, tokens)).sum().backward()
    for name, parameter in policy._parameters.items():
        scale = parameter.grad.abs().max()
        assert (packed[name] - parameter.grad).abs().max() <= 1e-6 + 2e-5 * scale, name


def test_groups_of_one_pass_give_the_gradient_of_groups_one_by_one_and_in_pieces(llama):
    rows = sample(llama, prompts(5))
    batches = [batch_of(prompt, row[: 2 + i % 3], 5) for i, (prompt, row) in enumerate(zip(prompts(5), rows, strict=True))]
    gradients, likely = [], []
    for room in (1 << 20, 80, 1):  # all together, some together, every completion alone
        llama._batch_size.room = room
        llama._gradient(batches, StepParams(learning_rate=0.0))
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in llama._parameters.values()]).clone())
        likely.append(np.concatenate(llama.logprobs(batches, 0.8)))
    for gradient, scores in zip(gradients[1:], likely[1:], strict=True):
        torch.testing.assert_close(gradients[0], gradient, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(likely[0], scores, atol=1e-5)


def test_the_chunked_head_gives_the_same_gradient_as_the_whole_one(llama, monkeypatch):
    (prompt,) = prompts(1)
    (row,) = sample(llama, [prompt])
    gradients = []
    for elements in (1 << 24, 97 * 5):
        monkeypatch.setattr(TrainingMode, "logits_at_once", elements)
        llama._forget_gradient()
        llama._learn([batch_of(prompt, row)], StepParams(learning_rate=0.0))
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in llama._parameters.values()]).clone())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-5, atol=1e-7)


@pytest.mark.skipif(not linear.can_pack(torch.float32), reason="where torch packs no weights, they serve as they are")
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_large_head_is_made_ready_in_pieces_between_which_one_can_pause(precision, monkeypatch):
    noise = torch.Generator().manual_seed(0)
    weight, x = torch.randn(1001, 64, generator=noise), torch.randn(3, 64, generator=noise).to(precision)
    monkeypatch.setattr(linear, "READY_FROM", 1)
    monkeypatch.setattr(linear, "PIECE", 64 * 300)
    pauses = []
    ready = linear.ready_pieces(weight, precision, 3, lambda: pauses.append(1))
    assert ready is not None
    assert len(pauses) == 4
    torch.testing.assert_close(ready(x), torch.nn.functional.linear(x, weight.to(precision)))


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(policy):
    some = prompts(4)
    noise = uniforms(1, "sample", 0, 4, 3, 12)
    together = policy.sample(some, noise, SamplingParams(max_new=12, stops=(STOP,)))
    for i, prompt in enumerate(some):
        (alone,) = policy.sample([prompt], noise[i * 3 : i * 3 + 3], SamplingParams(max_new=12, stops=(STOP,)))
        for completion, other in zip(together[i], alone, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)


def test_learning_makes_a_rewarded_stop_token_likelier(llama):
    (prompt,) = prompts(1)
    tokens = (np.array([5, STOP], np.int32), np.array([5, 6, 7], np.int32))
    advantage, weight = np.array([1, 1, -1, -1, -1], np.float32), np.array([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6], np.float32)
    batch = TrainingGroup(prompt, tokens, advantage, weight)
    before = llama.logprobs([batch], 1.0)[0][1]
    for _ in range(5):
        llama.step([batch], StepParams(learning_rate=1e-2))
    assert llama.logprobs([batch], 1.0)[0][1] > before + 0.1
    assert llama.steps == 5


@pytest.mark.parametrize("returns", [None, 0.5])
def test_a_saved_state_goes_on_bit_for_bit(llama, tmp_path, returns):
    (prompt,) = prompts(1)
    (row,) = sample(llama, [prompt])
    llama.step([batch_of(prompt, row)], StepParams(learning_rate=1e-3))  # the value head is a step younger than the model
    batches = [batch_of(prompt, row, returns)]
    llama.step(batches, StepParams(learning_rate=1e-3))
    weights, moments = llama.state()
    weights, moments = ({name: array.copy() for name, array in state.items()} for state in (weights, moments))
    other = TorchPolicy(tmp_path)
    other.restore(weights, moments, llama.steps)
    for each in (llama, other):
        each.step(batches, StepParams(learning_rate=1e-3))
    for first, two in zip(llama.state(), other.state(), strict=True):
        assert first.keys() == two.keys()
        assert all(np.array_equal(array, two[name]) for name, array in first.items())
    assert ("critic.steps" in llama.state()[1]) is (returns is not None)


def test_the_weights_hold_no_value_head_so_that_any_program_reads_them(llama):
    (prompt,) = prompts(1)
    (row,) = sample(llama, [prompt])
    before = llama.state()[0].keys()
    llama.step([batch_of(prompt, row, 0.5)], StepParams(learning_rate=1e-3))
    assert llama.state()[0].keys() == before


def test_the_value_head_learns_what_each_completion_brings(llama):
    (prompt,) = prompts(1)
    tokens = (np.array([5, STOP], np.int32), np.array([8, 6, 7], np.int32))
    returns = np.array([1, 1, 0, 0, 0], np.float32)
    batch = TrainingGroup(prompt, tokens, np.zeros(5, np.float32), np.full(5, 0.2, np.float32), returns=returns)
    (untaught,) = llama.values([batch])
    np.testing.assert_array_equal(untaught, np.zeros(5))
    # a head of zeros: the first loss is share / 2 * sum(w * returns^2) = .1 / 2 * .2 * 2, and has no gradient in the model
    first = llama.step([batch], StepParams(learning_rate=1e-2))
    assert first.loss == pytest.approx(0.02)
    for _ in range(60):
        llama.step([batch], StepParams(learning_rate=1e-2))
    (values,) = llama.values([batch])
    assert values[0] == values[2] == pytest.approx(0.5, abs=0.1)  # one state, before anything was said
    assert values[1] == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(values[3:], 0.0, atol=0.1)


def test_a_folder_without_a_model_and_an_unknown_architecture_are_named(tmp_path):
    with pytest.raises(ModelError, match="There is no model in"):
        TorchPolicy(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ModelError, match="cannot train models of the type gpt2"):
        TorchPolicy(tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
        RuntimeError("could not create a primitive"),
    ],
)
def test_what_libraries_say_for_want_of_memory_is_understood(error):
    with pytest.raises(MemoryShort), memory_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError("The operator 'aten::_foo' is not currently implemented for the XPU device."),
        RecursionError("maximum recursion depth exceeded"),
        torch.AcceleratorError("CUDA error: device-side assert triggered"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError("could not create a primitive descriptor for the matmul primitive"),
    ],
)
def test_a_fault_is_not_taken_for_want_of_memory(error):
    with pytest.raises(type(error)), memory_errors():
        raise error


FREED_BYTES = """
import ctypes, psutil, torch
from waggle.core.system.process_memory import return_free_memory
ctypes.CDLL(None).mallopt(-3, 32 << 20)  # what is smaller comes from the heap
blocks = [torch.ones(1 << 18) for _ in range(200)]
last = torch.ones(1 << 18)  # at the end of the heap: what lies before it stays there
del blocks
before = psutil.Process().memory_info().rss
return_free_memory()
print(before - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="of glibc")
def test_what_is_free_between_what_is_used_is_given_back():
    assert int(subprocess.check_output([sys.executable, "-c", FREED_BYTES], text=True)) > 150 << 20


@pytest.mark.parametrize("short", [False, True])
def test_memory_is_given_back_before_and_after_answering_where_it_is_short(monkeypatch, tmp_path, short):
    calls: list[None] = []
    monkeypatch.setattr(causal_lm, "return_free_memory", lambda: calls.append(None))
    policy = TorchPolicy(make_model("llama", tmp_path), training=TrainingMode("lora", "float32", recompute=short))
    sample(policy, prompts())
    assert len(calls) == 2 * short


@pytest.mark.skipif(not SMAPS.exists() or "VmFlags" not in SMAPS.read_text(), reason="where Linux says it")
def test_linux_is_asked_for_large_pages_for_large_tensors():
    environment = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    flags = subprocess.check_output([sys.executable, "-c", LARGE_PAGES], env=environment, text=True).split()
    assert "hg" in flags
