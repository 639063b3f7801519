"""Linear layers of one input, as one product where that is faster; with their adapters, where they have some.

While decoding, weights are used hundreds of times between two changes: on a CPU they are copied into the order in which oneDNN
reads them, in the precision of the products. That operation of torch is private: where it is missing or wrong, the weights serve
as they are. While learning, torch's own choice serves: in fp32 oneDNN costs 1 to 5 ms for every new shape, and batches have a new
one each round (measured: the starter's rounds take 1.5 times as long), though on some processors it is twice as fast as MKL.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F

from waggle.models.shared.lora import RANK, SCALE, first_a, names

Parameters = Mapping[str, torch.nn.Parameter]
READY_FROM = 1 << 18  # numbers of a weight: smaller ones gain nothing
PIECE = 1 << 25  # numbers that are made ready at a time: whoever asks for a pause meanwhile waits no longer
Weigh = Callable[[torch.Tensor], torch.Tensor]


class FusedLinear:
    """Some linear layers, of the weights of a model: `prefix` and one of `parts` name each. They become views of one block."""

    def __init__(self, weights: Parameters, prefix: str, parts: Sequence[str], rank: int) -> None:
        self._weights = [weights[f"{prefix}{part}.weight"] for part in parts]
        self._biases = [weights.get(f"{prefix}{part}.bias") for part in parts]
        self._sizes = [len(weight) for weight in self._weights]
        self._weight = _one_block(self._weights)
        biases = [bias for bias in self._biases if bias is not None]  # of all parts, or of none
        self._bias = _one_block(biases) if biases else None
        self._lora = [_LoraAdapter(weight, f"{prefix}{part}") for weight, part in zip(self._weights, parts, strict=True) if rank]
        self._ready: Weigh | None = None
        self._ready_lora: tuple[torch.Tensor, torch.Tensor] | None = (
            None  # A of all parts (sum of ranks, in), B (out, sum of ranks)
        )

    @property
    def adapters(self) -> dict[str, torch.nn.Parameter]:
        return {name: parameter for lora in self._lora for name, parameter in lora.parameters.items()}

    def each(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """What each layer makes of (T, in)."""
        if torch.is_grad_enabled():
            parts = zip(self._weights, self._biases, strict=True)
            outputs = [F.linear(x, weight.to(x.dtype), _bias(bias, x)) for weight, bias in parts]
        elif self._ready is not None:
            whole = self._with_ready(self._ready, x)
            return torch.split(whole if self._bias is None else whole + self._bias.to(x.dtype), self._sizes, -1)
        else:
            outputs = list(torch.split(F.linear(x, self._weight.to(x.dtype), _bias(self._bias, x)), self._sizes, -1))
        return [lora.added(x, y) for lora, y in zip(self._lora, outputs, strict=True)] if self._lora else outputs

    def onto(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x (T, out) and what the only layer makes of y (T, in)."""
        (weight,), (bias,) = self._weights, self._biases
        if self._ready is not None and not torch.is_grad_enabled():
            output = self._with_ready(self._ready, y).add_(x)
            return output if bias is None else output + bias.to(y.dtype)
        output = torch.addmm(x, y, weight.to(y.dtype).t())
        if bias is not None:
            output = output + bias.to(y.dtype)
        return self._lora[0].added(y, output) if self._lora else output

    def make_ready(self, precision: torch.dtype, rows: int) -> None:
        """Copy the weights for products of about so many rows, where that pays. Adapters stay beside them: exact, and cheap."""
        self._ready = ready_weight(self._weight, precision, rows)
        if self._ready is not None and self._lora:
            a = torch.cat([lora.a.detach() for lora in self._lora])
            b = torch.block_diag(*(lora.b.detach() for lora in self._lora))  # type: ignore[no-untyped-call]
            self._ready_lora = (a.to(precision), b.to(precision).t().contiguous())

    def drop_ready(self) -> None:
        self._ready = self._ready_lora = None

    def _with_ready(self, ready: Weigh, x: torch.Tensor) -> torch.Tensor:
        """What all layers make of x (T, in), side by side, without their biases; the adapters of all as two products."""
        whole = ready(x)
        if self._ready_lora is None:
            return whole
        a, b = self._ready_lora
        return whole.addmm_(F.linear(x, a), b, alpha=SCALE)


class _LoraAdapter:
    """A and B of one linear layer, in fp32."""

    def __init__(self, weight: torch.Tensor, module: str) -> None:
        out, width = weight.shape
        self.a = torch.nn.Parameter(torch.from_numpy(first_a(module, width)).to(weight.device))
        self.b = torch.nn.Parameter(torch.zeros(out, RANK, dtype=torch.float32, device=weight.device))
        self.parameters = dict(zip(names(module), (self.a, self.b), strict=True))

    def added(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """y + 2 B A x."""
        narrow = F.linear(x, self.a.to(x.dtype))
        return torch.addmm(y, narrow, self.b.to(x.dtype).t(), alpha=SCALE)


def ready_weight(weight: torch.Tensor, precision: torch.dtype, rows: int) -> Weigh | None:
    """A product with (out, in) for decoding, or None where the weight as it is does as well."""
    if weight.device.type == "cpu" and weight.numel() >= READY_FROM and can_pack(precision):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(precision), rows)
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    if weight.dtype == precision:
        return None
    copied = weight.to(precision)
    return lambda x: F.linear(x, copied)


def ready_pieces(weight: torch.Tensor, precision: torch.dtype, rows: int, pause_point: Callable[[], None]) -> Weigh | None:
    """The same for a weight of any size, with a pause point after each piece of it."""
    pieces: list[Weigh] = []
    for piece in weight.chunk(-(-weight.numel() // PIECE)):
        ready = ready_weight(piece, precision, rows)
        if ready is None:
            return None
        pieces.append(ready)
        pause_point()
    return pieces[0] if len(pieces) == 1 else lambda x: torch.cat([part(x) for part in pieces], -1)


@functools.cache
def can_pack(precision: torch.dtype) -> bool:
    """Whether torch's private product with packed weights is here, and gives what the public one gives."""
    try:
        x, weight = torch.ones(2, 64, dtype=precision), torch.eye(64, dtype=precision)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 2)
        product = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):  # not built in, or changed: the public one serves
        return False
    return bool(torch.equal(product, x))


def _bias(bias: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor | None:
    return None if bias is None else bias.to(x.dtype)


def _one_block(parameters: Sequence[torch.nn.Parameter]) -> torch.Tensor:
    if len(parameters) == 1:
        return parameters[0].detach()
    block = torch.cat([parameter.data for parameter in parameters])
    for parameter, view in zip(parameters, torch.split(block, [len(weight) for weight in parameters]), strict=True):
        parameter.data = view
    return block
