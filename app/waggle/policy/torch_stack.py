"""A stack of torch policies: several nodes of one model shape sample and learn in one batch, each with its own weights.

Means exactly what a TorchPolicy for each member would mean; tests hold the two together. Made for laboratories, which play
many small nodes in one process. Left out: everything that `stacked_llama` leaves out, and saving.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from waggle.policy.stack_layout import Layout, text_row
from waggle.policy.stack_sampling import sample
from waggle.policy.stacked_llama import StackedLlama
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
from waggle.rl.objective import clipped, clipped_objective

BETAS = (0.9, 0.95)


class TorchStack:
    """M policies, addressed by number. Every call takes what some members ask for and answers each of them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.model = StackedLlama(folders)
        self._alone = [self.model.alone(member) for member in range(len(folders))]
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
        return {member: sample(self._alone[member], {0: wanted}, params)[0] for member, wanted in asked.items()}

    @torch.no_grad()
    def logprobs(self, asked: Mapping[int, Sequence[Written]], temperature: float) -> dict[int, list[Floats]]:
        """See `sapo.seams.Policy.logprobs`."""
        found = {}
        for member, texts in asked.items():
            layout, hidden = _forward(self._alone[member], texts)
            found[member] = layout.split(_head(self._alone[member], layout, hidden, temperature)[0])
        return found

    @torch.no_grad()
    def values(self, asked: Mapping[int, Sequence[Written]]) -> dict[int, list[Floats]]:
        """See `sapo.seams.Policy.values`."""
        found = {}
        for member, texts in asked.items():
            layout, hidden = _forward(self._alone[member], texts)
            found[member] = layout.split(self._alone[member].values(hidden)[0])
        return found

    def step(self, asked: Mapping[int, tuple[Sequence[GroupBatch], StepParams]]) -> dict[int, StepMetrics]:
        """One optimiser step of each member that asks; the others stay as they are.

        Member by member: a whole training set fills the products well, and one model's weights and activations fit a cache.
        """
        return {member: self._step(member, batches, params) for member, (batches, params) in asked.items()}

    def _step(self, member: int, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        model = self._alone[member]
        layout, hidden = _forward(model, batches)
        logp, entropy = _head(model, layout, hidden, params.temperature)
        loss, cut = _loss(logp, batches, params)
        if any(batch.returns is not None for batch in batches):
            loss = loss + _value_loss(model.values(hidden)[0], batches, params)
        model.backward(loss)
        return self._take(member, params, float(loss.detach()), cut, float(entropy.mean()))

    def _take(self, member: int, params: StepParams, loss: float, cut: float, entropy: float) -> StepMetrics:
        norm = torch.nn.utils.clip_grad_norm_([self._rows[member]], params.max_gradient_norm)
        if not torch.isfinite(norm):
            return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, entropy=0.0, taken=False)
        for group in self._optimisers[member].param_groups:
            group["lr"] = params.learning_rate
        self._optimisers[member].step()
        self._steps[member] += 1
        return StepMetrics(loss=loss, clip_fraction=cut, gradient_norm=float(norm), entropy=entropy)

    @property
    def members(self) -> int:
        return self.model.members


def _forward(model: StackedLlama, texts: Sequence[Written]) -> tuple[Layout, torch.Tensor]:
    """The hidden states (1, C, D) that predict one member's completion tokens."""
    layout = Layout([[text_row(text) for text in texts]])
    x = model.embed(layout.tokens)
    for layer in range(model.shape.layers):
        x = model.block(layer, x, layout.positions, layout.attend)
    return layout, layout.sources(x)


def _head(model: StackedLlama, layout: Layout, hidden: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(log-probs (C,), entropies (C,)) of one member's completion tokens."""
    scores = torch.log_softmax(model.logits(hidden)[0] / temperature, -1)
    with torch.no_grad():
        entropy = -(scores.exp() * scores).sum(-1)
    return scores.gather(-1, layout.targets[0, :, None])[:, 0], entropy


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
