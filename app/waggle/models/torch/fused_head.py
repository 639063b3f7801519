"""The head while learning: log-probs and the objective's gradient a few rows at a time, never an (N, V) tensor.

The gradient is made in the forward pass, while the scores of the rows are at hand; that of the weights is added to their `.grad`
at once, for beside a large vocabulary a second copy of it would not fit. So `backward` must follow, once and unscaled.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

BLOCK = 1 << 14  # rows of the weights' gradient that are made at once where it has to be widened: they stay in the cache
Objective = Callable[[torch.Tensor, slice], torch.Tensor]  # log-probs of some rows -> their loss


def logprobs(normed: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, at_once: int) -> torch.Tensor:
    """Log-probs (N,) of the targets, without a gradient; `at_once` is how many scores are held."""
    logp = torch.empty(len(normed), dtype=torch.float32, device=normed.device)
    product = weight.to(normed.dtype)
    for rows in _parts(len(normed), len(weight), at_once):
        chances, likely = _chances(_scores(normed[rows], product, temperature), targets[rows])
        logp[rows] = likely - chances.sum(-1).log()
    return logp


def objective_loss(
    normed: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, objective: Objective, at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the loss, a scalar with a gradient; the log-probs (N,) without one). `weight` (V, D) gets its gradient here."""
    outputs: tuple[torch.Tensor, torch.Tensor] = _Head.apply(  # type: ignore[no-untyped-call]
        normed, weight, targets, temperature, objective, at_once
    )
    return outputs


def embed(weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """(T,) -> (T, D); the gradient is added to the rows of `weight.grad` that were looked up, never a second (V, D)."""
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
            scores = _scores(normed[rows], product, temperature)
            chances, likely = _chances(scores, targets[rows])  # in the memory of the scores
            total = chances.sum(-1)
            part, slope = _slope(likely - total.log(), rows, objective)
            logp[rows], loss = likely - total.log(), loss + part
            # d loss / d score = slope * (1 at the target - chance), and the scores were divided by the temperature
            slope = slope / temperature
            chances.mul_((-slope / total)[:, None]).scatter_add_(1, targets[rows, None], slope[:, None])
            down = chances.to(normed.dtype)
            torch.mm(down, product, out=pull[rows])
            if weight.requires_grad:
                _add_product(_gradient(weight), down, normed[rows])
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


def _scores(normed: torch.Tensor, weight: torch.Tensor, temperature: float) -> torch.Tensor:
    cooled = normed if temperature == 1.0 else normed / temperature  # the smaller side of the product
    return F.linear(cooled, weight).float()


def _chances(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """exp(score - highest) (n, V), not yet normalised, and score - highest (n,) of the targets."""
    scores.sub_(scores.amax(-1, keepdim=True))
    likely = scores.gather(-1, targets[:, None])[:, 0]
    return scores.exp_(), likely


def _slope(logp: torch.Tensor, rows: slice, objective: Objective) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of some rows and what it gains with each of their log-probs (n,)."""
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
