"""Decoding in torch: prompts prefilled once each, fanned out to G rows with caches of their own.

Left out: CUDA graphs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.policy.causal_lm import CausalLM
from waggle.policy.packing import prompt_cells, prompt_row
from waggle.policy.torch_packing import Packing, attention
from waggle.rl.batch import Floats, Ids, SampleParams


class TorchRows:
    """The rows of one call of `sample`; see `decoding.Rows`."""

    def __init__(
        self, model: CausalLM, device: torch.device, prompts: Sequence[Ids], group_size: int, params: SampleParams
    ) -> None:
        self._model, self._device, self._params = model, device, params
        self._caches: list[tuple[torch.Tensor, torch.Tensor]] = []  # keys and values, (rows, heads, L + max_new, width)
        self._longest = max(len(prompt) for prompt in prompts)  # L
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device).repeat_interleave(group_size)
        self._ahead = lengths  # the position of a row's first new token
        columns = torch.arange(self._longest + params.max_new, device=device)
        closed = (columns >= lengths[:, None]) & (columns < self._longest)  # padding between prompt and completion
        opened = torch.zeros(closed.shape, device=device, dtype=model.precision)
        self._mask = opened.masked_fill_(closed, -torch.inf)[:, None, None]
        self._logits = self._prefill(prompts, group_size)
        self._picked = lengths  # once picked: each row's newest token

    def _prefill(self, prompts: Sequence[Ids], group_size: int) -> torch.Tensor:
        """The logits (rows, V) after each row's prompt."""
        packing = Packing([prompt_row(prompt) for prompt in prompts], self._device, self._model.precision, buckets=1)
        flat = torch.from_numpy(prompt_cells(prompts).ravel()).to(self._device)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            self._caches.append(
                (self._fan_out(k, flat, len(prompts), group_size), self._fan_out(v, flat, len(prompts), group_size))
            )
            return packing.attend(layer, q, k, v)

        last = self._model.hidden(packing.tokens, packing.positions, attend).index_select(0, packing.sources)
        return self._model.logits(last, self._params.temperature).repeat_interleave(group_size, 0)

    def _fan_out(self, part: torch.Tensor, cells: torch.Tensor, prompts: int, group_size: int) -> torch.Tensor:
        """A prompt's keys or values (T, heads, width), computed once, into the cache of each of its rows."""
        cache = part.new_zeros((prompts, group_size, part.shape[1], self._longest + self._params.max_new, part.shape[2]))
        rows = part.index_select(0, cells).view(prompts, 1, self._longest, *part.shape[1:])
        cache[:, :, :, : self._longest] = rows.transpose(2, 3)
        return cache.flatten(0, 1)

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        scores = torch.log_softmax(self._logits, -1)
        chances = scores.exp().cumsum(-1)  # (rows, V)
        threshold = torch.from_numpy(uniforms).to(self._device)[:, None] * chances[:, -1:]
        picked = torch.searchsorted(chances, threshold, right=True).clamp(max=scores.shape[-1] - 1)  # (rows, 1)
        self._picked = picked[:, 0]
        return self._picked.cpu().numpy(), scores.gather(-1, picked)[:, 0].cpu().numpy()

    def keep(self, rows: NDArray[np.int64]) -> None:
        keep = torch.from_numpy(rows).to(self._device)
        for i, (keys, values) in enumerate(self._caches):  # one layer after another: the old cache of each goes first
            self._caches[i] = (keys.index_select(0, keep), values.index_select(0, keep))
        self._ahead, self._mask, self._picked = self._ahead[keep], self._mask[keep], self._picked[keep]

    def advance(self, column: int) -> None:
        at = self._longest + column
        mask = self._mask[..., : at + 1]

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._caches[layer]
            keys[:, :, at], values[:, :, at] = k, v
            found = attention(q[:, :, None], keys[:, :, : at + 1], values[:, :, : at + 1], mask)
            return found.flatten(1)

        hidden = self._model.hidden(self._picked, self._ahead + column, attend)
        self._logits = self._model.logits(hidden, self._params.temperature)
