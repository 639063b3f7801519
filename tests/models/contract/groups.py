"""Groups to sample and learn from, with reference results: transformers and autograd, one sequence at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup
from waggle.rl.random_streams import uniforms

STOP, PAD = 1, 0
MOMENTUM = 0.9  # the first moment after one step is a tenth of the gradient


def prompts(count: int = 6) -> list[np.ndarray]:
    """Prompts of 3 to 48 tokens, some with the pad token."""
    noise = np.random.default_rng(0)
    token_ids = [noise.integers(2, 97, 3 + 9 * i).astype(np.int32) for i in range(count)]
    for prompt in token_ids:
        prompt[1] = PAD
    return token_ids


def sample(policy: Any, some: list[np.ndarray], *, group_size: int = 12, length: int = 16, noise: np.ndarray | None = None):
    if noise is None:
        noise = uniforms(1, "sample", 0, len(some), group_size, length)
    return policy.sample(some, noise, SamplingParams(max_new=length, stops=(STOP,)))


def batches(count: int = 4, **more: Any) -> list[TrainingGroup]:
    """Groups of 1 to 4 completions. Advantages and weights differ from token to token, so that an off-by-one error shows."""
    noise = np.random.default_rng(2)
    several = []
    for i, prompt in enumerate(prompts(count)):
        completions = tuple(noise.integers(0, 97, 2 + 3 * g).astype(np.int32) for g in range(1 + i % 4))
        n = sum(map(len, completions))
        advantage = noise.normal(size=n).astype(np.float32)
        weight = (noise.uniform(0.5, 1.5, n) / (n * count)).astype(np.float32)
        several.append(TrainingGroup(prompt, completions, advantage, weight, **more))
    return several


def gradient(policy: Any, some: list[TrainingGroup]) -> dict[str, np.ndarray]:
    """The gradient of a policy's first step, computed from its saved moments."""
    policy.step(some, StepParams(learning_rate=0.0, max_gradient_norm=1e9))
    return {
        name.removeprefix("exp_avg."): moment / (1 - MOMENTUM)
        for name, moment in policy.state()[1].items()
        if name.startswith("exp_avg.")
    }


def true_logprobs(model: Any, batch: TrainingGroup, temperature: float = 1.0) -> torch.Tensor:
    """Log-probs (N,) without cache, packing or padding."""
    logprobs = []
    for tokens in batch.completions:
        ids = torch.tensor(np.concatenate([batch.prompt, tokens]), dtype=torch.long)[None]
        scores = torch.log_softmax(model(input_ids=ids).logits[0, :-1] / temperature, -1)
        logprobs.append(scores.gather(-1, ids[0, 1:, None])[len(batch.prompt) - 1 :, 0])
    return torch.cat(logprobs)


def true_gradient(folder: Path, some: list[TrainingGroup]) -> dict[str, np.ndarray]:
    """At ratio 1 the gradient of the clipped objective is that of -A * w * logp."""
    model = reference(folder)
    for batch in some:
        (-torch.tensor(batch.advantage * batch.weight) * true_logprobs(model, batch)).sum().backward()
    return {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}


def reference(folder: Path) -> Any:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.config.use_cache = False  # RWKV's would stand in the way of the gradient
    model.get_input_embeddings().padding_idx = None  # torch would leave one row without gradient
    return model


def error(gradients: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """The largest relative error of any weight's gradient; tiny gradients are compared with the largest one."""
    assert gradients.keys() == expected.keys()
    least = 1e-2 * max(np.linalg.norm(gradient) for gradient in expected.values())
    return max(
        float(np.linalg.norm(gradients[name] - gradient) / max(np.linalg.norm(gradient), least))
        for name, gradient in expected.items()
    )
