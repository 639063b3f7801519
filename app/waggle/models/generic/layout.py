"""How a group runs through a model of transformers: packed with its prompt once, in padded rows, or row by row.

packed   the prompt, then all completions beside each other, with a 4-D mask and positions that all start after the prompt
rows     the prompt with each completion as a row, padded to the right
row      each of these rows alone
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from waggle.models.generic.model import GenericModel, Mask
from waggle.models.shared.packing import Row, group_row
from waggle.rl.batch import Floats, TokenizedGroup

Layout = Literal["packed by layer", "packed", "rows", "row"]
LAYOUTS: tuple[Layout, ...] = ("packed by layer", "packed", "rows", "row")  # from the fastest to the one that is always right
FULL, WINDOW = "full_attention", "sliding_attention"  # types of layers
OWN_WINDOWS = ("window_size", "attention_chunk_size")  # settings of windows that no mask reaches


@dataclass(frozen=True)
class CompletionTargets:
    """The completion tokens (N,) of some groups, and how many of them belong to each."""

    targets: torch.Tensor
    lengths: tuple[int, ...]

    def split(self, values: torch.Tensor) -> list[Floats]:
        """(N,) as an array for each group."""
        return list(np.split(values.float().cpu().numpy().copy(), np.cumsum(self.lengths)[:-1]))


def targets_of(texts: Sequence[TokenizedGroup], device: torch.device) -> CompletionTargets:
    """The completion tokens of some groups."""
    flat = np.concatenate([tokens for text in texts for tokens in text.completions]).astype(np.int64)
    return CompletionTargets(torch.from_numpy(flat).to(device), tuple(sum(map(len, text.completions)) for text in texts))


def hidden_states(model: GenericModel, text: TokenizedGroup, layout: Layout) -> torch.Tensor:
    """The hidden states (N, D) that predict the completion tokens of a group."""
    if layout in ("packed by layer", "packed"):
        return _packed(model, group_row(text), by_layer=layout == "packed by layer")
    if layout == "rows":
        return _padded(model, text)
    return torch.cat([_padded(model, text.part(i, i + 1)) for i in range(len(text.completions))])


def can_pack(model: GenericModel, layout: Layout) -> bool:
    """Whether a layout may be tried: not if the model has windows that it builds itself, or if its layers are of one type."""
    config = model.text_config
    if layout == "packed by layer":
        types = set(getattr(config, "layer_types", None) or ())
        return len(types) > 1 and types <= {FULL, WINDOW}
    return layout != "packed" or not any(getattr(config, name, None) for name in OWN_WINDOWS)


def _packed(model: GenericModel, row: Row, *, by_layer: bool) -> torch.Tensor:
    tokens, positions, sources = (torch.from_numpy(part).to(model.device) for part in (row.tokens, row.positions, row.sources))
    hidden = model.hidden(tokens[None], _mask(model, row, by_layer=by_layer), positions[None])
    return hidden[0].index_select(0, sources)


def _mask(model: GenericModel, row: Row, *, by_layer: bool) -> Mask:
    """(1, 1, T, T), or one for each type of layer: what each token sees, as numbers to add to the scores."""
    window = getattr(model.text_config, "sliding_window", None)
    if by_layer:
        return {FULL: _scores(model, row, None), WINDOW: _scores(model, row, window)}
    return _scores(model, row, window)


def _scores(model: GenericModel, row: Row, window: int | None) -> torch.Tensor:
    owner = np.repeat(np.arange(-1, len(row.completions)), (row.prompt, *row.completions))  # -1: the prompt
    ahead = row.positions[:, None] - row.positions  # (T, T)
    sees = ((owner == -1) | (owner == owner[:, None])) & (ahead >= 0)
    if window:
        sees &= ahead < window
    closed = torch.from_numpy(~sees).to(model.device)
    scores = torch.zeros(closed.shape, dtype=model.precision, device=model.device)
    return scores.masked_fill_(closed, torch.finfo(model.precision).min)[None, None]


def _padded(model: GenericModel, text: TokenizedGroup) -> torch.Tensor:
    start, lengths = len(text.prompt), [len(tokens) for tokens in text.completions]
    tokens = np.full((len(lengths), start + max(lengths)), text.prompt[0], np.int64)  # of padding, which nothing reads
    there = np.zeros_like(tokens)
    for i, completion in enumerate(text.completions):
        tokens[i, : start + lengths[i]] = np.concatenate([text.prompt, completion])
        there[i, : start + lengths[i]] = 1
    rows = np.repeat(np.arange(len(lengths)), lengths)
    sources = np.concatenate([np.arange(start - 1, start - 1 + length) for length in lengths])
    ids, mask = (torch.from_numpy(part).to(model.device) for part in (tokens, there))
    hidden = model.hidden(ids, mask if len(set(lengths)) > 1 else None)
    return hidden[torch.from_numpy(rows).to(model.device), torch.from_numpy(sources).to(model.device)]
