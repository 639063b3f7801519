"""Memory fit: what it chooses for which memory and speed, and how it describes it."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from waggle.core.errors import MemoryShort, ModelError
from waggle.models import memory_fit
from waggle.models.memory_fit import DeviceCapacity, Workload
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import TrainingMode
from waggle_lab.starter_model.shapes import SHAPES

WORK = Workload(questions=8, groups=8, group_size=8, longest=64)
GB = 1_000_000_000
OLD, NEW = {"float32": 1e11, "bfloat16": 2e10}, {"float32": 1e11, "bfloat16": 2e11}  # chips without and with bfloat16


@pytest.fixture(scope="module", params=sorted(SHAPES))
def shape(request, tmp_path_factory) -> tuple[str, model_config.ModelConfig]:
    folder = tmp_path_factory.mktemp("shape")
    (folder / "config.json").write_text(json.dumps(SHAPES[request.param]))
    return request.param, model_config.read(folder)


@pytest.fixture
def half_a_billion(tmp_path) -> model_config.ModelConfig:
    (tmp_path / "config.json").write_text(json.dumps(SHAPES["Qwen2.5-0.5B"]))
    return model_config.read(tmp_path)


@pytest.fixture
def tiny(tmp_path) -> model_config.ModelConfig:
    small = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(SHAPES["Qwen3-0.6B"] | small))
    return model_config.read(tmp_path)


def test_the_weights_are_counted_from_the_configuration(shape):
    name, model = shape
    published = {
        "SmolLM2-135M": 134_515_008,
        "Qwen2.5-0.5B": 494_032_768,
        "Qwen3-0.6B": 596_049_920,
        "Llama-3.2-1B": 1_235_814_400,
    }
    assert memory_fit.weights_of(model) == pytest.approx(published[name], rel=1e-3)


@pytest.mark.parametrize(
    ("free", "method"), [(24, "full"), (12, "full"), (6, "lean"), (4, "lean")]
)  # fmt: skip
def test_what_memory_allows_is_chosen_best_first(half_a_billion, free, method):
    fit = memory_fit.choose(half_a_billion, DeviceCapacity(int(free * GB), NEW), WORK)
    assert (fit.training.method, fit.training.precision, fit.fits) == (method, "bfloat16", True)


def test_less_memory_never_needs_more(shape):
    _, model = shape
    needs = [memory_fit.choose(model, DeviceCapacity(free * GB, NEW), WORK).needs for free in (64, 24, 12, 8)]
    assert needs == sorted(needs, reverse=True)


def test_bfloat16_is_chosen_where_it_is_fast_or_where_nothing_else_fits(half_a_billion):
    assert memory_fit.choose(half_a_billion, DeviceCapacity(24 * GB, OLD), WORK).training.precision == "float32"
    assert memory_fit.choose(half_a_billion, DeviceCapacity(7 * GB // 2, OLD), WORK).training.precision == "bfloat16"


def test_what_cannot_fit_is_refused_in_words_with_numbers(half_a_billion):
    with pytest.raises(ModelError, match=r"needs at least \d\.\d GB of memory, and Waggle may use 0\.8 GB"):
        memory_fit.choose(half_a_billion, DeviceCapacity(GB, NEW), WORK)


def test_what_a_person_chose_is_kept_and_said_where_it_may_not_fit(half_a_billion):
    fit = memory_fit.choose(half_a_billion, DeviceCapacity(4 * GB, NEW), WORK, method="full", precision="float32")
    assert (fit.training.method, fit.training.precision) == ("full", "float32")
    assert fit.sentence.startswith("May not fit: about ")
    assert " of 3.4 GB of memory. All weights are trained in float32." in fit.sentence


def test_a_precision_that_a_person_chose_changes_nothing_else_that_fits(half_a_billion):
    for free, method in ((24, "full"), (8, "lean")):
        fit = memory_fit.choose(half_a_billion, DeviceCapacity(free * GB, NEW), WORK, precision="float32")
        assert (fit.training.method, fit.training.precision, fit.fits) == (method, "float32", True)


def test_a_model_of_the_starters_kind_is_always_trained_the_same_way(tiny):
    for free in (1, 100):
        assert memory_fit.choose(tiny, DeviceCapacity(free * GB // 10, NEW), WORK).training == TrainingMode()


def test_mlx_is_never_asked_for_what_it_has_not_got(half_a_billion):
    assert memory_fit.choose(half_a_billion, DeviceCapacity(5 * GB, NEW, "MLX"), WORK).training.method == "lora"


def test_a_faster_computer_gives_more_answers_and_larger_models_learn_in_smaller_steps(half_a_billion, tiny):
    slow, fast = (
        memory_fit.choose(half_a_billion, DeviceCapacity(24 * GB, {name: times * speed for name, speed in NEW.items()}), WORK)
        for times in (1, 10)
    )
    assert fast.answers_an_hour == pytest.approx(10 * slow.answers_an_hour, rel=0.05)
    assert memory_fit.rate_for(tiny, "full") == 5e-4
    assert memory_fit.rate_for(half_a_billion, "full") == pytest.approx(8.3e-6, rel=0.05)
    assert memory_fit.rate_for(half_a_billion, "lora") == pytest.approx(1.25e-4, rel=0.05)


@pytest.mark.parametrize(
    ("method", "precision", "seconds"), [("full", "bfloat16", 2.1), ("full", "float32", 4.1), ("lora", "bfloat16", 3.1)]
)
def test_what_a_card_took_for_a_round_is_foretold_within_a_factor_of_two(half_a_billion, method, precision, seconds):
    """Measured on an NVIDIA H200, which waits for the CPU most of the time."""
    card = DeviceCapacity(149 * GB, {"float32": 4.9e13, "bfloat16": 6.5e14}, "torch", "cuda")
    fit = memory_fit.choose(half_a_billion, card, replace(WORK, longest=256), method=method, precision=precision)
    assert 0.5 < fit.answers_an_hour * seconds / (64 * 3600) < 2.0


def test_a_card_that_writes_answers_in_parts_writes_every_token_once_for_each_of_them(half_a_billion):
    card, work = DeviceCapacity(149 * GB, NEW | {"bfloat16": 1e20}, "torch", "cuda"), replace(WORK, groups=0)
    whole, parts, most = (
        memory_fit.round_seconds(half_a_billion, card, work, TrainingMode("lora", "bfloat16", True, parts=parts))
        for parts in (1, 4, 16)
    )
    assert (parts / whole, most / whole) == (pytest.approx(4.0), pytest.approx(8.0)), "there are no more parts than questions"


@pytest.mark.parametrize(
    ("way", "peak"),
    [
        (TrainingMode("full", "float32"), 14.24), (TrainingMode("full", "bfloat16"), 12.77),
        (TrainingMode("full", "bfloat16", True), 8.72), (TrainingMode("lean", "bfloat16", True), 2.49),
        (TrainingMode("lean", "float32", True), 4.70), (TrainingMode("lora", "bfloat16"), 4.95),
    ],
)  # fmt: skip
def test_the_memory_that_a_card_gave_for_a_round_is_reckoned_within_a_twentieth(half_a_billion, way, peak):
    """Measured on the same NVIDIA H200, tensors only, when the head still computed logits beside those of the rows before."""
    card = DeviceCapacity(149 * GB, NEW, "torch", "cuda")
    needed = memory_fit._bytes(half_a_billion, card, replace(WORK, longest=256), way) - memory_fit.PROGRAM_BYTES
    needed += (12 - memory_fit._logit_bytes(half_a_billion, card, way)) * way.logits_at_once
    assert needed / GB == pytest.approx(peak, rel=0.05)


def test_where_weights_are_multiplied_in_another_precision_their_copies_are_counted(half_a_billion):
    layers = 2 * 358e6
    for backend, recomputed_copies in (("torch", layers / 24), ("MLX", layers)):
        machine = DeviceCapacity(64 * GB, NEW, backend, "cuda")
        stored, copied = (
            memory_fit._bytes(half_a_billion, machine, WORK, TrainingMode(method, "bfloat16", recompute=recompute)) * 1.0
            for method, recompute in (("full", False), ("full", True))
        )
        alone, made_again = (
            memory_fit._activations(half_a_billion, machine, WORK, TrainingMode("full", "bfloat16", recompute=recompute))
            for recompute in (False, True)
        )
        scores = {"torch": 6, "MLX": 12}[backend] * ((1 << 26) - (1 << 24))
        assert stored - copied == pytest.approx(layers - recomputed_copies + alone - made_again + scores, rel=0.02)


def test_long_answers_take_memory_for_attention_where_its_scores_are_kept(half_a_billion):
    ways = [TrainingMode("lora", precision) for precision in ("float32", "bfloat16")]
    short, long = (replace(WORK, longest=longest) for longest in (150, 1500))

    def grows(way: TrainingMode, backend: str = "torch", device: str = "cpu") -> float:
        machine = DeviceCapacity(64 * GB, NEW, backend, device)
        less, more = (memory_fit._activations(half_a_billion, machine, work, way) / work.group_tokens for work in (short, long))
        return more / less

    assert grows(ways[1]) > 1.5
    assert grows(ways[1], "MLX", "gpu") > 1.5
    assert all(grows(way, "torch", "xpu") > 1.5 for way in ways)
    assert grows(ways[0]) == pytest.approx(1.0, rel=0.1)
    assert grows(ways[1], "torch", "cuda") == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(
    ("parts", "tokens", "completions"),
    [(1, 150 + 8 * 2000, 8), (2, 150 + 3 * 2000, 3), (4, 150 + 2000, 1), (16, 150 + 2000, 1)],
)
def test_of_a_divided_group_only_a_piece_is_counted(half_a_billion, parts, tokens, completions):
    """16,150 tokens: in halves, memory has room for a prompt of 150 and three completions of 2,000, and never for less than one.

    A token keeps 2 * (10 * 896 + 4 * 4864) bytes of a layer and the states of 24, 2 * 24 * 896; a completion the keys and values,
    2 * 2 * 64 numbers each, of 2,150 tokens.
    """
    way = TrainingMode("lora", "bfloat16", recompute=True, parts=parts)
    activations = memory_fit._activations(
        half_a_billion, DeviceCapacity(64 * GB, NEW, "torch", "cuda"), replace(WORK, longest=2000), way
    )
    assert activations == tokens * (56_832 + 43_008) + completions * 2150 * 256 * 2


def test_what_does_not_fit_as_a_whole_is_trained_in_parts_and_that_is_said(half_a_billion):
    """64 answers of 2,000 tokens need 24.6 MB of keys and values each, 1.6 GB in all; 32 at once need half of that."""
    long = replace(WORK, longest=2000)
    plenty, little = (
        memory_fit.choose(half_a_billion, DeviceCapacity(int(free * GB), NEW, "torch", "cuda"), long) for free in (8, 3.5)
    )
    assert (plenty.training.parts, little.training) == (1, TrainingMode("lora", "bfloat16", recompute=True, parts=2))
    assert little.fits
    assert little.sentence.endswith(" Memory is short: what usually runs together is divided into 2 parts.")
    whole = memory_fit.choose(
        half_a_billion, DeviceCapacity(7 * GB // 2, NEW, "torch", "cuda"), replace(long, questions=2, group_size=4)
    )
    assert whole.training.parts == 1


def test_a_model_that_only_answers_takes_its_weights_their_copies_one_cache_and_its_prompt(half_a_billion):
    """Weights of 2 bytes, all copied for decoding; 2 * 24 layers * 2 heads * 64 numbers of 2 bytes a token."""
    cpu, way = DeviceCapacity(GB, {}, "torch", "cpu"), TrainingMode("lean", "bfloat16")
    work = Workload(questions=1, groups=0, group_size=7, longest=100, prompt=10)
    weights, caches, logits = 2 * memory_fit.weights_of(half_a_billion), 12_288 * (10 + 7 * 100), 12 * 7 * 151_936
    assert memory_fit.answering_bytes(half_a_billion, cpu, work, way) == 2 * weights + caches + logits
    spare = memory_fit.answering_bytes(half_a_billion, cpu, work, replace(way, recompute=True))
    assert spare == 2 * weights + caches + logits - 2 * 151_936 * 896, "where memory is short, the head is not copied"
    longer = memory_fit.answering_bytes(half_a_billion, cpu, replace(work, prompt=1790), way)
    assert longer > 2 * weights + 12_288 * (1790 + 7 * 100) + 3 * 2 * 14 * 1790**2


def test_the_memory_of_a_graphics_card_is_its_own(monkeypatch):
    """An Intel card's memory is not that of the computer."""
    monkeypatch.setattr(torch.xpu, "mem_get_info", lambda: (5 * GB, 8 * GB))
    monkeypatch.setattr(memory_fit, "_torch_product", lambda name, device: lambda: 1.0)
    assert memory_fit.measure("torch", "xpu", 1).free == 5 * GB


@pytest.mark.parametrize(("shares", "expected"), [(True, GB), (False, 7 * GB)])
def test_of_a_card_whose_driver_does_not_tell_its_free_memory_it_is_reckoned(monkeypatch, shares, expected):
    """An integrated card uses the computer's memory."""

    def untold() -> tuple[int, int]:
        raise RuntimeError("The device (Intel(R) Iris(R) Xe Graphics) doesn't support querying the available free memory.")

    monkeypatch.setattr(torch.xpu, "mem_get_info", untold)
    monkeypatch.setattr(torch.xpu, "memory_reserved", lambda: GB)
    properties = SimpleNamespace(total_memory=8 * GB, is_integrated_gpu=shares)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda: properties)
    monkeypatch.setattr(memory_fit, "available_memory", lambda: GB)
    monkeypatch.setattr(memory_fit, "_torch_product", lambda name, device: lambda: 1.0)
    assert memory_fit.measure("torch", "xpu", 1).free == expected


@pytest.mark.parametrize(("free", "expected"), [(20 * GB, 12 * GB), (8 * GB, 8 * GB)])
def test_on_a_mac_no_more_counts_as_free_than_metal_recommends(monkeypatch, free, expected):
    mx = pytest.importorskip("mlx.core")
    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    monkeypatch.setattr(mx, "device_info", lambda: {"max_recommended_working_set_size": 12 * GB})
    monkeypatch.setattr(memory_fit, "available_memory", lambda: free)
    monkeypatch.setattr(memory_fit, "_mlx_product", lambda name, device: lambda: 1.0)
    assert memory_fit.measure("MLX", "metal", 1).free == expected


def test_a_card_that_is_too_full_for_the_benchmark_is_short_of_memory(monkeypatch):
    def full(_name: str, _device: str) -> Callable[[], float]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB.")

    monkeypatch.setattr(memory_fit, "_torch_product", full)
    with pytest.raises(MemoryShort):
        memory_fit.measure("torch", "cpu", 1)


@pytest.mark.parametrize("backend", ["torch", "MLX"])
def test_the_benchmark_finds_a_device_with_memory_and_speed(backend):
    if backend == "MLX":
        pytest.importorskip("mlx.core")
    machine = memory_fit.measure(backend, "cpu", 1)
    assert machine.free > 0
    assert all(speed > 1e6 for speed in machine.speeds.values())


@pytest.mark.parametrize(("long", "times"), [(-1.0, 2), (float("inf"), 4)])
def test_a_product_that_takes_long_is_not_multiplied_again_and_again_and_the_first_never_decides_alone(monkeypatch, long, times):
    monkeypatch.setattr(memory_fit, "LONG_S", long)
    multiplied = []
    memory_fit._speed(lambda: multiplied.append(1) or 1.0)
    assert len(multiplied) == times


def test_layers_in_4_bits_are_the_last_resort_of_a_card_and_never_of_a_cpu(half_a_billion):
    long = replace(WORK, longest=2000)
    card, cpu = (DeviceCapacity(int(2.1 * GB), NEW, "torch", device) for device in ("cuda", "cpu"))
    fit = memory_fit.choose(half_a_billion, card, replace(long, questions=1, group_size=4))
    assert (fit.training.method, fit.fits) == ("qlora", True)
    with pytest.raises(ModelError, match="does not fit"):
        memory_fit.choose(half_a_billion, cpu, long)
    chosen = memory_fit.choose(half_a_billion, cpu, long, method="qlora")
    assert chosen.training.method == "qlora"


def test_mlx_has_no_layers_in_4_bits_of_its_own_making(half_a_billion):
    mlx = DeviceCapacity(64 * GB, NEW, "MLX", "metal")
    with pytest.raises(ModelError, match="MLX does not put"):
        memory_fit.choose(half_a_billion, mlx, WORK, method="qlora")
