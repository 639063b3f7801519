"""Sampling for a stack: every prompt's keys and values computed once and shared by its completions; finished rows dropped."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from waggle.policy.stack_layout import Layout, prompt_row
from waggle.policy.stacked_llama import StackedLlama
from waggle.rl.batch import Floats, Ids, Sampled, SampleParams

DROP_BELOW = 0.6  # rows are packed anew when so small a share of them is still at work


def sample(
    model: StackedLlama, asked: Mapping[int, tuple[Sequence[Ids], Floats]], params: SampleParams
) -> dict[int, list[list[Sampled]]]:
    """G completions of each prompt of each member. One G for all."""
    (group_size,) = {len(uniforms) // len(prompts) for prompts, uniforms in asked.values()}
    counts = [len(asked[m][0]) if m in asked else 0 for m in range(model.members)]
    most = max(counts)
    prompts = [[list(prompt) for prompt in asked[m][0]] if m in asked else [] for m in range(model.members)]
    filled = [each + [[0]] * (most - len(each)) for each in prompts]
    noise = np.zeros((model.members, most, group_size, params.max_new), np.float32)
    for m, (_, uniforms) in asked.items():
        noise[m, : counts[m]] = uniforms.reshape(counts[m], group_size, -1)
    run = _Decoding(model, filled, torch.from_numpy(noise), params)
    run.finish([[i < counts[m] for i in range(most)] for m in range(model.members)])
    return {m: [run.completions(m, range(i * group_size, (i + 1) * group_size)) for i in range(counts[m])] for m in asked}


class _Decoding:
    """M members, R prompts each, G completions of each prompt. Caches are (M * R, ...), results (M, all rows, ...).

    Once rows are dropped, every completion that is left counts as a prompt of its own, with G = 1.
    """

    def __init__(
        self, model: StackedLlama, prompts: Sequence[Sequence[Sequence[int]]], noise: torch.Tensor, params: SampleParams
    ) -> None:
        self._model, self._params = model, params
        self._members, count, self._group, self._longest = noise.shape
        self._noise = noise.flatten(1, 2)
        self._tokens = torch.zeros(self._noise.shape, dtype=torch.int64)
        self._logp = torch.zeros(self._noise.shape)
        self._lengths = torch.zeros(self._noise.shape[:2], dtype=torch.int64)
        self._ended = torch.zeros(self._noise.shape[:2], dtype=torch.bool)
        self._row = torch.arange(count * self._group).view(count, -1).repeat(self._members, 1, 1)  # (M, R, G) who is where
        self._keys: list[torch.Tensor] = []  # of the prompts: (M * R, heads, width, L)
        self._values: list[torch.Tensor] = []  # (M * R, heads, L, width)
        shape = model.shape
        size = (self._members * count, shape.key_value_heads, self._group, self._longest, shape.head_width)
        self._own_keys = [torch.zeros(size) for _ in range(shape.layers)]
        self._own_values = [torch.zeros(size) for _ in range(shape.layers)]
        self._first = self._prefill(prompts)

    def _prefill(self, prompts: Sequence[Sequence[Sequence[int]]]) -> torch.Tensor:
        """The logits after each prompt, (M, R, V)."""
        layout = Layout([[prompt_row(prompt) for prompt in each] for each in prompts], buckets=1)
        (bucket,) = layout.buckets
        lengths = [len(prompt) for each in prompts for prompt in each]
        order = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")  # where the bucket put each row
        place = torch.from_numpy(order)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            rows = [
                part.flatten(0, 1).index_select(0, bucket.cells).view(*bucket.shape, *part.shape[2:]).index_select(0, place)
                for part in (k, v)
            ]
            self._keys.append(rows[0].permute(0, 2, 3, 1).contiguous())
            self._values.append(rows[1].transpose(1, 2).contiguous())
            return layout.attend(layer, q, k, v)

        x = self._model.embed(layout.tokens)
        for layer in range(self._model.shape.layers):
            x = self._model.block(layer, x, layout.positions, attend)
        self._ahead = torch.tensor(lengths)  # (M * R,) the position of a completion's first token
        self._closed = torch.zeros(len(lengths), bucket.shape[1])
        self._closed.masked_fill_(torch.arange(bucket.shape[1])[None] >= self._ahead[:, None], -torch.inf)
        last = self._ahead.view(self._members, -1).cumsum(-1) - 1
        return self._model.logits(x[torch.arange(self._members)[:, None], last])

    def finish(self, real: Sequence[Sequence[bool]]) -> None:
        """Decode until every real row ended or reached the limit."""
        self._done = ~torch.tensor(real)[:, :, None].expand(-1, -1, self._group).clone()
        logits = self._first[:, :, None].expand(-1, -1, self._group, -1)
        for column in range(self._longest):
            self._params.pause_point()
            tokens = self._take(column, logits)
            if bool(self._done.all()) or column + 1 == self._longest:
                return
            tokens = self._drop(tokens)
            logits = self._decode(column, tokens)

    def _take(self, column: int, logits: torch.Tensor) -> torch.Tensor:
        """Pick a token for every live row by the inverse of its distribution; (M, R, G)."""
        scores = torch.log_softmax(logits / self._params.temperature, -1)
        chances = scores.exp().cumsum(-1)
        member = torch.arange(self._members)[:, None, None]
        threshold = self._noise[member, self._row, column][..., None] * chances[..., -1:]
        picked = torch.searchsorted(chances, threshold, right=True)[..., 0].clamp(max=scores.shape[-1] - 1)
        chosen = scores.gather(-1, picked[..., None])[..., 0]
        live = ~self._done
        at = (member.expand_as(live)[live], self._row[live])
        self._tokens[(*at, column)] = picked[live]
        self._logp[(*at, column)] = chosen[live]
        self._lengths[at] = column + 1
        stops = live & (picked == self._params.stop)
        self._ended[at] = stops[live]
        self._done = self._done | stops
        return picked

    def _drop(self, tokens: torch.Tensor) -> torch.Tensor:
        """Leave out completions that ended, where that saves enough."""
        live = ~self._done.flatten(1)  # (M, R * G)
        most = int(live.sum(-1).max())
        if most > DROP_BELOW * live.shape[1]:
            return tokens
        order = torch.argsort((~live).int(), dim=1, stable=True)[:, :most]  # (M, R') live rows first
        member = torch.arange(self._members)[:, None]
        rows = (member * live.shape[1] + order).flatten()
        prompts = rows // self._group
        for shared in (self._keys, self._values):
            shared[:] = [cache.index_select(0, prompts) for cache in shared]
        for own in (self._own_keys, self._own_values):
            own[:] = [cache.transpose(1, 2).flatten(0, 1).index_select(0, rows)[:, :, None] for cache in own]
        self._closed, self._ahead = self._closed[prompts], self._ahead[prompts]
        self._row, self._done, tokens = (part.flatten(1)[member, order][..., None] for part in (self._row, self._done, tokens))
        self._group = 1
        return tokens

    def _decode(self, column: int, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (M, R, G, V) after one more token of every row."""
        members, prompts, group = tokens.shape
        positions = (self._ahead + column).view(members, prompts, 1).expand(-1, -1, group).reshape(members, -1)

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return self._attend(layer, column, q, k, v)

        x = self._model.embed(tokens.view(members, -1))
        for layer in range(self._model.shape.layers):
            x = self._model.block(layer, x, positions, attend)
        return self._model.logits(x).view(members, prompts, group, -1)

    def _attend(self, layer: int, column: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Each new token attends to its prompt (shared by the group) and to its own completion so far."""
        members, count, heads, width = q.shape
        rows, shared = len(self._ahead), k.shape[2]
        own_keys, own_values = self._own_keys[layer], self._own_values[layer]
        own_keys[:, :, :, column] = k.view(rows, self._group, shared, width).transpose(1, 2)
        own_values[:, :, :, column] = v.view(rows, self._group, shared, width).transpose(1, 2)
        asked = (q * width**-0.5).reshape(rows, self._group, shared, heads // shared, width).transpose(1, 2)  # (B, H, G, rep, w)
        to_prompt = asked.flatten(2, 3) @ self._keys[layer] + self._closed[:, None, None]
        to_own = asked @ own_keys[:, :, :, : column + 1].transpose(-1, -2)  # (B, H, G, rep, t)
        length = to_prompt.shape[-1]
        weights = torch.softmax(torch.cat([to_prompt.view(*to_own.shape[:-1], length), to_own], -1), -1)
        from_prompt = weights[..., :length].flatten(2, 3) @ self._values[layer]
        found = from_prompt.view_as(asked) + weights[..., length:] @ own_values[:, :, :, : column + 1]
        return found.transpose(1, 2).reshape(members, count, heads * width)

    def completions(self, member: int, rows: range) -> list[Sampled]:
        """What one prompt of one member got."""
        found = []
        for i in rows:
            length = int(self._lengths[member, i])
            tokens = self._tokens[member, i, :length].numpy().astype(np.int32)
            logp = self._logp[member, i, :length].numpy().copy()
            found.append(Sampled(tokens=tokens, logp=logp, ended=bool(self._ended[member, i])))
        return found
