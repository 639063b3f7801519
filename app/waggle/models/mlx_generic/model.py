"""A model of mlx-lm as the policy sees it: a function of named weights, to hidden states and from those to logits.

The module of mlx-lm keeps no weights: they are put into it for one pass. What it computes after its layers is its head. By
putting hidden states in the place of the layers, logits (V each) are computed for the tokens that need them, a few at a time.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.nn.layers.base import Module

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.mlx.memory import memory_errors
from waggle.models.mlx.model import Weights
from waggle.models.mlx_generic import adapters, head
from waggle.models.mlx_generic.caches import Caches
from waggle.models.mlx_generic.layers import prepare_layers
from waggle.models.shared import lora
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm import model as mlx_lm_model
from waggle.models.shared.mlx_lm import settings as mlx_lm_settings
from waggle.models.shared.mlx_lm.model import REFUSALS
from waggle.models.shared.training_mode import TrainingMode

WINDOWS = ("sliding_window", "window_size")  # attributes of modules and of their settings
NOTHING = mx.zeros(0)


@dataclass(frozen=True)
class Slot:
    """The place of one weight in the network: an entry of a module. Adapters lie there transposed."""

    name: str
    module: Any
    key: str
    transposed: bool = False


class MlxLmModel:
    """One language model without its weights. Raises ModelError for a folder without a model that mlx-lm knows."""

    def __init__(self, folder: Path, training: TrainingMode) -> None:
        table = mlx_lm_config.known_table(folder)
        self.configuration = mlx_lm_config.read(folder)
        if mlx_lm_config.is_packed(table) and not training.is_adapted:
            raise ModelError("A quantised model is trained with adapters only.", "Set model.training to lora, or to auto.")
        self.precision: mx.Dtype = getattr(mx, training.precision)  # of products and activations
        self.recompute = training.recompute
        network = mlx_lm_model.load(folder)
        self._network = network.module
        self._wide = getattr(self._network, "cast_predicate", lambda _: True)  # false for weights that stay in fp32
        self.loaded = self._computed(network.weights, getattr(mx, training.stored_precision))
        self._backbone, layers = _backbone_of(self._network)
        adapted = adapters.inject(self._network, layers) if training.is_adapted else {}
        names = {path: adapter_name(path, network.in_files) for path in adapted}
        # By name of an adapted layer: its inputs and outputs.
        self._adapted = {names[path]: (each.lora_a.shape[0], each.lora_b.shape[1]) for path, each in adapted.items()}
        self._slots = list(_slots_of(self._network, names))
        self._layer_windows = prepare_layers(layers, mlx_lm_settings.windows(_text_of(table)), self)
        self._caught: mx.array | None = None
        self._instead: mx.array | None = None  # hidden states in the place of those of the layers
        self._head_weights: tuple[str, ...] = ()
        self.is_learning = False
        self._empty()
        inside = {id(module) for layer in layers for module in layer.modules()}
        self.has_head = self._split_head({slot.name for slot in self._slots if id(slot.module) in inside})

    @property
    def network(self) -> Any:
        return self._network

    @property
    def hidden_size(self) -> int:
        """D of what `hidden` returns."""
        return self._width

    @property
    def bytes_per_token(self) -> int:
        """About the bytes that one token keeps from the forward pass for the backward pass."""
        return self.configuration.bytes_per_token(self.precision.size, recompute=self.recompute)

    @property
    def bytes_per_layer(self) -> int:
        """About the bytes that one token keeps in one layer."""
        return self.configuration.bytes_per_layer(self.precision.size)

    def first_adapters(self) -> Weights:
        """The LoRA adapters before training: B is 0, so they have no effect."""
        first: Weights = {}
        for name, (width, out) in self._adapted.items():
            a_name, b_name = lora.names(name)
            first |= {a_name: mx.array(lora.first_a(name, width)), b_name: mx.zeros((out, lora.RANK))}
        return first

    def working_weights(self, weights: Mapping[str, mx.array]) -> Weights:
        """The weights in the precision of the products."""
        return {name: self._cast(name, weight, self.precision) for name, weight in weights.items()}

    def hidden(self, weights: Weights, tokens: mx.array, caches: Caches | None = None) -> mx.array:
        """Tokens (B, T), after those in caches if there are some, -> hidden states (B, T, D) as the head reads them.

        The caches are grown.
        """
        with self._in_place(weights):
            output: mx.array = self._network(tokens) if caches is None else self._network(tokens, cache=caches)
            caught, self._caught = self._caught, None
        if not self.has_head or caught is None:
            return output
        return caught

    def logits(self, weights: Weights, hidden: mx.array) -> mx.array:
        """Hidden states (N, D) -> logits (N, V) in fp32."""
        if not self.has_head:
            return hidden.astype(mx.float32)
        with self._in_place(weights):
            self._instead = hidden[None]
            try:
                output: mx.array = self._network(mx.zeros((1, len(hidden)), mx.int32))
            finally:
                self._instead = None
        return output[0].astype(mx.float32)

    def logprobs(self, weights: Weights, normed: mx.array, targets: mx.array, temperature: float, *, frozen: bool) -> mx.array:
        """Log-probs (N,) of tokens from the hidden states that predict them. A `frozen` head gets no gradient."""
        names = () if frozen else self._head_weights

        def logits(some: Sequence[mx.array], hidden: mx.array) -> mx.array:
            return self.logits(weights | dict(zip(names, some, strict=True)), hidden)

        return head.logprobs(
            logits, [weights[name] for name in names], normed, targets, temperature, self.configuration.vocab_size
        )

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        """Compute so that gradients flow: some modules have kernels without them."""
        self._network.train()
        self.is_learning = True
        try:
            yield
        finally:
            self.is_learning = False
            self._network.eval()
            self._empty()  # of what was put in while layers were computed again

    @contextlib.contextmanager
    def window(self, tokens: int) -> Iterator[None]:
        """Narrow the model's sliding windows, if it has some, so that a short text shows what they do."""
        places = [(owner, name) for owner in _owners(self._network) for name in WINDOWS if _is_window(owner, name)]
        before = [getattr(owner, name) for owner, name in places]
        layers = list(self._layer_windows)
        for owner, name in places:
            setattr(owner, name, tokens)
        self._layer_windows[:] = [tokens if window else None for window in layers]
        try:
            yield
        finally:
            for (owner, name), value in zip(places, before, strict=True):
                setattr(owner, name, value)
            self._layer_windows[:] = layers

    def put_in(self, slots: Sequence[Slot], weights: Sequence[mx.array]) -> None:
        """Put weights into the network, for one pass."""
        for slot, weight in zip(slots, weights, strict=True):
            dict.__setitem__(slot.module, slot.key, weight.T if slot.transposed else weight)

    @contextlib.contextmanager
    def _in_place(self, weights: Weights) -> Iterator[None]:
        self.put_in(self._slots, [weights[slot.name] for slot in self._slots])
        try:
            yield
        finally:
            self._empty()

    def _empty(self) -> None:
        """Remove all weights from the network: it would keep those of the step before in memory."""
        for slot in self._slots:
            dict.__setitem__(slot.module, slot.key, NOTHING)

    def _cast(self, name: str, weight: mx.array, precision: mx.Dtype) -> mx.array:
        if not mx.issubdtype(weight.dtype, mx.floating):
            return weight
        return weight.astype(precision if self._wide(name) else mx.float32)

    def _computed(self, weights: Weights, precision: mx.Dtype) -> Weights:
        """The weights in a precision, one by one, so that the model never exists in two precisions. Raises MemoryShort."""
        result: Weights = {}
        for name in list(weights):
            with memory_errors():
                result[name] = self._cast(name, weights.pop(name), precision)
                mx.eval(result[name])
        return result

    def _split_head(self, in_layers: set[str]) -> bool:
        """Separate the head from the layers, if the two together still give the model's own logits. Raises ModelError."""
        self.has_head = False
        weights = self.working_weights(self.loaded | self.first_adapters())
        tokens = mx.arange(1, 9)[None] % self.configuration.vocab_size
        try:
            expected = self.hidden(weights, tokens)[0].astype(mx.float32)  # without a separate head: the logits
            mx.eval(expected)
            if expected.shape[-1] < self.configuration.vocab_size:
                raise ValueError(Message("its head has %1 outputs", expected.shape[-1]))
        except (*REFUSALS, RuntimeError) as error:
            if "alloc" in str(error) or "Memory" in str(error):
                raise
            raise ModelError(Message("The model cannot be computed: %1", error), ANOTHER) from error
        self._width = expected.shape[-1]
        if self._backbone is None:
            return False
        _watch(self._backbone, self._run_backbone)
        self.has_head = True
        try:
            hidden = self.hidden(weights, tokens)[0]
            computed = self.logits(weights, hidden)
            same = computed.shape == expected.shape and bool(mx.allclose(computed, expected, rtol=1e-4, atol=1e-4))
        except REFUSALS:
            same = False
        if not same:
            self.has_head = False
            return False
        self._width = hidden.shape[-1]
        self._head_weights = self._weights_of_head(weights, hidden[:1], in_layers)
        return True

    def _weights_of_head(self, weights: Weights, hidden: mx.array, in_layers: set[str]) -> tuple[str, ...]:
        """The names of the weights on which the logits of hidden states (n, D) depend."""
        names = [
            name for name, weight in self.loaded.items() if name not in in_layers and mx.issubdtype(weight.dtype, mx.floating)
        ]

        def of(*some: mx.array) -> mx.array:
            logits = self.logits(weights | dict(zip(names, some, strict=True)), hidden)
            return logits * mx.arange(1, logits.shape[-1] + 1)

        shape = (len(hidden), self.configuration.vocab_size)
        try:
            outputs, pulls = mx.vjp(of, [weights[name] for name in names], [mx.ones(shape)])
            del outputs
        except (ValueError, RuntimeError):  # a head with packed weights has none that are trained
            return ()
        return tuple(name for name, pull in zip(names, pulls, strict=True) if bool(np.array(mx.any(pull != 0))))

    def _run_backbone(self, compute: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self._instead is not None:
            return self._instead
        output = compute(*arguments, **options)
        if isinstance(output, mx.array):
            self._caught = output
        return output


def _watch(module: Any, run: Callable[..., Any]) -> None:
    """Let `run(compute, ...)` answer the calls of a module, whose own answer is `compute(...)`."""
    usual = type(module)

    class Watched(usual):  # type: ignore[misc, valid-type]
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return run(super().__call__, *arguments, **options)

    module.__class__ = Watched


def _backbone_of(network: Any) -> tuple[Any, list[Any]]:
    """The part of a network that has the layers, None if that is the network itself, and the layers."""
    best, layers, most = None, list[Any](), -1
    for module in network.modules():
        for value in module.values():
            if isinstance(value, list) and value and all(isinstance(part, Module) for part in value):
                size = sum(len(dict(part.named_modules())) for part in value)
                if size > most:
                    best, layers, most = module, value, size
    return (None if best is network else best), layers


def adapter_name(path: str, in_files: Mapping[str, str]) -> str:
    """The name of an adapted layer: as transformers calls it, where its weight is an array of the files."""
    return in_files.get(f"{path}.weight", f"{path}.weight").removesuffix(".weight")


def _slots_of(network: Any, adapted: Mapping[str, str]) -> Iterator[Slot]:
    """The places of all weights of a network; `adapted` has the names of its adapters by path."""
    for path, module in network.named_modules():
        for key, value in module.items():
            if not isinstance(value, mx.array) or key.startswith("_"):
                continue
            if path in adapted:
                a_name, b_name = lora.names(adapted[path])
                yield Slot(a_name if key == "lora_a" else b_name, module, key, transposed=True)
                continue
            parent, _, last = path.rpartition(".")
            place = parent if last == "linear" and parent in adapted else path
            yield Slot(f"{place}.{key}" if place else key, module, key)


def _owners(network: Any) -> Iterator[Any]:
    """The modules of a network, and the settings that they keep."""
    identities: set[int] = set()
    for module in network.modules():
        for owner in (module, *vars(module).values()):
            if (owner is module or is_dataclass(owner)) and not isinstance(owner, type) and id(owner) not in identities:
                identities.add(id(owner))
                yield owner


def _is_window(owner: Any, name: str) -> bool:
    value = vars(owner).get(name)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _text_of(table: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**table, **table["text_config"]} if isinstance(table.get("text_config"), dict) else table
