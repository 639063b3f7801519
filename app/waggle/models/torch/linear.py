"""Linear layers that share an input, as one product where that is faster, with their LoRA adapters if there are any.

While decoding, a weight is used hundreds of times between two updates. So on a CPU it is copied into oneDNN's packed layout, in
the precision of the products. That operation of torch is private: if it is missing or gives wrong results, the plain weights are
used. While learning, torch chooses: in fp32 oneDNN takes 1 to 5 ms for every new shape, and each round has new shapes (measured:
the starter's rounds take 1.5 times as long), although on some processors oneDNN is twice as fast as MKL.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F

from waggle.models.shared.lora import RANK, SCALE, first_a, names

Parameters = Mapping[str, torch.nn.Parameter]
READY_FROM = 1 << 18  # elements of a weight; smaller ones gain nothing from packing
PIECE = 1 << 25  # elements that are packed between two pause points
Weigh = Callable[[torch.Tensor], torch.Tensor]


class FusedLinear:
    """The linear layers `prefix` + each of `parts`, whose weights become views of one block of memory."""

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
        """The output of each layer for x (T, in)."""
        if torch.is_grad_enabled():
            parts = zip(self._weights, self._biases, strict=True)
            outputs = [F.linear(x, weight.to(x.dtype), _bias(bias, x)) for weight, bias in parts]
        elif self._ready is not None:
            whole = self._with_ready(self._ready, x)
            return torch.split(whole if self._bias is None else whole + self._bias.to(x.dtype), self._sizes, -1)
        else:
            outputs = list(torch.split(F.linear(x, self._weight.to(x.dtype), _bias(self._bias, x)), self._sizes, -1))
        return [lora.add_to(x, y) for lora, y in zip(self._lora, outputs, strict=True)] if self._lora else outputs

    def onto(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x (T, out) plus the output of the only layer for y (T, in)."""
        (weight,), (bias,) = self._weights, self._biases
        if self._ready is not None and not torch.is_grad_enabled():
            output = self._with_ready(self._ready, y).add_(x)
            return output if bias is None else output + bias.to(y.dtype)
        output = torch.addmm(x, y, weight.to(y.dtype).t())
        if bias is not None:
            output = output + bias.to(y.dtype)
        return self._lora[0].add_to(y, output) if self._lora else output

    def make_ready(self, precision: torch.dtype, rows: int) -> None:
        """Copy the weights for products of about `rows` rows, if that pays. Adapters stay separate: exact, and cheap."""
        self._ready = ready_weight(self._weight, precision, rows)
        if self._ready is not None and self._lora:
            a = torch.cat([lora.a.detach() for lora in self._lora])
            b = torch.block_diag(*(lora.b.detach() for lora in self._lora))  # type: ignore[no-untyped-call]
            self._ready_lora = (a.to(precision), b.to(precision).t().contiguous())

    def drop_ready(self) -> None:
        self._ready = self._ready_lora = None

    def _with_ready(self, ready: Weigh, x: torch.Tensor) -> torch.Tensor:
        """The outputs of all layers for x (T, in), concatenated, without biases. All adapters together take two products."""
        whole = ready(x)
        if self._ready_lora is None:
            return whole
        a, b = self._ready_lora
        return whole.addmm_(F.linear(x, a), b, alpha=SCALE)


class _LoraAdapter:
    """The matrices A (rank, in) and B (out, rank) of one linear layer, in fp32."""

    def __init__(self, weight: torch.Tensor, module: str) -> None:
        out, width = weight.shape
        self.a = torch.nn.Parameter(torch.from_numpy(first_a(module, width)).to(weight.device))
        self.b = torch.nn.Parameter(torch.zeros(out, RANK, dtype=torch.float32, device=weight.device))
        self.parameters = dict(zip(names(module), (self.a, self.b), strict=True))

    def add_to(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """y + 2 B A x for rows x (T, in) and y (T, out)."""
        narrow = F.linear(x, self.a.to(x.dtype))
        return torch.addmm(y, narrow, self.b.to(x.dtype).t(), alpha=SCALE)


def ready_weight(weight: torch.Tensor, precision: torch.dtype, rows: int) -> Weigh | None:
    """A fast product with a weight (out, in) for decoding; None if the plain weight is as fast."""
    if weight.device.type == "cpu" and weight.numel() >= READY_FROM and can_pack(precision):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(precision), rows)
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    if weight.dtype == precision:
        return None
    copied = weight.to(precision)
    return lambda x: F.linear(x, copied)


def ready_pieces(weight: torch.Tensor, precision: torch.dtype, rows: int, pause_point: Callable[[], None]) -> Weigh | None:
    """`ready_weight` for a weight of any size, with a pause point after each piece."""
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
    """Whether torch's private product with packed weights exists and gives the results of the public one."""
    try:
        x, weight = torch.ones(2, 64, dtype=precision), torch.eye(64, dtype=precision)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 2)
        product = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):  # not built in, or with another signature
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
