"""Inverse transform sampling in torch, equal to `rl/token_sampling.py`. A large vocabulary takes two steps: block, then token."""

import torch
import torch.nn.functional as F

from waggle.rl.token_sampling import BLOCK, BLOCKS_FROM

AT_ONCE = 1 << 20  # logits that a CPU handles together, so that they stay in its cache


def sample_tokens(logits: torch.Tensor, uniforms: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (rows, V), divided by the temperature, and numbers (rows,) in [0, 1) -> tokens (rows,), log-probs (rows,)."""
    if top_p >= 1.0 and logits.shape[1] < BLOCKS_FROM:
        return _from_all(logits.float(), uniforms)
    rows = max(1, AT_ONCE // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    picked = [
        _of_many(some.float(), noise, top_p)
        for some, noise in zip(torch.split(logits, rows), torch.split(uniforms, rows), strict=True)
    ]
    tokens, likely = zip(*picked, strict=True)
    return torch.cat(tokens), torch.cat(likely)


def _of_many(logits: torch.Tensor, uniforms: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    scores = logits - logits.amax(-1, keepdim=True)
    chances = scores.exp()
    total = chances.sum(-1)
    if top_p < 1.0:
        chances = _cut(chances, top_p)
    tokens = _from_blocks(chances, uniforms).clamp_(max=logits.shape[1] - 1)
    return tokens, scores.gather(-1, tokens[:, None])[:, 0] - total.log()


def _from_all(logits: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.log_softmax(logits, -1)
    chances = scores.exp().cumsum(-1)
    threshold = uniforms[:, None] * chances[:, -1:]
    tokens = torch.searchsorted(chances, threshold, right=True).clamp(max=scores.shape[-1] - 1)
    return tokens[:, 0], scores.gather(-1, tokens)[:, 0]


def _from_blocks(chances: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Tokens by partial sums of blocks, in fp64: exact enough that the order of additions never changes a token."""
    if short := -chances.shape[1] % BLOCK:  # F.pad copies even if it adds nothing
        chances = F.pad(chances, (0, short))
    blocks = chances.view(len(chances), -1, BLOCK)  # (rows, blocks, BLOCK)
    ends = _exact(blocks.sum(-1)).cumsum(-1)
    targets = _exact(uniforms)[:, None] * ends[:, -1:]
    block = torch.searchsorted(ends, targets, right=True).clamp_(max=ends.shape[1] - 1)  # (rows, 1)
    chosen = blocks.gather(1, block.to(blocks.device)[:, :, None].expand(-1, 1, BLOCK))[:, 0]
    before = F.pad(ends, (1, 0)).gather(1, block)
    place = torch.searchsorted(_exact(chosen).cumsum(-1), targets - before, right=True).clamp_(max=BLOCK - 1)
    return (block * BLOCK + place)[:, 0].to(chances.device)


def _cut(chances: torch.Tensor, top_p: float) -> torch.Tensor:
    """Top-p: set all but the fewest tokens, likeliest first, that together have at least `top_p` to 0."""
    ordered, order = chances.sort(stable=True, dim=-1, descending=True)
    exact = _exact(ordered)
    ends = exact.cumsum(-1)
    left_out = (ends - exact >= top_p * ends[:, -1:]).to(chances.device)
    return chances.masked_fill(torch.zeros_like(left_out).scatter_(-1, order, left_out), 0.0)


def _exact(numbers: torch.Tensor) -> torch.Tensor:
    """In fp64. On the CPU for Intel GPUs, many of which lack fp64."""
    return (numbers.cpu() if numbers.device.type == "xpu" else numbers).double()
