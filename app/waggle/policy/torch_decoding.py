"""Decoding: the sampling loop of the torch policy, with prompts prefilled once each and noise from outside.

Left out: packed weights, CUDA graphs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from transformers import DynamicCache

from waggle.rl.batch import Ids, Sampled, SampleParams


class Decoding:
    """One call of `sample`: prompts prefilled once each, fanned out to G rows, finished rows dropped."""

    def __init__(self, model: Any, device: torch.device, prompts: Sequence[Ids], group_size: int, params: SampleParams) -> None:
        self._model, self._device, self._params = model, device, params
        count = len(prompts) * group_size
        self._tokens = np.zeros((count, params.max_new), np.int32)
        self._logp = np.zeros((count, params.max_new), np.float32)
        self._lengths = np.zeros(count, np.int32)
        self._ended = np.zeros(count, np.bool_)
        self._rows = np.arange(count)  # which completion each live row of the cache belongs to
        self._cache = DynamicCache(config=model.config)
        self._logits = self._prefill(prompts, group_size)

    def _prefill(self, prompts: Sequence[Ids], group_size: int) -> torch.Tensor:
        longest = max(len(prompt) for prompt in prompts)
        ids = np.zeros((len(prompts), longest), np.int64)
        mask = np.zeros((len(prompts), longest), np.int64)
        for row, prompt in enumerate(prompts):  # padded on the left, so that every completion starts at one column
            ids[row, longest - len(prompt) :] = prompt
            mask[row, longest - len(prompt) :] = 1
        attention = torch.as_tensor(mask, device=self._device)
        positions = (attention.cumsum(-1) - 1).clamp(min=0)
        logits = self._call(torch.as_tensor(ids, device=self._device), attention, positions)
        self._cache.batch_repeat_interleave(group_size)
        self._mask = attention.repeat_interleave(group_size, 0)
        self._positions = (positions[:, -1:] + 1).repeat_interleave(group_size, 0)
        return logits.repeat_interleave(group_size, 0)

    def _call(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        answer = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = answer.logits[:, -1].float()
        return logits / self._params.temperature

    def finish(self, uniforms: torch.Tensor) -> list[Sampled]:
        """Decode until every row ended or reached the limit."""
        for column in range(self._params.max_new):
            self._params.pause_point()
            picked = self._take(column, uniforms)
            self._params.watch(self._tokens, self._lengths, self._ended)
            if not len(self._rows) or column + 1 == self._params.max_new:
                break
            self._mask = F.pad(self._mask, (0, 1), value=1)
            self._logits = self._call(picked[:, None], self._mask, self._positions)
            self._positions = self._positions + 1
        return [
            Sampled(tokens=self._tokens[i, :length].copy(), logp=self._logp[i, :length].copy(), ended=bool(self._ended[i]))
            for i, length in enumerate(self._lengths)
        ]

    def _take(self, column: int, uniforms: torch.Tensor) -> torch.Tensor:
        """Pick a token for every live row, keep it, and drop the rows that ended; the tokens of those that go on."""
        scores = torch.log_softmax(self._logits, -1)
        chances = scores.exp().cumsum(-1)  # (N, V)
        threshold = uniforms[torch.as_tensor(self._rows, device=self._device), column, None] * chances[:, -1:]
        picked = (chances <= threshold).sum(-1).clamp(max=scores.shape[-1] - 1)  # inverse CDF
        tokens: NDArray[np.int64] = picked.cpu().numpy()
        self._tokens[self._rows, column] = tokens
        self._logp[self._rows, column] = scores.gather(-1, picked[:, None])[:, 0].cpu().numpy()
        self._lengths[self._rows] = column + 1
        goes_on = tokens != self._params.stop
        if goes_on.all():
            return picked
        self._ended[self._rows[~goes_on]] = True
        self._rows = self._rows[goes_on]
        keep = torch.as_tensor(np.flatnonzero(goes_on), device=self._device)
        if len(self._rows):
            self._cache.batch_select_indices(keep)
            self._mask, self._positions = self._mask[keep], self._positions[keep]
        return picked[keep]
