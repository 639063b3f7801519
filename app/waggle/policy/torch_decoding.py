"""Decoding in torch: prompts prefilled once each, fanned out to G rows with caches of their own.

Left out: CUDA graphs.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.policy.causal_lm import CausalLM
from waggle.policy.packing import prompt_cells, prompt_row
from waggle.policy.torch_packing import Packing, attention
from waggle.policy.torch_pick import pick
from waggle.rl.batch import Floats, Ids, SampleParams

PREFILL_BYTES = 1 << 26  # of one layer's activations: so many tokens of prompts are run together


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
        """The logits (rows, V) after each row's prompt; so many prompts at a time that a pause need not wait long."""
        last, first = [], 0
        for some in self._at_once(prompts):
            last.append(self._run(some, first * group_size, group_size, len(prompts)))
            first += len(some)
        return self._model.logits(torch.cat(last), self._params.temperature).repeat_interleave(group_size, 0)

    def _at_once(self, prompts: Sequence[Ids]) -> Iterator[list[Ids]]:
        room, some = max(1, PREFILL_BYTES // self._model.bytes_per_layer), list[Ids]()
        for prompt in prompts:
            if some and sum(map(len, some)) + len(prompt) > room:
                yield some
                some = []
            some.append(prompt)
        yield some

    def _run(self, prompts: Sequence[Ids], first: int, group_size: int, count: int) -> torch.Tensor:
        """The states (P, D) after each of some prompts, whose rows begin at `first`; their keys and values go into the caches."""
        packing = Packing([prompt_row(prompt) for prompt in prompts], self._device, self._model.precision, buckets=1)
        cells = torch.from_numpy(prompt_cells(prompts)).to(self._device)  # (P, T)
        rows = slice(first, first + len(prompts) * group_size)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            self._params.pause_point()
            if layer == len(self._caches):
                self._caches.append((self._cache(k, count * group_size), self._cache(v, count * group_size)))
            for cache, part in zip(self._caches[layer], (k, v), strict=True):
                once = part.index_select(0, cells.flatten()).view(*cells.shape, *part.shape[1:]).transpose(1, 2)
                cache[rows, :, : cells.shape[1]] = once.repeat_interleave(group_size, 0)
            return packing.attend(layer, q, k, v)

        return self._model.hidden(packing.tokens, packing.positions, attend).index_select(0, packing.sources)

    def _cache(self, part: torch.Tensor, rows: int) -> torch.Tensor:
        """Room for the keys or values of every row, prompt and completion."""
        return part.new_zeros((rows, part.shape[1], self._longest + self._params.max_new, part.shape[2]))

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        noise = torch.from_numpy(uniforms).to(self._device)
        self._picked, likely = pick(self._logits, noise, self._params.top_p)
        return self._picked.cpu().numpy(), likely.cpu().numpy()

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
