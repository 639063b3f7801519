"""Decoding with a model of transformers: each prompt is prefilled once, and its cache repeated for its G rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.models.generic.model import GenericModel
from waggle.models.shared.decoding import DROP_BELOW, prefill_batches
from waggle.models.torch.token_sampling import sample_tokens
from waggle.rl.batch import Floats, Ids, SamplingParams

# padded   prompts of any length together, padded to the left
# equal    only prompts of equal length together
# again    as equal, and without a cache: the whole text runs again for every token
Caching = Literal["padded", "equal", "again"]
CACHINGS: tuple[Caching, ...] = ("padded", "equal", "again")  # from the fastest to the one that is always right
PREFILLED = 4  # batches of prompts of the fast path that are prefilled together: each later step takes a pass for each


@dataclass
class _Part:
    """Rows that run together. `rows` are their numbers among all rows, `text` (R, L) and `mask` (R, L) what they read so far."""

    rows: NDArray[np.int64]
    text: torch.Tensor
    mask: torch.Tensor
    ahead: torch.Tensor  # (R,) the position of the next token
    cache: Any
    logits: torch.Tensor  # (R, V) of the next token, divided by the temperature


class GenericDecodingBatch:
    """The rows of one call of `sample`; see `shared.decoding.DecodingBatch`."""

    drop_below = DROP_BELOW

    def __init__(
        self, model: GenericModel, caching: Caching, prompts: Sequence[Ids], group_size: int, params: SamplingParams
    ) -> None:
        self._model, self._caching, self._params = model, caching, params
        self._count = len(prompts) * group_size
        self._parts: list[_Part] = []
        with model.pausing(params.pause_point):
            for numbers in self._batches(prompts):
                params.pause_point()
                self._parts.append(self._prefill([prompts[number] for number in numbers], numbers, group_size))
        self._picked = torch.zeros(self._count, dtype=torch.int64, device=model.device)

    def _batches(self, prompts: Sequence[Ids]) -> list[list[int]]:
        """The numbers of the prompts that are prefilled together."""
        sets = [list(range(len(prompts)))]
        if self._caching != "padded":
            lengths = sorted({len(prompt) for prompt in prompts})
            sets = [[number for number, prompt in enumerate(prompts) if len(prompt) == length] for length in lengths]
        batches = []
        for numbers in sets:
            first = 0
            for some in prefill_batches(
                [prompts[number] for number in numbers], max(1, self._model.bytes_per_layer // PREFILLED)
            ):
                batches.append(numbers[first : first + len(some)])
                first += len(some)
        return batches

    def _prefill(self, prompts: Sequence[Ids], numbers: Sequence[int], group_size: int) -> _Part:
        model, longest = self._model, max(map(len, prompts))
        tokens, there = np.zeros((2, len(prompts), longest), np.int64)
        for i, prompt in enumerate(prompts):
            tokens[i, longest - len(prompt) :], there[i, longest - len(prompt) :] = prompt, 1
        text, mask = (torch.from_numpy(part).to(model.device) for part in (tokens, there))
        positions = (mask.cumsum(1) - 1).clamp_(min=0)
        if self._caching == "again":
            hidden, cache = model.hidden(text, None), None
        else:
            hidden, cache = model.continued(text, mask, positions)
        rows = torch.arange(len(prompts), device=model.device).repeat_interleave(group_size)
        return _Part(
            rows=(np.asarray(numbers)[:, None] * group_size + np.arange(group_size)).ravel(),
            text=text[rows], mask=mask[rows], ahead=mask.sum(1)[rows], cache=select(cache, rows),
            logits=self._cooled(hidden[:, -1])[rows],
        )  # fmt: skip

    def pick(self, uniforms: Floats) -> tuple[NDArray[np.int64], Floats]:
        likely = np.zeros(len(uniforms), np.float32)
        for part in self._parts:
            noise = torch.from_numpy(uniforms[part.rows]).to(self._model.device)
            tokens, scores = sample_tokens(part.logits, noise, self._params.top_p)
            self._picked[torch.from_numpy(part.rows).to(self._model.device)] = tokens
            likely[part.rows] = scores.cpu().numpy()
        return self._picked.cpu().numpy(), likely

    def logits(self) -> torch.Tensor:
        """The logits (rows, V) of the next tokens."""
        result = torch.zeros((self._count, self._parts[0].logits.shape[1]), device=self._model.device)
        for part in self._parts:
            result[torch.from_numpy(part.rows).to(self._model.device)] = part.logits
        return result

    def force(self, tokens: torch.Tensor) -> None:
        """Pick these tokens (rows,)."""
        self._picked = tokens

    def keep(self, rows: NDArray[np.int64]) -> None:
        places = np.full(len(self._picked), -1)
        places[rows] = np.arange(len(rows))
        self._picked = self._picked[torch.from_numpy(rows).to(self._model.device)]
        parts = []
        for part in self._parts:
            stay = np.flatnonzero(places[part.rows] >= 0)
            if len(stay):
                chosen = torch.from_numpy(stay).to(self._model.device)
                part.rows = places[part.rows[stay]]
                part.text, part.mask, part.ahead = part.text[chosen], part.mask[chosen], part.ahead[chosen]
                part.cache = select(part.cache, chosen)
                parts.append(part)
        self._parts = parts

    def advance(self, column: int) -> None:
        for part in self._parts:
            tokens = self._picked[torch.from_numpy(part.rows).to(self._model.device)][:, None]
            part.mask = torch.cat((part.mask, torch.ones_like(tokens)), 1)
            if self._caching == "again":
                part.text = torch.cat((part.text, tokens), 1)
                hidden = self._model.hidden(part.text, None)
            else:
                positions = part.ahead[:, None] + column
                hidden, part.cache = self._model.continued(tokens, part.mask, positions, part.cache)
            part.logits = self._cooled(hidden[:, -1])

    def _cooled(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = self._model.logits(hidden)
        return logits if self._params.temperature == 1.0 else logits / self._params.temperature


def select(cache: Any, rows: torch.Tensor) -> Any:
    """These rows of a cache, in this order; a row may be there several times."""
    if cache is None:
        return None
    if isinstance(cache, list | tuple):  # RWKV
        return [state.index_select(0, rows) for state in cache]
    cache.reorder_cache(rows)
    return cache
