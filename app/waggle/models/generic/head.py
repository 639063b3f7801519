"""Log-probs and the gradient of the objective, a few rows at a time, through any head; see `models/torch/fused_head.py`.

The gradient is computed in the forward pass, while the logits of those rows exist: that of the head's own weights is added to
their `.grad` at once. So `backward` must follow, once and unscaled.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from waggle.models.torch.fused_head import Objective

Head = Callable[[torch.Tensor], torch.Tensor]  # hidden states (n, D) -> logits (n, V) in fp32


def logprobs(normed: torch.Tensor, head: Head, targets: torch.Tensor, temperature: float, rows_at_once: int) -> torch.Tensor:
    """Log-probs (N,) of the targets, without a gradient."""
    parts = [_likely(head(normed[rows]), targets[rows], temperature) for rows in _parts(len(normed), rows_at_once)]
    return torch.cat(parts)


def objective_loss(
    normed: torch.Tensor, head: Head, targets: torch.Tensor, temperature: float, objective: Objective, rows_at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, a scalar with a gradient; log-probs (N,) without one)."""
    outputs: tuple[torch.Tensor, torch.Tensor] = _Head.apply(  # type: ignore[no-untyped-call]
        normed, head, targets, temperature, objective, rows_at_once
    )
    return outputs


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, normed: torch.Tensor, head: Head, targets: torch.Tensor, temperature: float, objective: Objective, at_once: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        pull, logp = torch.empty_like(normed), torch.empty(len(normed), dtype=torch.float32, device=normed.device)
        loss = torch.zeros((), dtype=torch.float32, device=normed.device)
        for rows in _parts(len(normed), at_once):
            with torch.enable_grad():
                some = normed[rows].detach().requires_grad_()
                likely = _likely(head(some), targets[rows], temperature)
                part = objective(likely, rows)
                part.backward()  # type: ignore[no-untyped-call]
            if some.grad is not None:
                pull[rows] = some.grad
            logp[rows], loss = likely.detach(), loss + part.detach()
        ctx.save_for_backward(pull)
        ctx.mark_non_differentiable(logp)
        return loss, logp

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (pull,) = ctx.saved_tensors
        return pull, None, None, None, None, None


def _parts(rows: int, at_once: int) -> Iterator[slice]:
    for first in range(0, rows, at_once):
        yield slice(first, min(rows, first + at_once))


def _likely(logits: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
    """The log-probs (n,) of the targets."""
    cooled = logits if temperature == 1.0 else logits / temperature
    return cooled.gather(-1, targets[:, None])[:, 0] - torch.logsumexp(cooled, -1)
