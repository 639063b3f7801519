"""Decoding: the sampling loop of the torch policy, with prompts prefilled once each and noise from outside.

Left out: CUDA graphs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.policy.causal_lm import CausalLM
from waggle.policy.packing import Packing, attention, prompt_row
from waggle.rl.batch import Ids, Sampled, SampleParams

DROP_BELOW = 0.7  # rows are packed anew when so small a share of them is still at work


class Decoding:
    """One call of `sample`: prompts prefilled once each, fanned out to G rows, finished rows dropped."""

    def __init__(
        self, model: CausalLM, device: torch.device, prompts: Sequence[Ids], group_size: int, params: SampleParams
    ) -> None:
        self._model, self._device, self._params = model, device, params
        count = len(prompts) * group_size
        self._tokens = np.zeros((count, params.max_new), np.int32)
        self._logp = np.zeros((count, params.max_new), np.float32)
        self._lengths = np.zeros(count, np.int32)
        self._ended = np.zeros(count, np.bool_)
        self._rows = np.arange(count)  # which completion each row of the caches belongs to
        self._live = np.ones(count, np.bool_)  # of those rows
        self._caches: list[tuple[torch.Tensor, torch.Tensor]] = []  # keys and values, (rows, heads, L + max_new, width)
        self._longest = max(len(prompt) for prompt in prompts)  # L
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device).repeat_interleave(group_size)
        self._ahead = lengths  # the position of a row's first new token
        columns = torch.arange(self._longest + params.max_new, device=device)
        closed = (columns >= lengths[:, None]) & (columns < self._longest)  # padding between prompt and completion
        self._mask = torch.zeros(closed.shape, device=device).masked_fill_(closed, -torch.inf)[:, None, None]
        self._logits = self._prefill(prompts, group_size)

    def _prefill(self, prompts: Sequence[Ids], group_size: int) -> torch.Tensor:
        """The logits (rows, V) after each row's prompt."""
        packing = Packing([prompt_row(prompt) for prompt in prompts], self._device, buckets=1)
        cells = torch.zeros((len(prompts), self._longest), dtype=torch.int64)
        start = 0
        for i, prompt in enumerate(prompts):
            cells[i, : len(prompt)] = torch.arange(start, start + len(prompt))
            start += len(prompt)
        flat = cells.flatten().to(self._device)

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

    def finish(self, uniforms: torch.Tensor) -> list[Sampled]:
        """Decode until every row ended or reached the limit."""
        for column in range(self._params.max_new):
            self._params.pause_point()
            picked = self._take(column, uniforms)
            self._params.watch(self._tokens, self._lengths, self._ended)
            if not self._live.any() or column + 1 == self._params.max_new:
                break
            self._logits = self._decode(column, self._drop(picked))
        return [
            Sampled(tokens=self._tokens[i, :length].copy(), logp=self._logp[i, :length].copy(), ended=bool(self._ended[i]))
            for i, length in enumerate(self._lengths)
        ]

    def _take(self, column: int, uniforms: torch.Tensor) -> torch.Tensor:
        """Pick a token for every row by the inverse of its distribution, and keep those of live rows."""
        scores = torch.log_softmax(self._logits, -1)
        chances = scores.exp().cumsum(-1)  # (rows, V)
        threshold = uniforms[torch.as_tensor(self._rows, device=self._device), column, None] * chances[:, -1:]
        picked = torch.searchsorted(chances, threshold, right=True).clamp(max=scores.shape[-1] - 1)  # (rows, 1)
        tokens: NDArray[np.int64] = picked[:, 0].cpu().numpy()
        chosen = scores.gather(-1, picked)[:, 0].cpu().numpy()
        live = self._rows[self._live]
        self._tokens[live, column] = tokens[self._live]
        self._logp[live, column] = chosen[self._live]
        self._lengths[live] = column + 1
        stops = self._live & (tokens == self._params.stop)
        self._ended[self._rows[stops]] = True
        self._live &= ~stops
        return picked[:, 0]

    def _drop(self, picked: torch.Tensor) -> torch.Tensor:
        """Leave rows out that ended, where that saves enough; the tokens of those that stay."""
        if self._live.mean() > DROP_BELOW:
            return picked
        keep = torch.as_tensor(np.flatnonzero(self._live), device=self._device)
        for i, (keys, values) in enumerate(self._caches):  # one layer after another: the old cache of each goes first
            self._caches[i] = (keys.index_select(0, keep), values.index_select(0, keep))
        self._ahead, self._mask = self._ahead[keep], self._mask[keep]
        self._rows = self._rows[self._live]
        self._live = np.ones(len(self._rows), np.bool_)
        return picked[keep]

    def _decode(self, column: int, tokens: torch.Tensor) -> torch.Tensor:
        """The logits (rows, V) after one more token of every row."""
        at = self._longest + column
        mask = self._mask[..., : at + 1]

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._caches[layer]
            keys[:, :, at], values[:, :, at] = k, v
            found = attention(q[:, :, None], keys[:, :, : at + 1], values[:, :, : at + 1], mask)
            return found.flatten(1)

        return self._model.logits(self._model.hidden(tokens, self._ahead + column, attend), self._params.temperature)
