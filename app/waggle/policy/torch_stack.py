"""A stack of torch policies: several nodes of one model shape sample and learn in one batch, each with its own weights.

Means exactly what a TorchPolicy for each member would mean; tests hold the two together. Made for laboratories, which play
many small nodes in one process. Left out: everything that `stacked_llama` leaves out, and saving.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from waggle.policy.stack_layout import Layout, Row, prompt_row, text_row
from waggle.policy.stack_sampling import sample
from waggle.policy.stacked_llama import StackedLlama
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
from waggle.rl.objective import clipped, clipped_objective

BETAS = (0.9, 0.95)


class TorchStack:
    """M policies, addressed by number. Every call takes what some members ask for and answers each of them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.model = StackedLlama(folders)
        self._rows = [torch.nn.Parameter(row) for row in self.model.flat]  # views: the same memory
        for row, gradient in zip(self._rows, self.model.gradient, strict=True):
            row.grad = gradient
        self._optimisers = [
            torch.optim.AdamW([row], lr=0.0, betas=BETAS, eps=1e-8, weight_decay=0.0, fused=True) for row in self._rows
        ]
        self._steps = [0] * len(folders)

    def steps(self, member: int) -> int:
        """Optimiser steps taken so far."""
        return self._steps[member]

    @torch.no_grad()
    def sample(self, asked: Mapping[int, tuple[Sequence[Ids], Floats]], params: SampleParams) -> dict[int, list[list[Sampled]]]:
        """For each member its prompts and uniforms, as for `sapo.seams.Policy.sample`."""
        return sample(self.model, asked, params)

    @torch.no_grad()
    def logprobs(self, asked: Mapping[int, Sequence[Written]], temperature: float) -> dict[int, list[Floats]]:
        """See `sapo.seams.Policy.logprobs`."""
        layout, hidden = self._forward(asked)
        logp, _ = self._head(layout, hidden, temperature)
        return layout.split(logp)

    @torch.no_grad()
    def values(self, asked: Mapping[int, Sequence[Written]]) -> dict[int, list[Floats]]:
        """See `sapo.seams.Policy.values`."""
        layout, hidden = self._forward(asked)
        return layout.split(self.model.values(hidden))

    def step(self, asked: Mapping[int, tuple[Sequence[GroupBatch], StepParams]]) -> dict[int, StepMetrics]:
        """One optimiser step of each member that asks; the others stay as they are. One temperature for all."""
        batches = {member: batches for member, (batches, _) in asked.items()}
        (temperature,) = {params.temperature for _, params in asked.values()}
        layout, hidden = self._forward(batches)
        logp, entropy = self._head(layout, hidden, temperature)
        values = self.model.values(hidden) if any(b.returns is not None for each in batches.values() for b in each) else None
        losses, cuts = {}, {}
        for member, (groups, params) in asked.items():
            now = logp[member, : layout.counts[member]]
            losses[member], cuts[member] = _loss(now, groups, params)
            if values is not None and groups[0].returns is not None:
                losses[member] = losses[member] + _value_loss(values[member, : layout.counts[member]], groups, params)
        self.model.backward(torch.stack(list(losses.values())).sum())
        return {
            member: self._take(member, params, float(losses[member].detach()), cuts[member], layout.mean(entropy, member))
            for member, (_, params) in asked.items()
        }

    def _take(self, member: int, params: StepParams, loss: float, cut: float, entropy: float) -> StepMetrics:
        norm = torch.nn.utils.clip_grad_norm_([self._rows[member]], params.max_gradient_norm)
        if not torch.isfinite(norm):
            return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, entropy=0.0, taken=False)
        for group in self._optimisers[member].param_groups:
            group["lr"] = params.learning_rate
        self._optimisers[member].step()
        self._steps[member] += 1
        return StepMetrics(loss=loss, clip_fraction=cut, gradient_norm=float(norm), entropy=entropy)

    def _forward(self, asked: Mapping[int, Sequence[Written]]) -> tuple[Layout, torch.Tensor]:
        """The hidden states (M, C, D) that predict completion tokens."""
        rows: list[list[Row]] = [[text_row(text) for text in asked.get(m, ())] or [prompt_row([0])] for m in range(self.members)]
        layout = Layout(rows)
        x = self.model.embed(layout.tokens)
        for layer in range(self.model.shape.layers):
            x = self.model.block(layer, x, layout.positions, layout.attend)
        return layout, layout.sources(x)

    def _head(self, layout: Layout, hidden: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(log-probs (M, C), entropies (M, C)) of completion tokens."""
        scores = torch.log_softmax(self.model.logits(hidden) / temperature, -1)
        with torch.no_grad():
            entropy = -(scores.exp() * scores).sum(-1)
        return scores.gather(-1, layout.targets[..., None])[..., 0], entropy

    @property
    def members(self) -> int:
        return self.model.members


def _loss(logp: torch.Tensor, groups: Sequence[GroupBatch], params: StepParams) -> tuple[torch.Tensor, float]:
    advantage = torch.from_numpy(np.concatenate([group.advantage for group in groups]))
    weight = torch.from_numpy(np.concatenate([group.weight for group in groups]))
    known = [group.old_logp for group in groups if group.old_logp is not None]
    old = torch.from_numpy(np.concatenate(known)) if known else logp.detach()
    loss = clipped_objective(torch, logp, old, advantage, weight, params.clip)
    return loss, float((clipped(logp.detach(), old, advantage, params.clip) * weight).sum())


def _value_loss(values: torch.Tensor, groups: Sequence[GroupBatch], params: StepParams) -> torch.Tensor:
    returns = torch.from_numpy(np.concatenate([group.returns for group in groups if group.returns is not None]))
    weight = torch.from_numpy(np.concatenate([group.weight for group in groups]))
    return params.value_share * 0.5 * (weight * (values - returns) ** 2).sum()
