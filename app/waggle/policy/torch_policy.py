"""The torch policy: samples with noise from outside, learns one group at a time with the prompt run once.

A group is trained as one packed row: the prompt, then every completion, each attending to the prompt and to itself only.
That gives the same gradient as G separate sequences and costs the prompt once. The head runs on completion positions
only. Left out: reduced precision, LoRA, packed weights for decoding, CUDA graphs.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache
from transformers.utils import logging as transformers_logging

from waggle.errors import MemoryShort, ModelError
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams
from waggle.rl.objective import clipped, clipped_objective

ARCHITECTURES = ("llama", "qwen2", "qwen3")  # those whose load parity is tested
HEAD_ELEMENTS = 1 << 24  # logits held at once: 64 MiB in fp32
BETAS = (0.9, 0.95)


class TorchPolicy:
    """One causal language model with AdamW. Create it and use it in one thread."""

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        self._device = torch.device(device)
        self._model = _load(folder).to(self._device).eval()
        for parameter in self._model.parameters():  # loading maps the file: a change of it would kill the process (SIGBUS)
            parameter.data = parameter.data.clone()
        # torch gives the padding row no input gradient, other backends do: one meaning everywhere
        self._model.get_input_embeddings().padding_idx = None
        self._parameters = dict(self._model.named_parameters())  # tied weights appear once
        self._optimiser = torch.optim.AdamW(self._parameters.values(), lr=0.0, betas=BETAS, eps=1e-8, weight_decay=0.0)
        self._steps = 0

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self._parameters.values())

    @torch.no_grad()
    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SampleParams) -> list[list[Sampled]]:
        """See `sapo.seams.Policy.sample`. Raises MemoryShort."""
        group_size = len(uniforms) // len(prompts)
        with _memory_errors():
            run = _Decoding(self._model, self._device, prompts, group_size, params)
            rows = run.finish(torch.as_tensor(uniforms, device=self._device))
        return [rows[p * group_size : (p + 1) * group_size] for p in range(len(prompts))]

    @torch.no_grad()
    def logprobs(self, batch: GroupBatch, temperature: float) -> tuple[Floats, ...]:
        """The log-probs of each completion's tokens, as this policy gives them now."""
        with _memory_errors():
            logp, _ = self._forward(batch, temperature)
        flat: Floats = logp.cpu().numpy()
        return tuple(np.split(flat, np.cumsum([len(ids) for ids in batch.completions])[:-1]))

    def step(self, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        """See `sapo.seams.Policy.step`. Raises MemoryShort, or Stopped from a pause point before anything changed."""
        self._optimiser.zero_grad(set_to_none=True)
        loss = clip = entropy = tokens = 0.0
        try:
            for batch in batches:
                params.pause_point()
                with _memory_errors():
                    sums = self._learn(batch, params)
                loss, clip, entropy, tokens = loss + sums[0], clip + sums[1], entropy + sums[2], tokens + sums[3]
            norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), params.max_gradient_norm)
            params.pause_point()
            for group in self._optimiser.param_groups:
                group["lr"] = params.learning_rate
            if not torch.isfinite(norm):
                return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, entropy=0.0, taken=False)
            self._optimiser.step()
            self._steps += 1
        finally:
            self._optimiser.zero_grad(set_to_none=True)
        return StepMetrics(loss=loss, clip_fraction=clip, gradient_norm=float(norm), entropy=entropy / max(1.0, tokens))

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """(weights, moments) on the CPU under Hugging Face names; moments are `exp_avg.NAME` and `exp_avg_sq.NAME`."""
        weights = {name: parameter.detach().cpu().contiguous() for name, parameter in self._parameters.items()}
        moments = {}
        for name, parameter in self._parameters.items():
            for key in ("exp_avg", "exp_avg_sq"):
                kept = self._optimiser.state.get(parameter, {}).get(key)
                moments[f"{key}.{name}"] = torch.zeros_like(weights[name]) if kept is None else kept.cpu().contiguous()
        return weights, moments

    @torch.no_grad()
    def restore(self, weights: dict[str, torch.Tensor], moments: dict[str, torch.Tensor], steps: int) -> None:
        """Take over a saved state; raises ModelError when it belongs to another model."""
        for name, parameter in self._parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ModelError("The saved state belongs to another model.", "Choose that model again, or start afresh.")
            parameter.copy_(weights[name])
        self._steps = steps
        self._optimiser.state.clear()
        if steps:
            for name, parameter in self._parameters.items():
                self._optimiser.state[parameter] = {
                    "step": torch.tensor(float(steps)),
                    "exp_avg": moments[f"exp_avg.{name}"].to(parameter.device, copy=True),
                    "exp_avg_sq": moments[f"exp_avg_sq.{name}"].to(parameter.device, copy=True),
                }

    def _learn(self, batch: GroupBatch, params: StepParams) -> tuple[float, float, float, float]:
        lengths = torch.tensor([len(ids) for ids in batch.completions], device=self._device)
        advantage = torch.as_tensor(batch.advantage, device=self._device).repeat_interleave(lengths)  # (N,)
        weight = torch.as_tensor(batch.weight, device=self._device).repeat_interleave(lengths)  # (N,)
        logp, entropy = self._forward(batch, params.temperature)
        if batch.old_logp is None:
            old = logp.detach()  # one update per batch: this pass is the reference, no second forward
        else:
            old = torch.as_tensor(np.concatenate(batch.old_logp), device=self._device)
        loss = clipped_objective(torch, logp, old, advantage, weight, params.clip)
        loss.backward()
        cut = (clipped(logp.detach(), old, advantage, params.clip) * weight).sum()
        return float(loss.detach()), float(cut), float(entropy.sum()), float(len(advantage))

    def _forward(self, batch: GroupBatch, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies (N,) of all completion tokens of a group, in order."""
        packed = _Packed(batch, self._device)
        hidden = self._model.model(
            input_ids=packed.tokens[None], position_ids=packed.positions[None], attention_mask=packed.mask, use_cache=False
        ).last_hidden_state[0]
        chosen = hidden[packed.sources]  # (N, D): the positions that predict completion tokens
        rows = max(1, HEAD_ELEMENTS // self._model.config.vocab_size)
        if len(chosen) <= rows:
            return self._head(chosen, packed.targets, temperature)
        parts = [  # chunked and recomputed in the backward pass: never an (N, V) tensor for the whole group
            checkpoint(self._head, part, targets, temperature, use_reentrant=False)
            for part, targets in zip(torch.split(chosen, rows), torch.split(packed.targets, rows), strict=True)
        ]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def _head(self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        logits = F.linear(hidden, self._model.get_output_embeddings().weight).float() / temperature  # (N, V)
        scores = torch.log_softmax(logits, -1)
        with torch.no_grad():
            entropy = -(scores.exp() * scores).sum(-1)
        return scores.gather(-1, targets[:, None])[:, 0], entropy


class _Packed:
    """A group as one row: prompt, completion 1, completion 2 ... with positions that restart after the prompt."""

    def __init__(self, batch: GroupBatch, device: torch.device) -> None:
        start = len(batch.prompt)
        lengths = [len(ids) for ids in batch.completions]
        owner = np.concatenate([np.full(start, -1), np.repeat(np.arange(len(lengths)), lengths)])  # -1: the prompt
        offsets = np.concatenate([np.arange(length) for length in lengths])
        first = start + np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        sources = np.where(offsets == 0, start - 1, first + offsets - 1)  # what predicts each completion token
        sees = (owner[None, :] == -1) | (owner[None, :] == owner[:, None])
        sees &= np.tri(len(owner), dtype=bool)
        tensor = torch.as_tensor
        self.tokens = tensor(np.concatenate([batch.prompt, *batch.completions]).astype(np.int64), device=device)
        self.positions = tensor(np.concatenate([np.arange(start), start + offsets]), device=device)
        self.sources = tensor(sources, device=device)
        self.targets = self.tokens[start:]
        self.mask = torch.zeros(sees.shape, device=device).masked_fill_(~tensor(sees, device=device), -torch.inf)[None, None]


class _Decoding:
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


def _load(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"There is no model in {folder}.", "Check `model.folder` in the settings, or remove it to use the starter."
        )
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if config.model_type not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise ModelError(f"Waggle does not know models of type {config.model_type}.", f"It knows {known}.")
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"The model in {folder} cannot be read: {error}.", "Copy or download it again.") from error


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
