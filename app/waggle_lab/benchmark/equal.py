"""Compare loss and gradients with TRL's GRPOTrainer, for the same model, completions, advantages and old log-probs."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams, TrainingGroup
from waggle.rl.objective import Clip
from waggle_lab.benchmark import other_trainers, trl
from waggle_lab.benchmark.cells import STARTER, Cell

CELL = Cell((), STARTER, questions=3, group_size=4, prompt=20, longest=12)


def measure(folder: Path) -> dict[str, float]:
    """Relative differences of the loss and of the gradient: the gradients of all weights form one vector g, compared by norm."""
    noise = np.random.default_rng(0)
    policy = TorchPolicy(folder)
    batches = _batches(noise, policy._model.configuration.vocab_size)
    batches = [_with_old(batch, policy, noise) for batch in batches]
    loss, clipped = policy._gradient(batches, StepParams(learning_rate=0.0, clip=Clip(0.2, 0.28)))
    ours = {name: parameter.grad for name, parameter in policy._parameters.items() if parameter.grad is not None}
    their_loss, model = _theirs(folder, batches)
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    # |g_waggle - g_trl| / |g_trl|
    difference = torch.cat([(ours[name] - theirs[name]).flatten() for name in ours]).double().norm()
    norm = torch.cat([theirs[name].flatten() for name in ours]).double().norm()
    return {
        "loss": abs(loss - their_loss) / abs(their_loss),
        "gradient": float(difference / norm),
        "clipped": clipped,
    }


def _batches(noise: np.random.Generator, vocabulary: int) -> list[TrainingGroup]:
    """Groups with completions of many lengths, random advantages, and the token weights of GRPO."""
    batches = []
    for question in range(CELL.questions):
        lengths = [int(noise.integers(1, CELL.longest + 1)) for _ in range(CELL.group_size)]
        completions = tuple(noise.integers(2, vocabulary, length).astype(np.int32) for length in lengths)
        completion_lengths = np.asarray(lengths, np.float32)
        batches.append(
            TrainingGroup(
                prompt=noise.integers(2, vocabulary, CELL.prompt - 3 * question).astype(np.int32),
                completions=completions,
                advantage=np.repeat(noise.normal(size=CELL.group_size).astype(np.float32), lengths),
                # GRPO (arXiv 2402.03300, eq. 3): mean over the tokens of a completion, then over completions
                weight=np.repeat(1.0 / (CELL.completions * completion_lengths), lengths).astype(np.float32),
            )
        )
    return batches


def _with_old(batch: TrainingGroup, policy: TorchPolicy, noise: np.random.Generator) -> TrainingGroup:
    """Set old log-probs that differ a little from the policy's own, so that ratio and clip have an effect."""
    (current,) = policy.logprobs([batch], 1.0)
    old = (current + noise.normal(scale=0.2, size=len(current))).astype(np.float32)
    return TrainingGroup(batch.prompt, batch.completions, batch.advantage, batch.weight, old)


def _theirs(folder: Path, batches: list[TrainingGroup]) -> tuple[float, Any]:
    model = other_trainers.load_model(folder, "float32")
    trainer, _ = trl.make(CELL, model)
    model.eval()
    prompts = [batch.prompt for batch in batches for _ in batch.completions]
    completions = [ids for batch in batches for ids in batch.completions]
    old = [part for batch in batches for part in _parts(batch, batch.old_logp)]
    advantage = [part[0] for batch in batches for part in _parts(batch, batch.advantage)]
    inputs = {
        "prompt_ids": _padded(prompts, on_the_left=True),
        "prompt_mask": _padded([np.ones_like(ids) for ids in prompts], on_the_left=True),
        "completion_ids": _padded(completions), "completion_mask": _padded([np.ones_like(ids) for ids in completions]),
        "old_per_token_logps": _padded(old), "advantages": torch.tensor(np.array(advantage)),
    }  # fmt: skip
    loss = trainer.compute_loss(model, inputs)
    loss.backward()
    return float(loss.detach()), model


def _parts(batch: TrainingGroup, values: Any) -> list[Any]:
    return np.split(values, np.cumsum([len(ids) for ids in batch.completions])[:-1])


def _padded(rows: list[Any], *, on_the_left: bool = False) -> torch.Tensor:
    longest = max(map(len, rows))
    padding = [(longest - len(row), 0) if on_the_left else (0, longest - len(row)) for row in rows]
    rectangle = np.stack([np.pad(row, pad) for row, pad in zip(rows, padding, strict=True)])
    return torch.from_numpy(rectangle if rectangle.dtype == np.float32 else rectangle.astype(np.int64))
