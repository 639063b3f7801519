"""Two optimizers behind one protocol: AdamW for fp32 parameters, and Adafactor, with little memory, for bfloat16 weights."""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.adamw import adamw

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import is_bits
from waggle.models.storage.checkpoint import Arrays
from waggle.rl.random_streams import generator

BETAS = (0.9, 0.95)
DECAY = 0.8  # Adafactor, section 7: beta2 of step t is 1 - t^-0.8
TINY = 1e-30  # Adafactor's epsilon_1, added to squared gradients
BLOCK = 1 << 22  # elements that are in fp32 at a time
ALL_BITS = (-(1 << 63), (1 << 63) - 1)
Parameters = Mapping[str, torch.nn.Parameter]


class Optimizer(Protocol):
    """Updates named parameters from their `.grad`."""

    def add(self, parameters: Parameters) -> None: ...

    def drop(self, parameters: Parameters) -> None: ...

    def step(self, learning_rate: float) -> None: ...

    def steps(self, parameters: Parameters) -> int:
        """The number of steps that these parameters have taken."""
        ...

    def moments(self, parameters: Parameters) -> Arrays:
        """The moments for a checkpoint: `KIND.NAME` for each parameter."""
        ...

    def restore(self, parameters: Parameters, moments: Arrays, steps: int) -> None:
        """Load moments; without moments of this optimizer, start with none."""
        ...


def array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """A tensor as fp32, which represents every bfloat16 number exactly; a view if it is fp32 on the CPU."""
    return tensor.detach().float().cpu().contiguous().numpy()


def tensor(values: NDArray[Any]) -> torch.Tensor:
    """A tensor over the same memory; bits of bfloat16 (`is_bits`) become bfloat16."""
    result = torch.from_numpy(values)
    return result.view(torch.bfloat16) if is_bits(values) else result


def optimizer_for(training: TrainingMode, parameters: Parameters) -> Optimizer:
    """The optimizer of a training mode. AdamW gets fp32 parameters only: rounding to bfloat16 would lose its updates."""
    if training.optimizer == "adafactor":
        return Adafactor(parameters)
    return AdamW(parameters)


class AdamW:
    """AdamW (arXiv 1711.05101) by torch's fused kernel, without weight decay. Raises ModelError for parameters that are not fp32.

    The class `torch.optim.AdamW` gives the same bits, but imports torch's compiler: 2.8 s and 60 MB more at the first step. Its
    state is numbered, not named, while a value head may join and leave (decision 28).
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters: dict[str, torch.nn.Parameter] = {}
        self._moments: dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}  # first moment, second moment, steps
        self.add(parameters)

    def add(self, parameters: Parameters) -> None:
        _require_fp32(parameters)
        self._parameters |= parameters

    def drop(self, parameters: Parameters) -> None:
        for name in parameters:
            self._parameters.pop(name, None)
            self._moments.pop(name, None)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        moved = {name: parameter for name, parameter in self._parameters.items() if parameter.grad is not None}
        for name, parameter in moved.items():
            if name not in self._moments:
                self._moments[name] = (torch.zeros_like(parameter), torch.zeros_like(parameter), _count(0, parameter))
        first, second, steps = ([self._moments[name][kind] for name in moved] for kind in range(3))
        gradients = [parameter.grad for parameter in moved.values() if parameter.grad is not None]
        adamw(
            list(moved.values()), gradients, first, second, [], steps, lr=learning_rate, beta1=BETAS[0], beta2=BETAS[1],
            eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, fused=True,
        )  # fmt: skip

    def steps(self, parameters: Parameters) -> int:
        return max((int(self._moments[name][2]) for name in parameters if name in self._moments), default=0)

    def moments(self, parameters: Parameters) -> Arrays:
        arrays: Arrays = {}
        for name, parameter in parameters.items():
            first, second, _ = self._moments.get(name) or (torch.zeros_like(parameter),) * 3
            arrays[f"exp_avg.{name}"], arrays[f"exp_avg_sq.{name}"] = array(first), array(second)
        return arrays

    def restore(self, parameters: Parameters, moments: Arrays, steps: int) -> None:
        for name, parameter in parameters.items():
            self._moments.pop(name, None)
            if not steps or f"exp_avg.{name}" not in moments:
                continue
            first = torch.tensor(moments.pop(f"exp_avg.{name}"), device=parameter.device)
            second = torch.tensor(moments.pop(f"exp_avg_sq.{name}"), device=parameter.device)
            self._moments[name] = (first, second, _count(steps, parameter))


def _count(steps: int, beside: torch.Tensor) -> torch.Tensor:
    """The step count as torch's kernel expects it."""
    return torch.tensor(float(steps), dtype=torch.float32, device=beside.device)


class Adafactor:
    """Adafactor (arXiv 1804.04235): a factored second moment (rows and columns), no first moment, updates clipped to an RMS of 1.

    bfloat16 weights are rounded stochastically, so that small updates are right on average. Left out: relative step sizes
    (section 8).
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = dict(parameters)
        self._moments: dict[str, list[torch.Tensor]] = {}
        self._steps: dict[str, int] = {}

    def add(self, parameters: Parameters) -> None:
        self._parameters |= parameters

    def drop(self, parameters: Parameters) -> None:
        for name in parameters:
            self._parameters.pop(name, None)
            self._moments.pop(name, None)
            self._steps.pop(name, None)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        for name, parameter in self._parameters.items():
            if parameter.grad is None:
                continue
            number = self._steps[name] = self._steps.get(name, 0) + 1
            if name not in self._moments:
                sizes = _sizes(parameter)
                self._moments[name] = [torch.zeros(size, dtype=torch.float32, device=parameter.device) for size in sizes]
            moments = self._moments[name]
            gradient, matrix = _matrix(parameter.grad), _matrix(parameter.data)
            keep = 1.0 - number**-DECAY
            for moment, mean in zip(moments, _mean_squares(gradient), strict=True):
                moment.mul_(keep).add_(mean, alpha=1.0 - keep)
            self._move(name, number, matrix, gradient, learning_rate)

    def _move(self, name: str, number: int, matrix: torch.Tensor, gradient: torch.Tensor, learning_rate: float) -> None:
        blocks = list(_blocks(matrix))
        square = sum(float(self._update(name, gradient[rows], rows).square_().sum()) for rows in blocks)
        size = learning_rate / max(1.0, (square / matrix.numel()) ** 0.5)
        noise = torch.Generator(matrix.device)
        noise.manual_seed(int(generator(0, "rounding", number, zlib.crc32(name.encode())).integers(1 << 63)))
        for rows in blocks:
            moved = matrix[rows].float().sub_(self._update(name, gradient[rows], rows), alpha=size)
            matrix[rows] = moved if matrix.dtype == torch.float32 else _round_stochastically(moved, noise)

    def _update(self, name: str, gradient: torch.Tensor, rows: slice) -> torch.Tensor:
        """The gradient divided by the square root of its second moment, in fp32."""
        row, *column = self._moments[name]
        if column:
            return (gradient / (row[rows, None] / row.mean()).sqrt_()).div_(column[0].sqrt())
        return gradient / row[None].sqrt()

    def steps(self, parameters: Parameters) -> int:
        return max((self._steps.get(name, 0) for name in parameters), default=0)

    def moments(self, parameters: Parameters) -> Arrays:
        arrays: Arrays = {}
        for name in parameters.keys() & self._moments.keys():
            for kind, moment in zip(("row", "column"), self._moments[name], strict=False):
                arrays[f"{kind}.{name}"] = array(moment)
        return arrays

    def restore(self, parameters: Parameters, moments: Arrays, steps: int) -> None:
        for name, parameter in parameters.items():
            kinds = [f"{kind}.{name}" for kind in ("row", "column")][: len(_sizes(parameter))]
            self._moments.pop(name, None)
            self._steps.pop(name, None)
            if steps and all(kind in moments for kind in kinds):
                self._moments[name] = [torch.tensor(moments[kind], device=parameter.device) for kind in kinds]
                self._steps[name] = steps


def _require_fp32(parameters: Parameters) -> None:
    lossy = [name for name, parameter in parameters.items() if parameter.dtype != torch.float32]
    if lossy:
        raise ModelError(Message("%1 would be trained in %2 and lose its updates.", lossy[0], parameters[lossy[0]].dtype))


def _sizes(parameter: torch.Tensor) -> list[int]:
    """The sizes of a parameter's moments: rows and columns of a matrix, elements of a vector."""
    return list(parameter.shape) if parameter.dim() == 2 and len(parameter) > 1 else [parameter.numel()]


def _matrix(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dim() == 2 else tensor.view(1, -1)


def _blocks(matrix: torch.Tensor) -> Iterator[slice]:
    size = max(1, BLOCK // matrix.shape[1])
    for first in range(0, len(matrix), size):
        yield slice(first, first + size)


def _mean_squares(gradient: torch.Tensor) -> list[torch.Tensor]:
    """Mean squares of the rows (R,) and columns (C,); for a single row, the squares of its elements."""
    if len(gradient) == 1:
        return [gradient[0].float().square().add_(TINY)]
    rows, columns = [], torch.zeros(gradient.shape[1], dtype=torch.float32, device=gradient.device)
    for block in _blocks(gradient):
        squares = gradient[block].float().square().add_(TINY)
        rows.append(squares.mean(1))
        columns += squares.sum(0)
    return [torch.cat(rows), columns / len(gradient)]


def _round_stochastically(values: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    """Round fp32 to bfloat16 stochastically, with the right mean: 16 bits are dropped, so 16 random bits are added."""
    count = values.numel()
    drawn = torch.randint(*ALL_BITS, (-(-count // 4),), dtype=torch.int64, device=values.device, generator=noise)
    signed = drawn.view(torch.int16)[:count].view(values.shape)  # four random int16 in each int64
    bits = values.view(torch.int32).add_(signed).add_(1 << 15)
    return bits.bitwise_and_(-(1 << 16)).view(torch.float32).to(torch.bfloat16)
