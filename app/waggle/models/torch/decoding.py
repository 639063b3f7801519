"""Decoding in torch: each prompt is prefilled once, then G rows continue it with KV caches of their own."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.models.shared.decoding import DROP_BELOW, prefill_batches
from waggle.models.shared.packing import prompt_cells, prompt_row
from waggle.models.torch.model import TorchModel
from waggle.models.torch.packing import Packing
from waggle.models.torch.token_sampling import sample_tokens
from waggle.rl.batch import Floats, Ids, SamplingParams


class TorchDecodingBatch:
    """The rows of one call of `sample`; see `shared.decoding.DecodingBatch`.

    The keys and values of a prompt exist once for its G rows, so that each token reads fewer bytes.
    """

    drop_below = DROP_BELOW

    def __init__(
        self, model: TorchModel, device: torch.device, prompts: Sequence[Ids], group_size: int, params: SamplingParams
    ) -> None:
        self._model, self._device, self._params = model, device, params
        self._count = len(prompts) * group_size  # rows at the start
        self._places = torch.arange(self._count, device=device)  # the original number of each remaining row
        self._prompts: list[tuple[torch.Tensor, torch.Tensor]] = []  # keys and values, (P, heads, L, width)
        self._caches: list[tuple[torch.Tensor, torch.Tensor]] = []  # of completions, (rows, heads, max_new, width)
        self._longest = max(len(prompt) for prompt in prompts)  # L
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        self._ahead = lengths.repeat_interleave(group_size)  # the position of a row's first new token
        closed = torch.arange(self._longest, device=device) >= lengths[:, None]
        opened = torch.zeros(closed.shape, device=device, dtype=model.precision)
        self._mask = opened.masked_fill_(closed, -torch.inf)[:, None, None]  # (P, 1, 1, L)
        self._lengths = lengths[:, None, None, None]  # (P, 1, 1, 1) of the prompts
        self._windows = model.configuration.windows_within(self._longest + params.max_new)  # by layer
        self._logits = self._prefill(prompts, group_size)
        self._picked = self._ahead  # each row's newest token, after the first pick

    def _prefill(self, prompts: Sequence[Ids], group_size: int) -> torch.Tensor:
        """The logits (rows, V) after each row's prompt."""
        last, first = [], 0
        for some in prefill_batches(prompts, self._model.bytes_per_layer):
            last.append(self._run(some, first, group_size, len(prompts)))
            first += len(some)
        return self._model.logits(torch.cat(last), self._params.temperature).repeat_interleave(group_size, 0)

    def _run(self, prompts: Sequence[Ids], first: int, group_size: int, count: int) -> torch.Tensor:
        """Prefill prompts from number `first` on: fill their caches, and return the hidden states (P, D) after each."""
        packing = Packing([prompt_row(prompt) for prompt in prompts], self._device, self._model, buckets=1)
        cells = torch.from_numpy(prompt_cells(prompts)).to(self._device)  # (P, T)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            self._params.pause_point()
            if layer == len(self._caches):
                self._prompts.append((_room(k, count, self._longest), _room(v, count, self._longest)))
                rows, columns = count * group_size, self._params.max_new
                self._caches.append((_room(k, rows, columns), _room(v, rows, columns)))
            for cache, part in zip(self._prompts[layer], (k, v), strict=True):
                once = part.index_select(0, cells.flatten()).view(*cells.shape, *part.shape[1:]).transpose(1, 2)
                cache[first : first + len(prompts), :, : cells.shape[1]] = once
            return packing.attend(layer, q, k, v)

        return self._model.hidden(packing.tokens, packing.positions, attend).index_select(0, packing.sources)

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        noise = torch.from_numpy(uniforms).to(self._device)
        self._picked, likely = sample_tokens(self._logits, noise, self._params.top_p)
        return self._picked.cpu().numpy(), likely.cpu().numpy()

    def keep(self, rows: NDArray[np.int64]) -> None:
        keep = torch.from_numpy(rows).to(self._device)
        for i, (keys, values) in enumerate(self._caches):  # layer by layer, so that only one old cache exists beside the new ones
            self._caches[i] = (keys.index_select(0, keep), values.index_select(0, keep))
        self._ahead, self._places, self._picked = self._ahead[keep], self._places[keep], self._picked[keep]

    def advance(self, column: int) -> None:
        masks = {window: self._prompt_mask(window, column) for window in set(self._windows)}

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._caches[layer]
            keys[:, :, column], values[:, :, column] = k, v
            window = self._windows[layer]
            own = slice(0 if window is None else max(0, column + 1 - window), column + 1)
            return self._attention(layer, q, keys[:, :, own], values[:, :, own], masks[window])

        hidden = self._model.hidden(self._picked, self._ahead + column, attend)
        self._logits = self._model.logits(hidden, self._params.temperature)

    def _prompt_mask(self, window: int | None, column: int | torch.Tensor) -> torch.Tensor:
        """(P, 1, 1, L): what is added to the scores of the prompts' tokens for queries in a column of the completions."""
        if window is None:
            return self._mask
        ahead = self._lengths + column - torch.arange(self._longest, device=self._device)  # from each token to the query
        return self._mask.masked_fill(ahead >= window, -torch.inf)

    def _attention(
        self,
        layer: int,
        q: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        before: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of each row's query (heads, width) to its prompt and its own tokens: (rows, heads * width).

        `before` (P, 1, 1, L) is added to the scores of the prompts' tokens, `mask` (columns,) to those of its own tokens.
        """
        rows, shared, _, width = keys.shape
        prompt_keys, prompt_values = self._prompts[layer]
        queries = (q * width**-0.5).reshape(rows, shared, -1, width)  # stack the query heads that share keys
        times = queries.shape[2]
        shared_scores = self._to_rows(self._to_prompts(queries) @ prompt_keys.transpose(-1, -2) + before, times)
        own = queries @ keys.transpose(-1, -2)
        chances = torch.softmax(torch.cat((shared_scores, own if mask is None else own + mask), -1), -1)
        attended = self._to_rows(self._to_prompts(chances[..., : self._longest]) @ prompt_values, times)
        return (attended + chances[..., self._longest :] @ values).flatten(1)

    def _to_prompts(self, rows: torch.Tensor) -> torch.Tensor:
        """(rows, heads, times, X) -> (P, heads, G * times, X), with zeros for rows that were dropped."""
        if len(rows) < self._count:
            rows = rows.new_zeros((self._count, *rows.shape[1:])).index_copy_(0, self._places, rows)
        _, heads, times, last = rows.shape
        grouped = rows.reshape(len(self._mask), -1, heads, times, last)
        return grouped.transpose(1, 2).reshape(len(self._mask), heads, -1, last)

    def _to_rows(self, prompts: torch.Tensor, times: int) -> torch.Tensor:
        """The inverse of `_to_prompts`."""
        count, heads, _, last = prompts.shape
        rows = prompts.reshape(count, heads, -1, times, last).transpose(1, 2).reshape(-1, heads, times, last)
        return rows if len(self._places) == self._count else rows.index_select(0, self._places)


def _room(part: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """An empty cache (rows, heads, columns, width) for keys or values (T, heads, width)."""
    return part.new_zeros((rows, part.shape[1], columns, part.shape[2]))
