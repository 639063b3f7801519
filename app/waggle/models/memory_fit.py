"""The memory fit: how a model can be trained on this computer, from its configuration and a short benchmark.

Memory is calculated, not tried (decision 14): an engine that the system kills cannot say why. Speed is estimated from one matrix
product in each precision, and was right within a factor of two where it was compared; memory bandwidth is ignored.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from waggle.core.errors import ModelError
from waggle.core.message import Figure, Message, in_turn
from waggle.core.system.machine import available_memory
from waggle.models.shared.adaptive_batch import pass_bytes
from waggle.models.shared.configuration import quantised
from waggle.models.shared.configuration.counted_config import CountedConfig
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.decoding import PREFILL_BYTES
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.lora import RANK
from waggle.models.shared.mlx_lm.config import MlxLmConfig
from waggle.models.shared.training_mode import ADAPTED, Method, Precision, TrainingMode

USABLE_SHARE = 0.85  # of the free memory; the rest is for other programs
PROGRAM_BYTES = 400_000_000  # of Python and its libraries with a tokenizer, without a model
# A CPU's heap keeps a share of what comes and goes, unless large blocks are given back: see models/torch/memory.py.
GAPS_BYTES, GAPS_SHARE = 250_000_000, 0.4
TRANSFORMERS_BYTES = 250_000_000  # of transformers and what it imports
FOUR_BITS = 0.52  # bytes of a weight in 4 bits, with its share of the scales
LOGIT_BYTES = 12  # of a logit and what is computed from it, while answers are written and in MLX
GENERIC_LOGIT_BYTES = 16  # the same while a head of transformers learns, see models/generic/head.py
ATTENTION_COPIES = 6  # of the attention scores, while the gradient of one layer is computed
SCORES_AT_ONCE = 3  # copies of the attention scores of one layer, without a gradient
SMALL = 10_000_000  # weights of the largest model like the starter
FASTER = 1.3  # bfloat16 is chosen if it is this many times as fast
DECODING_EFFICIENCY, LEARNING_EFFICIENCY = 0.4, 0.6  # of the benchmark's speed, measured
# The least seconds of a layer on a GPU, for a decoded token and for a training pass: launching kernels takes that long.
CARD_S = {"cuda": (2e-4, 3e-3), "xpu": (1e-3, 3e-3)}
FAST_IN_FOUR_BITS = ("cuda", "xpu")  # a CPU takes longer for the weights of a product than for the product
IN_FOUR_BITS = (TrainingMode("qlora", "bfloat16"), TrainingMode("qlora", "bfloat16", recompute=True))
PARTS = (2, 4, 8, 16)  # into which batches are divided if no training mode fits otherwise
LONG_S = 0.1  # a longer product need not be repeated; a CPU without bfloat16 takes most of a second for one
BYTES: Mapping[Precision, int] = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class DeviceCapacity:
    """A device's `free` bytes, and its operations (multiplications and additions) per second in each precision."""

    free: int
    speeds: Mapping[Precision, float]
    backend: str = "torch"
    device: str = "cpu"


@dataclass(frozen=True)
class Workload:
    """One round: `group_size` completions of up to `longest` tokens for each of `questions`; `groups` are learned from."""

    questions: int
    groups: int
    group_size: int
    longest: int
    prompt: int = 150  # tokens of a usual prompt

    @property
    def answers(self) -> int:
        return self.questions * self.group_size

    @property
    def group_tokens(self) -> int:
        return self.prompt + self.group_size * self.longest


@dataclass(frozen=True)
class MemoryFit:
    """A training mode, the bytes that it `needs`, the bytes that are `free`, and about how many answers an hour it gives.

    Most answers are shorter than they may be, so there will be more of them.
    """

    training: TrainingMode
    needs: int
    free: int
    answers_an_hour: int

    @property
    def fits(self) -> bool:
        return self.needs <= self.free * USABLE_SHARE

    @property
    def sentence(self) -> Message:
        """For people: whether it fits, how fast, in how much of the memory that may be used; then how it is trained."""
        may = _usable_gb(self.free)
        needs = min(self.needs / 1e9, may) if self.fits else self.needs / 1e9
        values = Figure(self.answers_an_hour), Figure(needs, 1), Figure(may, 1)
        begin = Message("May not fit: about %1 answers an hour or more, %2 of %3 GB of memory.", *values)
        if self.fits:
            begin = Message("Fits: about %1 answers an hour or more, %2 of %3 GB of memory.", *values)
        how = Message("%1 in %2.", WORDS[self.training.method], self.training.precision)
        parts = self.training.parts
        if parts > 1:
            return in_turn(begin, how, Message("Memory is short: what usually runs together is divided into %1 parts.", parts))
        return in_turn(begin, how)


WORDS: Mapping[Method, Message] = {
    "full": Message("All weights are trained"),
    "lean": Message("All weights are trained with little memory"),
    "lora": Message("Adapters (LoRA) are trained"),
    "qlora": Message("Adapters (LoRA) are trained over layers in 4 bits"),
}


def choose(
    model: ModelConfig,
    machine: DeviceCapacity,
    work: Workload,
    *,
    method: Method | None = None,
    precision: Precision | None = None,
) -> MemoryFit:
    """The best training mode that fits. Keeps what a person chose, even if it does not fit; otherwise raises ModelError."""
    require_backend(model, machine.backend)
    require_method(model, machine.backend, method)
    ways = list(_ways(precision or fast_precision(model, machine), machine))
    if packed_bytes(model):  # of a quantised model only adapters can be trained
        ways = [way for way in ways if way.method == "lora"]
        method = "lora" if method == "qlora" else method
    ways = [way for way in ways if method in (None, way.method)]
    ways = [way for way in ways if precision in (None, way.precision)] or [
        TrainingMode(method or "lora", precision or "bfloat16", recompute=method == "qlora")
    ]
    ways += _in_parts(ways[-1])
    if method is None and precision in (None, "bfloat16") and machine.device in FAST_IN_FOUR_BITS:
        ways += [*IN_FOUR_BITS, *_in_parts(IN_FOUR_BITS[-1])]
    fits = [_fit(model, machine, work, way) for way in ways]
    best = next((fit for fit in fits if fit.fits), min(fits, key=lambda fit: fit.needs))
    if is_small(model) and method in (None, "full") and precision in (None, "float32"):
        return fits[0]
    if not best.fits and method is None:
        raise ModelError(
            too_large(best.needs, machine.free),
            "Choose a smaller model, close other programs, or let Waggle use more memory in Settings.",
        )
    return best


def too_large(needs: float, free: float) -> Message:
    """That a model needs more than may be used of the free memory; both in bytes."""
    return Message(
        "This model does not fit: it needs at least %1 GB of memory, and Waggle may use %2 GB.",
        Figure(needs / 1e9, 1),
        Figure(_usable_gb(free), 1),
    )


def _usable_gb(free: float) -> float:
    """How much of the free memory, in bytes, may be used, in GB: never rounded up to what a larger model needs."""
    return math.floor(free * USABLE_SHARE / 1e8) / 10


def require_backend(model: ModelConfig, backend: str) -> None:
    """Raise ModelError for a model that mlx-lm quantised, unless MLX computes."""
    if isinstance(model, MlxLmConfig) and model.packed_bytes and backend != "MLX":
        raise ModelError(
            "Models that were quantised for MLX are trained on Macs with Apple Silicon only.", quantised.advice(model.made_from)
        )


def require_method(model: ModelConfig, backend: str, method: Method | None) -> None:
    """Raise ModelError for layers in 4 bits on MLX, which has them only where the model came with them."""
    if method == "qlora" and backend == "MLX" and not packed_bytes(model):
        raise ModelError(
            "MLX does not put the layers of a model in 4 bits.",
            "Choose the model in MLX's 4-bit form, or set model.training to lora.",
        )


def packed_bytes(model: ModelConfig) -> int:
    """The bytes of all weights of a quantised model; 0 for others."""
    return model.packed_bytes if isinstance(model, MlxLmConfig) else 0


def rate_for(model: ModelConfig, method: Method) -> float:
    """The default learning rate: the starter's for small models, 2e-5 at 135 million weights, 15 times that for LoRA.

    All were measured (tests/measured/lab_swarm, tests/measured/real_model); between and beyond them a power law, so 8e-6 at
    half a billion weights.
    """
    whole = 5e-4 * float(min(1.0, 1e6 / weights_of(model)) ** 0.66)
    return min(5e-4, 15 * whole) if method in ADAPTED else whole


def is_small(model: ModelConfig) -> bool:
    """Whether a model is about as small as the starter: it fits everywhere, and its runs are compared to the bit."""
    return weights_of(model) < SMALL


def fast_precision(model: ModelConfig, machine: DeviceCapacity) -> Precision:
    """bfloat16 if it is so much faster that it is worth the rounding, else float32."""
    if is_small(model):
        return "float32"
    return "bfloat16" if machine.speeds["bfloat16"] > FASTER * machine.speeds["float32"] else "float32"


def weights_of(model: ModelConfig) -> int:
    """The number of a model's weights, without norms and biases if they are counted from its configuration."""
    return _layers(model) + _embeddings(model)


def _ways(fast: Precision, machine: DeviceCapacity) -> Iterator[TrainingMode]:
    """Training modes, from the best to the one that needs the least memory."""
    methods: tuple[Method, ...] = ("full", "lora") if machine.backend == "MLX" else ("full", "lean", "lora")
    for precision in dict.fromkeys((fast, "bfloat16")):
        for method in methods:
            for recompute in (False, True):
                yield TrainingMode(method, precision, recompute)


def _in_parts(way: TrainingMode) -> list[TrainingMode]:
    return [replace(way, parts=parts) for parts in PARTS]


def _fit(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> MemoryFit:
    return MemoryFit(way, _bytes(model, machine, work, way), machine.free, answers_an_hour(model, machine, work, way))


def answers_an_hour(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> int:
    """About how many answers are written and learned from an hour, to two digits, if all are as long as they may be."""
    return _round_to_two_digits(work.answers * 3600 / max(1e-9, round_seconds(model, machine, work, way)))


def _bytes(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> int:
    """The peak memory of a round, which is that of sampling or that of learning."""
    size, count = BYTES[way.precision], weights_of(model)
    trained = RANK * _widths(model) if way.is_adapted else count
    moments = (0 if way.method == "lean" else 8) * trained
    weights = _weights(model, way)
    gradient = trained * (4 if way.is_adapted else BYTES[way.stored_precision])
    copied = 0 if way.stored_precision == way.precision else size * _layers(model)  # weights in the precision of the products
    if way.recompute and machine.backend != "MLX":
        copied //= model.num_hidden_layers
    completions, together = _pass(model, machine, work, way)
    scores = min(way.logits_at_once, model.vocab_size * together * completions * work.longest)  # of the tokens of one pass
    head = _logit_bytes(model, machine, way) * scores
    head += size * model.vocab_size * model.hidden_size if way.stored_precision != way.precision else 0
    program = PROGRAM_BYTES + (TRANSFORMERS_BYTES if isinstance(model, GenericConfig) or way.method == "qlora" else 0)
    learning = gradient + copied + _activations(model, machine, work, way) + head
    passing = max(_answering(model, machine, work, way), learning)
    gaps = 0
    if (machine.backend, machine.device) == ("torch", "cpu") and not way.recompute:
        gaps = min(GAPS_BYTES, int(GAPS_SHARE * passing))
    return program + weights + moments + passing + gaps


def answering_bytes(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> int:
    """What a model takes that only answers, beside the one that is trained: in chat and under Try it."""
    return _weights(model, way) + _answering(model, machine, work, way)


def _weights(model: ModelConfig, way: TrainingMode) -> int:
    """The bytes of all weights as they are stored, with their adapters."""
    of_layer, stored = FOUR_BITS if way.method == "qlora" else BYTES[way.stored_precision], BYTES[way.stored_precision]
    weights = packed_bytes(model) or int(of_layer * _layers(model)) + stored * _embeddings(model)
    return weights + (4 * RANK * _widths(model) if way.is_adapted else 0)


def _answering(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> int:
    """The bytes that writing answers takes beside the weights: faster copies of these, caches, and logits or running prompts."""
    size, questions = BYTES[way.precision], -(-work.questions // way.parts)
    answers = questions * work.group_size
    is_shared = machine.backend == "torch" and not isinstance(model, CountedConfig)  # the cache of a prompt, by its answers
    tokens = (questions if is_shared else answers) * work.prompt + answers * work.longest
    caches = 2 * size * model.num_hidden_layers * model.num_key_value_heads * model.head_dim * tokens
    of_prompt = model.bytes_per_layer(size) * work.prompt
    if _keeps_scores(machine, way):
        of_prompt += SCORES_AT_ONCE * size * model.num_attention_heads * work.prompt**2
    together = max(1, min(questions, PREFILL_BYTES // (model.bytes_per_layer(size) * work.prompt)))
    return _copies(model, machine, way) + caches + max(LOGIT_BYTES * model.vocab_size * answers, together * of_prompt)


def _copies(model: ModelConfig, machine: DeviceCapacity, way: TrainingMode) -> int:
    """The bytes of the weights that are there a second time while answers are written: see models/torch/model.py, `decoding`."""
    if not _copies_for_decoding(model, machine, way):
        return 0
    if machine.backend == "MLX":
        return BYTES[way.precision] * weights_of(model)
    copies_head = not way.recompute or way.stored_precision != way.precision
    return BYTES[way.precision] * (_layers(model) + (model.vocab_size * model.hidden_size if copies_head else 0))


def _logit_bytes(model: ModelConfig, machine: DeviceCapacity, way: TrainingMode) -> int:
    """The bytes of a logit and of what is computed from it while a head learns."""
    if machine.backend == "MLX":
        return LOGIT_BYTES
    if isinstance(model, GenericConfig) or way.method == "qlora":
        return GENERIC_LOGIT_BYTES
    return 4 + (BYTES[way.precision] if way.precision != "float32" else 0)  # in fp32, and in the precision of the products


def _copies_for_decoding(model: ModelConfig, machine: DeviceCapacity, way: TrainingMode) -> bool:
    """Whether the weights are there a second time while answers are written: see models/torch/linear.py."""
    if isinstance(model, MlxLmConfig):
        return not model.packed_bytes
    if isinstance(model, GenericConfig) or way.method == "qlora":
        return False
    return machine.device == "cpu" or machine.backend == "MLX" or way.stored_precision != way.precision


def _activations(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> int:
    """Bytes that a forward pass keeps for the backward pass."""
    size, read = BYTES[way.precision], work.prompt + work.longest
    completions, together = _pass(model, machine, work, way)
    layers = 1 if way.recompute else model.num_hidden_layers
    of_token = model.bytes_per_token(size, recompute=way.recompute)
    if machine.backend == "torch":  # autograd keeps the input of the SiLU beside its output
        of_token += size * layers * model.intermediate_size
    tokens = of_token * (work.prompt + completions * work.longest)
    answers = completions * read * 2 * model.num_key_value_heads * model.head_dim  # keys and values of each, prompt included
    scores = 0
    if _keeps_scores(machine, way):
        scores = model.num_attention_heads * (work.prompt**2 + completions * work.longest * read)
    return tokens + together * size * (layers * answers + (layers + ATTENTION_COPIES) * scores)


def _keeps_scores(machine: DeviceCapacity, way: TrainingMode) -> bool:
    """Whether all scores of attention are there at once; a fused kernel never has them, see models/torch/packing.py."""
    fused = machine.device == "cuda" or (machine.device == "cpu" and way.precision == "float32")
    return not (machine.backend == "torch" and fused)


def _pass(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> tuple[int, int]:
    """(completions of a piece, which is a whole group if there is room; pieces that run together).

    See models/shared/adaptive_batch.py.
    """
    most = pass_bytes(machine.free if machine.device == "cuda" else 0)
    usual = most // model.bytes_per_token(BYTES[way.precision], recompute=way.recompute)
    room = max(usual, work.group_tokens) // way.parts
    completions = max(1, min(work.group_size, (room - work.prompt) // work.longest))
    return completions, max(1, min(work.groups, room // (work.prompt + completions * work.longest)))


def round_seconds(model: ModelConfig, machine: DeviceCapacity, work: Workload, way: TrainingMode) -> float:
    """Seconds of one round: 2 operations per weight and token in a forward pass, 4 in a backward pass."""
    speed, (token_s, pass_s) = machine.speeds[way.precision], CARD_S.get(machine.device, (0.0, 0.0))
    head = model.vocab_size * model.hidden_size
    layers = _layers(model)
    decoded = 2 * work.answers * work.longest * (layers + head)
    written = 2 * work.questions * work.prompt * layers
    passes = 4 if way.recompute else 3
    completions, together = _pass(model, machine, work, way)
    prompts = -(-work.group_size // completions)  # one for each piece of a group
    tokens = prompts * work.prompt + work.group_size * work.longest
    learned = 2 * work.groups * (passes * tokens * layers + 3 * work.group_size * work.longest * head)
    steps = work.longest * min(way.parts, work.questions)
    run = work.groups * prompts / together  # passes
    answering = max(decoded / (DECODING_EFFICIENCY * speed), token_s * model.num_hidden_layers * steps)
    learning = max(learned / (LEARNING_EFFICIENCY * speed), pass_s * model.num_hidden_layers * run)
    return answering + written / (LEARNING_EFFICIENCY * speed) + learning


def _embeddings(model: ModelConfig) -> int:
    """The weights of embedding and head."""
    return model.vocab_size * model.hidden_size * (1 if model.tie_word_embeddings else 2)


def _layers(model: ModelConfig) -> int:
    """The weights of all layers."""
    if isinstance(model, CountedConfig):
        return max(1, model.number_of_weights - _embeddings(model))
    attention = model.head_dim * (2 * model.num_attention_heads + 2 * model.num_key_value_heads)
    return model.num_hidden_layers * model.hidden_size * (attention + 3 * model.intermediate_size)


def _widths(model: ModelConfig) -> int:
    """The sum of inputs and outputs of all adapted layers: the numbers that adapters have per rank."""
    inputs = len(model.kind.qkv) + len(model.kind.gate_up) + 1  # of the width of the model, as is one of the outputs
    heads, shared = model.head_dim * model.num_attention_heads, model.head_dim * model.num_key_value_heads
    return model.num_hidden_layers * ((inputs + 1) * model.hidden_size + 2 * heads + 2 * shared + 3 * model.intermediate_size)


def _round_to_two_digits(number: float) -> int:
    """Round to two digits; the estimate has no more."""
    return int(float(f"{number:.2g}"))


def measure(backend: str, device: str, threads: int) -> DeviceCapacity:
    """Benchmark the device shortly, in the thread that will use it. Raises MemoryShort."""
    if backend == "MLX":
        from waggle.models.mlx.memory import recommended_bytes

        free = min(available_memory(), recommended_bytes() or available_memory())
        return DeviceCapacity(free, {name: _speed(_mlx_product(name, device)) for name in BYTES}, backend, device)
    import torch

    from waggle.models.torch.memory import memory_errors

    torch.set_num_threads(threads)
    free = available_memory() if device == "cpu" else _free_on(getattr(torch, device))
    with memory_errors():
        return DeviceCapacity(free, {name: _speed(_torch_product(name, device)) for name in BYTES}, backend, device)


def _free_on(card: Any) -> int:
    """Free memory of a GPU; an estimate if its driver does not report it, as many of Intel do not."""
    try:
        return int(card.mem_get_info()[0])
    except RuntimeError:
        properties = card.get_device_properties()
        free = int(properties.total_memory) - int(card.memory_reserved())
        return min(free, available_memory()) if getattr(properties, "is_integrated_gpu", True) else free


def _speed(multiply: Callable[[], float]) -> float:
    """Operations per second: the best of four runs, or of two long ones. The first one includes loading kernels."""
    best = 0.0
    for number in range(4):
        began = time.perf_counter()
        operations = multiply()
        seconds = time.perf_counter() - began
        best = max(best, operations / seconds)
        if number > 0 and seconds > LONG_S:
            break
    return best


def _torch_product(name: Precision, device: str) -> Callable[[], float]:
    import torch

    rows, size = _shape(device, 4096)
    lhs, right = (torch.ones(n, size, dtype=getattr(torch, name), device=device) for n in (rows, size))

    def multiply() -> float:
        float((lhs @ right)[0, 0])  # waits for the device
        return 2.0 * rows * size * size

    return multiply


def _mlx_product(name: Precision, device: str) -> Callable[[], float]:
    import mlx.core as mx

    rows, size = _shape(device, 2048)
    lhs, right = (mx.ones((n, size), dtype=getattr(mx, name)) for n in (rows, size))

    def multiply() -> float:
        mx.eval(lhs @ right)
        return 2.0 * rows * size * size

    return multiply


def _shape(device: str, whole: int) -> tuple[int, int]:
    """Rows and width of a product that keeps the device busy, but only for a moment."""
    return (256, 1024) if device == "cpu" else (whole, whole)
