"""The fused head: log-probs and the gradient of the objective, a few rows at a time, without an (N, V) tensor.

The gradient is computed in the forward pass, while the logits of those rows exist. That of the weights is added to `.grad` at
once, because with a large vocabulary a second (V, D) tensor would not fit. So `backward` must follow, once and unscaled.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

BLOCK = 1 << 14  # rows of the weights' gradient at a time if it needs a wider precision: they stay in the cache
Objective = Callable[[torch.Tensor, slice], torch.Tensor]  # log-probs of some rows -> their loss


def logprobs(normed: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, at_once: int) -> torch.Tensor:
    """Log-probs (N,) of the targets, without a gradient. `at_once` bounds the logits in memory."""
    logp = torch.empty(len(normed), dtype=torch.float32, device=normed.device)
    product = weight.to(normed.dtype)
    for rows in _parts(len(normed), len(weight), at_once):
        chances, likely = _chances(_logits(normed[rows], product, temperature), targets[rows])
        logp[rows] = likely - chances.sum(-1).log()
        del chances  # or those of the next rows would be computed beside them
    return logp


def objective_loss(
    normed: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, objective: Objective, at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, a scalar with a gradient; log-probs (N,) without one). Adds to the gradient of `weight` (V, D) at once."""
    outputs: tuple[torch.Tensor, torch.Tensor] = _Head.apply(  # type: ignore[no-untyped-call]
        normed, weight, targets, temperature, objective, at_once
    )
    return outputs


def embed(weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """(T,) -> (T, D). The gradient is added to the rows of `weight.grad` that were looked up: no second (V, D) tensor."""
    if torch.is_grad_enabled() and weight.requires_grad:
        embedded: torch.Tensor = _Embedding.apply(weight, tokens)  # type: ignore[no-untyped-call]
        return embedded
    return F.embedding(tokens, weight)


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        normed: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        temperature: float,
        objective: Objective,
        at_once: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        pull = torch.empty_like(normed)
        logp = torch.empty(len(normed), dtype=torch.float32, device=normed.device)
        loss = torch.zeros((), dtype=torch.float32, device=normed.device)
        product = weight.detach().to(normed.dtype)
        for rows in _parts(len(normed), len(weight), at_once):
            scores = _logits(normed[rows], product, temperature)
            chances, likely = _chances(scores, targets[rows])  # in place of the logits
            total = chances.sum(-1)
            part, slope = _objective_gradient(likely - total.log(), rows, objective)
            logp[rows], loss = likely - total.log(), loss + part
            # d loss / d logit = slope * (onehot(target) - softmax(logits)), and logits were divided by the temperature
            slope = slope / temperature
            chances.mul_((-slope / total)[:, None]).scatter_add_(1, targets[rows, None], slope[:, None])
            down = chances.to(normed.dtype)
            torch.mm(down, product, out=pull[rows])
            if weight.requires_grad:
                _add_product(_gradient(weight), down, normed[rows])
            del scores, chances, down  # or those of the next rows would be computed beside them
        ctx.save_for_backward(pull)
        ctx.mark_non_differentiable(logp)
        return loss, logp

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (pull,) = ctx.saved_tensors
        return pull, None, None, None, None, None


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        ctx.weight, ctx.tokens = weight, tokens
        return F.embedding(tokens, weight.detach())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None]:
        _gradient(ctx.weight).index_add_(0, ctx.tokens, gradients[0].to(ctx.weight.dtype))
        return None, None


def _parts(rows: int, vocabulary: int, at_once: int) -> Iterator[slice]:
    size = max(1, at_once // vocabulary)
    for first in range(0, rows, size):
        yield slice(first, min(rows, first + size))


def _logits(normed: torch.Tensor, weight: torch.Tensor, temperature: float) -> torch.Tensor:
    cooled = normed if temperature == 1.0 else normed / temperature  # (n, D) is smaller than (n, V)
    return F.linear(cooled, weight).float()


def _chances(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """exp(logit - max) (n, V), not normalized, and logit - max (n,) of the targets. Overwrites `scores`."""
    scores.sub_(scores.amax(-1, keepdim=True))
    likely = scores.gather(-1, targets[:, None])[:, 0]
    return scores.exp_(), likely


def _objective_gradient(logp: torch.Tensor, rows: slice, objective: Objective) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of some rows, and its derivative by each of their log-probs (n,)."""
    with torch.enable_grad():
        variable = logp.detach().requires_grad_()
        loss = objective(variable, rows)
        (slope,) = torch.autograd.grad(loss, variable)
    return loss.detach(), slope


def _gradient(weight: torch.Tensor) -> torch.Tensor:
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad


def _add_product(gradient: torch.Tensor, down: torch.Tensor, normed: torch.Tensor) -> None:
    """gradient (V, D) += down (n, V)^T normed (n, D)."""
    if gradient.dtype == down.dtype:
        gradient.addmm_(down.t(), normed)
        return
    for first in range(0, len(gradient), BLOCK):
        gradient[first : first + BLOCK].add_(down[:, first : first + BLOCK].t() @ normed)
