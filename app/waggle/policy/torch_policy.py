"""The torch policy: samples with noise from outside, learns one group at a time with the prompt run once.

A group is trained as one packed row: the prompt, then every completion, each attending to the prompt and to itself only.
That gives the same gradient as G separate sequences and costs the prompt once. The head runs on completion positions
only. Left out: reduced precision, LoRA.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from waggle.errors import MemoryShort, ModelError
from waggle.policy.torch_decoding import Decoding
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
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
        self._critic: torch.nn.Linear | None = None  # made when a batch first brings returns
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
            run = Decoding(self._model, self._device, prompts, group_size, params)
            rows = run.finish(torch.as_tensor(uniforms, device=self._device))
        return [rows[p * group_size : (p + 1) * group_size] for p in range(len(prompts))]

    @torch.no_grad()
    def logprobs(self, texts: Sequence[Written], temperature: float) -> list[Floats]:
        """See `sapo.seams.Policy.logprobs`. Raises MemoryShort."""
        with _memory_errors():
            return [self._score(*self._hidden(text), temperature)[0].cpu().numpy() for text in texts]

    @torch.no_grad()
    def values(self, texts: Sequence[Written]) -> list[Floats]:
        """See `sapo.seams.Policy.values`. Raises MemoryShort."""
        if self._critic is None:
            return [np.zeros(sum(map(len, text.completions)), np.float32) for text in texts]
        with _memory_errors():
            return [self._critic(self._hidden(text)[0])[:, 0].cpu().numpy() for text in texts]

    def step(self, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        """See `sapo.seams.Policy.step`. Raises MemoryShort, or Stopped from a pause point before anything changed."""
        if self._critic is None and any(batch.returns is not None for batch in batches):
            self._make_critic()
        self._optimiser.zero_grad(set_to_none=True)
        loss = clip = entropy = tokens = 0.0
        try:
            for batch in batches:
                params.pause_point()
                with _memory_errors():
                    sums = self._learn(batch, params)
                loss, clip, entropy, tokens = loss + sums[0], clip + sums[1], entropy + sums[2], tokens + sums[3]
            norm = torch.nn.utils.clip_grad_norm_(
                [*self._parameters.values(), *self._critic_parameters().values()], params.max_gradient_norm
            )
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
        """(weights, moments) on the CPU under Hugging Face names; moments are `exp_avg.NAME` and `exp_avg_sq.NAME`.

        A value head stands whole among the moments, so that the weights stay a model file that any program reads:
        `critic.weight`, `critic.bias`, their moments, and `critic.steps`, for it may be younger than the policy.
        """
        weights = {name: parameter.detach().cpu().contiguous() for name, parameter in self._parameters.items()}
        moments: dict[str, torch.Tensor] = {}
        for name, parameter in (self._parameters | self._critic_parameters()).items():
            kept = self._optimiser.state.get(parameter, {})
            for key in ("exp_avg", "exp_avg_sq"):
                moment = kept[key] if kept else torch.zeros_like(parameter)
                moments[f"{key}.{name}"] = moment.detach().cpu().contiguous()
        for name, parameter in self._critic_parameters().items():
            moments[name] = parameter.detach().cpu().contiguous()
            moments["critic.steps"] = self._optimiser.state.get(parameter, {}).get("step", torch.tensor(0.0)).cpu()
        return weights, moments

    @torch.no_grad()
    def restore(self, weights: dict[str, torch.Tensor], moments: dict[str, torch.Tensor], steps: int) -> None:
        """Take over a saved state; raises ModelError when it belongs to another model."""
        for name, parameter in self._parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ModelError("The saved state belongs to another model.", "Choose that model again, or start afresh.")
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])
        self._steps = steps
        self._optimiser.state.clear()
        self._drop_critic()
        if steps:
            self._restore_moments(self._parameters, moments, float(steps))
        if "critic.weight" in moments:
            self._make_critic()
            for name, parameter in self._critic_parameters().items():
                parameter.copy_(moments[name])
            if moments["critic.steps"]:
                self._restore_moments(self._critic_parameters(), moments, float(moments["critic.steps"]))

    def _restore_moments(self, parameters: dict[str, torch.nn.Parameter], moments: dict[str, torch.Tensor], steps: float) -> None:
        for name, parameter in parameters.items():
            self._optimiser.state[parameter] = {
                "step": torch.tensor(steps),
                "exp_avg": moments[f"exp_avg.{name}"].to(parameter.device, copy=True),
                "exp_avg_sq": moments[f"exp_avg_sq.{name}"].to(parameter.device, copy=True),
            }

    def _make_critic(self) -> None:
        """The value head (D -> 1), zero at first: then it neither foretells anything nor disturbs the model."""
        self._critic = torch.nn.Linear(self._model.config.hidden_size, 1, device=self._device)
        torch.nn.init.zeros_(self._critic.weight)
        torch.nn.init.zeros_(self._critic.bias)
        self._optimiser.add_param_group({"params": list(self._critic.parameters())})

    def _drop_critic(self) -> None:
        self._critic = None
        del self._optimiser.param_groups[1:]

    def _critic_parameters(self) -> dict[str, torch.nn.Parameter]:
        if self._critic is None:
            return {}
        return {f"critic.{name}": parameter for name, parameter in self._critic.named_parameters()}

    def _learn(self, batch: GroupBatch, params: StepParams) -> tuple[float, float, float, float]:
        """Add a group's gradient; its loss, clipped weight, summed entropy and number of tokens."""
        advantage = torch.as_tensor(batch.advantage, device=self._device)  # (N,)
        weight = torch.as_tensor(batch.weight, device=self._device)  # (N,)
        hidden, targets = self._hidden(batch)
        logp, entropy = self._score(hidden, targets, params.temperature)
        # one update per batch: this pass is the reference, no second forward
        old = logp.detach() if batch.old_logp is None else torch.as_tensor(batch.old_logp, device=self._device)
        loss = clipped_objective(torch, logp, old, advantage, weight, params.clip)
        if batch.returns is not None and self._critic is not None:
            miss = self._critic(hidden)[:, 0] - torch.as_tensor(batch.returns, device=self._device)
            loss = loss + params.value_share * 0.5 * (weight * miss.square()).sum()
        loss.backward()
        cut = (clipped(logp.detach(), old, advantage, params.clip) * weight).sum()
        return float(loss.detach()), float(cut), float(entropy.sum()), float(len(advantage))

    def _hidden(self, text: Written) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, D) the states that predict a group's completion tokens, and (N,) those tokens."""
        packed = _Packed(text, self._device)
        hidden = self._model.model(
            input_ids=packed.tokens[None], position_ids=packed.positions[None], attention_mask=packed.mask, use_cache=False
        ).last_hidden_state[0]
        return hidden[packed.sources], packed.targets

    def _score(self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies (N,) of tokens from the states that predict them."""
        rows = max(1, HEAD_ELEMENTS // self._model.config.vocab_size)
        if len(hidden) <= rows:
            return self._head(hidden, targets, temperature)
        parts = [  # chunked and recomputed in the backward pass: never an (N, V) tensor for the whole group
            checkpoint(self._head, part, some, temperature, use_reentrant=False)
            for part, some in zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
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

    def __init__(self, text: Written, device: torch.device) -> None:
        start = len(text.prompt)
        lengths = [len(ids) for ids in text.completions]
        owner = np.concatenate([np.full(start, -1), np.repeat(np.arange(len(lengths)), lengths)])  # -1: the prompt
        offsets = np.concatenate([np.arange(length) for length in lengths])
        first = start + np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        sources = np.where(offsets == 0, start - 1, first + offsets - 1)  # what predicts each completion token
        sees = (owner[None, :] == -1) | (owner[None, :] == owner[:, None])
        sees &= np.tri(len(owner), dtype=bool)
        tensor = torch.as_tensor
        self.tokens = tensor(np.concatenate([text.prompt, *text.completions]).astype(np.int64), device=device)
        self.positions = tensor(np.concatenate([np.arange(start), start + offsets]), device=device)
        self.sources = tensor(sources, device=device)
        self.targets = self.tokens[start:]
        self.mask = torch.zeros(sees.shape, device=device).masked_fill_(~tensor(sees, device=device), -torch.inf)[None, None]


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
