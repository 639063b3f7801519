"""Waggle's loss and gradients beside those of TRL's GRPOTrainer, for the same model, answers, advantages and old log-probs."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams, TrainingGroup
from waggle.rl.objective import Clip
from waggle_lab.benchmark import others, trl
from waggle_lab.benchmark.cells import STARTER, Cell

CELL = Cell((), STARTER, questions=3, group_size=4, prompt=20, longest=12)


def measure(folder: Path) -> dict[str, float]:
    """Relative differences: of the loss, and of the gradient of all weights as one vector (norm of the difference by norm)."""
    noise = np.random.default_rng(0)
    policy = TorchPolicy(folder)
    batches = _batches(noise, policy._model.configuration.vocab_size)
    batches = [_with_old(batch, policy, noise) for batch in batches]
    loss, clipped = policy._gradient(batches, StepParams(learning_rate=0.0, clip=Clip(0.2, 0.28)))
    ours = {name: one.grad for name, one in policy._parameters.items() if one.grad is not None}
    their_loss, model = _theirs(folder, batches)
    theirs = {name: one.grad for name, one in model.named_parameters()}
    difference = torch.cat([(ours[name] - theirs[name]).flatten() for name in ours]).double().norm()
    whole = torch.cat([theirs[name].flatten() for name in ours]).double().norm()
    return {
        "loss": abs(loss - their_loss) / abs(their_loss),
        "gradient": float(difference / whole),
        "clipped": clipped,
    }


def _batches(noise: np.random.Generator, vocabulary: int) -> list[TrainingGroup]:
    """Answers of many lengths, with advantages and the weights of GRPO."""
    made = []
    for question in range(CELL.questions):
        lengths = [int(noise.integers(1, CELL.longest + 1)) for _ in range(CELL.group_size)]
        answers = tuple(noise.integers(2, vocabulary, length).astype(np.int32) for length in lengths)
        each = np.asarray(lengths, np.float32)
        made.append(
            TrainingGroup(
                prompt=noise.integers(2, vocabulary, CELL.prompt - 3 * question).astype(np.int32),
                completions=answers,
                advantage=np.repeat(noise.normal(size=CELL.group_size).astype(np.float32), lengths),
                weight=np.repeat(1.0 / (CELL.answers * each), lengths).astype(np.float32),
            )
        )
    return made


def _with_old(batch: TrainingGroup, policy: TorchPolicy, noise: np.random.Generator) -> TrainingGroup:
    """As if sampled by a policy that thought a little differently: so that the ratio, and its clip, count."""
    (now,) = policy.logprobs([batch], 1.0)
    old = (now + noise.normal(scale=0.2, size=len(now))).astype(np.float32)
    return TrainingGroup(batch.prompt, batch.completions, batch.advantage, batch.weight, old)


def _theirs(folder: Path, batches: list[TrainingGroup]) -> tuple[float, Any]:
    model = others.load(folder, "float32")
    trainer, _ = trl.make(CELL, model)
    model.eval()
    prompts = [batch.prompt for batch in batches for _ in batch.completions]
    answers = [ids for batch in batches for ids in batch.completions]
    old = [part for batch in batches for part in _parts(batch, batch.old_logp)]
    advantage = [part[0] for batch in batches for part in _parts(batch, batch.advantage)]
    inputs = {
        "prompt_ids": _padded(prompts, left=True), "prompt_mask": _padded([np.ones_like(ids) for ids in prompts], left=True),
        "completion_ids": _padded(answers), "completion_mask": _padded([np.ones_like(ids) for ids in answers]),
        "old_per_token_logps": _padded(old), "advantages": torch.tensor(np.array(advantage)),
    }  # fmt: skip
    loss = trainer.compute_loss(model, inputs)
    loss.backward()
    return float(loss.detach()), model


def _parts(batch: TrainingGroup, values: Any) -> list[Any]:
    return np.split(values, np.cumsum([len(ids) for ids in batch.completions])[:-1])


def _padded(rows: list[Any], *, left: bool = False) -> torch.Tensor:
    longest = max(map(len, rows))
    padding = [(longest - len(row), 0) if left else (0, longest - len(row)) for row in rows]
    whole = np.stack([np.pad(row, pad) for row, pad in zip(rows, padding, strict=True)])
    return torch.from_numpy(whole if whole.dtype == np.float32 else whole.astype(np.int64))
