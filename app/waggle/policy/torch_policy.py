"""The torch policy: samples with noise from outside, learns from packed groups with every prompt run once.

The head runs on completion positions only. Left out: reduced precision, LoRA.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint

from waggle.errors import MemoryShort, ModelError
from waggle.policy.causal_lm import CausalLM
from waggle.policy.checkpoint import Arrays
from waggle.policy.decoding import decode
from waggle.policy.packing import Text, group_row, parts
from waggle.policy.torch_decoding import TorchRows
from waggle.policy.torch_packing import Packing
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
from waggle.rl.objective import clipped, clipped_objective

PASS_BYTES = 1 << 29  # of activations that one forward pass keeps: groups are learned from together until then
HEAD_ELEMENTS = 1 << 24  # logits held at once: 64 MiB in fp32
BETAS = (0.9, 0.95)


class TorchPolicy:
    """One causal language model with AdamW. Create it and use it in one thread."""

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        self._device = torch.device(device)
        self._model = CausalLM(folder, self._device)
        self._parameters = self._model.parameters
        self._optimiser = torch.optim.AdamW(
            self._parameters.values(), lr=0.0, betas=BETAS, eps=1e-8, weight_decay=0.0, fused=True
        )
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
            made = decode(TorchRows(self._model, self._device, prompts, group_size, params), uniforms, params)
        return [made[p * group_size : (p + 1) * group_size] for p in range(len(prompts))]

    @torch.no_grad()
    def logprobs(self, texts: Sequence[Written], temperature: float) -> list[Floats]:
        """See `sapo.seams.Policy.logprobs`. Raises MemoryShort."""
        return self._measured(texts, lambda packing, hidden: self._score(hidden, packing.targets, temperature))

    @torch.no_grad()
    def values(self, texts: Sequence[Written]) -> list[Floats]:
        """See `sapo.seams.Policy.values`. Raises MemoryShort."""
        critic = self._critic
        if critic is None:
            return [np.zeros(sum(map(len, text.completions)), np.float32) for text in texts]
        return self._measured(texts, lambda _, hidden: critic(self._model.normed(hidden))[:, 0])

    def _measured(self, texts: Sequence[Written], measure: Callable[[Packing, torch.Tensor], torch.Tensor]) -> list[Floats]:
        """`measure(packing, hidden)` gives one number for each completion token; (N,) a group."""
        found: list[Floats] = []
        with _memory_errors():
            for part in self._parts(texts):
                packing, hidden = self._hidden(part)
                found += packing.split(measure(packing, hidden))
        return found

    def step(self, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        """See `sapo.seams.Policy.step`. Raises MemoryShort, or Stopped from a pause point before anything changed."""
        if self._critic is None and any(batch.returns is not None for batch in batches):
            self._make_critic()
        self._optimiser.zero_grad(set_to_none=True)
        loss = clip = 0.0
        try:
            for part in self._parts(batches):
                params.pause_point()
                with _memory_errors():
                    sums = self._learn(part, params)
                loss, clip = loss + sums[0], clip + sums[1]
            norm = torch.nn.utils.clip_grad_norm_(
                [*self._parameters.values(), *self._critic_parameters().values()], params.max_gradient_norm
            )
            params.pause_point()
            for group in self._optimiser.param_groups:
                group["lr"] = params.learning_rate
            if not torch.isfinite(norm):
                return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, taken=False)
            self._optimiser.step()
            self._steps += 1
        finally:
            self._optimiser.zero_grad(set_to_none=True)
        return StepMetrics(loss=loss, clip_fraction=clip, gradient_norm=float(norm))

    def state(self) -> tuple[Arrays, Arrays]:
        """(weights, moments) in fp32 under Hugging Face names; moments are `exp_avg.NAME` and `exp_avg_sq.NAME`.

        A value head stands whole among the moments, so that the weights stay a model file that any program reads:
        `critic.weight`, `critic.bias`, their moments, and `critic.steps`, for it may be younger than the policy.
        On the CPU the arrays are the policy's own memory, not copies.
        """
        weights = {name: _array(parameter) for name, parameter in self._parameters.items()}
        moments: Arrays = {}
        for name, parameter in (self._parameters | self._critic_parameters()).items():
            kept = self._optimiser.state.get(parameter, {})
            for key in ("exp_avg", "exp_avg_sq"):
                moments[f"{key}.{name}"] = _array(kept[key] if kept else torch.zeros_like(parameter))
        for name, parameter in self._critic_parameters().items():
            moments[name] = _array(parameter)
            moments["critic.steps"] = _array(self._optimiser.state.get(parameter, {}).get("step", torch.tensor(0.0)))
        return weights, moments

    @torch.no_grad()
    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None:
        """Take over a saved state; raises ModelError when it belongs to another model."""
        for name, parameter in self._parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ModelError("The saved state belongs to another model.", "Choose that model again, or start afresh.")
        for name, parameter in self._parameters.items():
            parameter.copy_(torch.tensor(weights[name]))
        self._steps = steps
        self._optimiser.state.clear()
        self._drop_critic()
        if steps:
            self._restore_moments(self._parameters, moments, float(steps))
        if "critic.weight" in moments:
            self._make_critic()
            for name, parameter in self._critic_parameters().items():
                parameter.copy_(torch.tensor(moments[name]))
            if moments["critic.steps"]:
                self._restore_moments(self._critic_parameters(), moments, float(moments["critic.steps"]))

    def _restore_moments(self, parameters: dict[str, torch.nn.Parameter], moments: Arrays, steps: float) -> None:
        for name, parameter in parameters.items():
            self._optimiser.state[parameter] = {
                "step": torch.tensor(steps, dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.tensor(moments[f"exp_avg.{name}"], device=parameter.device),
                "exp_avg_sq": torch.tensor(moments[f"exp_avg_sq.{name}"], device=parameter.device),
            }

    def _make_critic(self) -> None:
        """The value head (D -> 1), zero at first: then it neither foretells anything nor disturbs the model."""
        self._critic = torch.nn.Linear(self._model.width, 1, device=self._device)
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

    def _learn(self, batches: Sequence[GroupBatch], params: StepParams) -> tuple[float, float]:
        """Add some groups' gradient; their loss and clipped weight."""
        advantage = self._joined([batch.advantage for batch in batches])  # (N,)
        weight = self._joined([batch.weight for batch in batches])
        packing, hidden = self._hidden(batches)
        logp = self._score(hidden, packing.targets, params.temperature)
        known = [batch.old_logp for batch in batches if batch.old_logp is not None]  # of all of them or of none
        old = self._joined(known) if known else logp.detach()  # one update per batch: no second forward
        loss = clipped_objective(torch, logp, old, advantage, weight, params.clip)
        returns = [batch.returns for batch in batches if batch.returns is not None]
        if returns and self._critic is not None:
            miss = self._critic(self._model.normed(hidden))[:, 0] - self._joined(returns)
            loss = loss + params.value_share * 0.5 * (weight * miss.square()).sum()
        loss.backward()
        cut = (clipped(logp.detach(), old, advantage, params.clip) * weight).sum()
        return float(loss.detach()), float(cut)

    def _joined(self, arrays: Sequence[Floats]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(arrays)).to(self._device)

    def _parts(self, texts: Sequence[Text]) -> Iterator[list[Text]]:
        """Groups that are run together: as many as fit into one pass, at least one."""
        return parts(texts, PASS_BYTES // self._model.bytes_per_token)

    def _hidden(self, texts: Sequence[Written]) -> tuple[Packing, torch.Tensor]:
        """Where everything stands, and (N, D) the states of the last layer that predict the completion tokens."""
        packing = Packing([group_row(text) for text in texts], self._device)
        hidden = self._model.hidden(packing.tokens, packing.positions, packing.attend)
        return packing, hidden.index_select(0, packing.sources)

    def _score(self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
        """Log-probs (N,) of tokens from the states that predict them."""
        rows = max(1, HEAD_ELEMENTS // self._model.vocabulary)
        if len(hidden) <= rows:
            return self._head(hidden, targets, temperature)
        parts = [  # chunked and recomputed in the backward pass: never an (N, V) tensor for the whole group
            checkpoint(self._head, part, some, temperature, use_reentrant=False)
            for part, some in zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
        ]
        return torch.cat(parts)

    def _head(self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
        scores = torch.log_softmax(self._model.logits(hidden, temperature), -1)  # (N, V)
        return scores.gather(-1, targets[:, None])[:, 0]


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().contiguous().numpy()


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
