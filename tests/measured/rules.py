#!/usr/bin/env python3
"""Measure how far update rules are from TRL, and how far sampling is from learning; write rules.json.

    python3 tests/measured/rules.py losses
    python3 tests/measured/rules.py ratios [--model FOLDER]

Each part replaces its own figures in rules.json and keeps those of the others, with the commit that each was measured at.

losses  the same model (the starter), completions, rewards and old log-probs in Waggle and in TRL's GRPOTrainer, for each rule
        that TRL has and on each path: `rules_loss_error_max`, the largest relative difference of a loss, and
        `rules_gradient_error_max`, that of the gradient, |g - g_TRL| / |g_TRL| over all weights. Both compute in float32.
        Some tokens are clipped, others are not (`clipped`). Needs the environment of `packaging/dev.py bench`
ratios  what the policy says of its completions when it samples them and when it learns from them: nats by which the log-prob
        of a token differs, and the mean of a completion; in float32 and bfloat16; with the share of tokens that a clip from
        .8 to 1.28, and of completions that GSPO's, would cut before the first step
"""

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import figures_file

sys.path[:1] = [
    str(figures_file.ROOT / "app"),
    str(figures_file.ROOT / "tests"),
]  # not this folder, whose models.py is no package
FILE = Path(__file__).with_suffix(".json")
BENCH_PYTHON = figures_file.ROOT / ".venv-bench" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
QUESTIONS, GROUP, PROMPT, LONGEST = 4, 6, 24, 20  # LONGEST: DAPO's penalty acts on the last 4 tokens
TRL_LOSSES: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo", "epsilon": 0.2, "epsilon_high": 0.28},
    "dr_grpo": {"loss_type": "dr_grpo", "epsilon": 0.2, "epsilon_high": 0.28},
    "dapo": {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("losses", "ratios"))
    parser.add_argument("--model", type=Path, help="of ratios: another model beside the starter")
    options = parser.parse_args()
    if options.part == "losses" and not importlib.util.find_spec("trl"):
        if not BENCH_PYTHON.exists():
            sys.exit("TRL is not installed. Run first: python3 packaging/dev.py bench --cells equal")
        return subprocess.call([BENCH_PYTHON, *sys.argv])
    figures_file.require_clean_tree()
    measured = measure_losses() if options.part == "losses" else measure_ratios(options.model)
    figures = json.loads(FILE.read_text())["figures"] if FILE.exists() else {}
    figures[options.part] = measured | {"commit": figures_file.source_commit()}
    figures_file.write(Path(__file__).resolve(), figures)
    return 0


def measure_losses() -> dict[str, object]:
    import torch
    import trl

    from waggle.core import paths

    torch.set_num_threads(1)
    by_rule: dict[str, dict[str, object]] = {}
    for name in TRL_LOSSES:
        groups, advantages = make_groups(name, paths.starter())
        their_loss, theirs = trl_gradient(paths.starter(), groups, advantages, TRL_LOSSES[name])
        by_rule[name] = {}
        for path, policy_of in policies().items():
            loss, clipped, ours = own_gradient(policy_of(paths.starter()), groups, name)
            by_rule[name][path] = {
                "loss_error": abs(loss - their_loss) / abs(their_loss),
                "gradient_error": distance(ours, theirs),
                "clipped": clipped,
            }
            print(name, path, by_rule[name][path], flush=True)
    every = [figures for paths_ in by_rule.values() for figures in paths_.values()]
    return {
        "rules_loss_error_max": max(figures["loss_error"] for figures in every),
        "rules_gradient_error_max": max(figures["gradient_error"] for figures in every),
        "rules": by_rule,
        "not_in_trl": ["ppo"],
        "versions": {"trl": trl.__version__, "torch": torch.__version__},
    }


def policies() -> dict[str, Callable[[Path], Any]]:
    from waggle.models.generic.policy import GenericPolicy
    from waggle.models.torch.policy import TorchPolicy

    every: dict[str, Callable[[Path], Any]] = {"torch": TorchPolicy, "generic": GenericPolicy}
    if importlib.util.find_spec("mlx"):
        import mlx.core as mx

        from waggle.models.mlx.policy import MlxPolicy

        mx.set_default_device(mx.cpu)
        every["mlx"] = MlxPolicy
    return every


def make_groups(name: str, folder: Path) -> tuple[list[Any], list[float]]:
    """Groups with the weights of a rule, and the advantage of each completion as TRL's documentation defines it."""
    import numpy as np
    from trl.rewards import get_soft_overlong_punishment

    from waggle.models.torch.policy import TorchPolicy
    from waggle.rl.batch import TokenizedGroup, TrainingGroup
    from waggle.rl.update_rules import rule
    from waggle.rl.update_rules.interface import ScoredGroup

    noise, policy = np.random.default_rng(0), TorchPolicy(folder)
    vocabulary = policy._model.configuration.vocab_size
    lengths = [[int(noise.integers(1, LONGEST + 1)) for _ in range(GROUP - 1)] + [LONGEST] for _ in range(QUESTIONS)]
    total, punish = sum(map(sum, lengths)), get_soft_overlong_punishment(LONGEST, LONGEST // 5)
    groups, advantages = [], list[float]()
    for question in range(QUESTIONS):
        prompt = noise.integers(2, vocabulary, PROMPT - 3 * question).astype(np.int32)
        completions = tuple(noise.integers(2, vocabulary, length).astype(np.int32) for length in lengths[question])
        rewards = np.array([1.0, 0.0, *noise.integers(0, 2, GROUP - 2)])
        scored = ScoredGroup(
            tuple(rewards), tuple(lengths[question]), groups=QUESTIONS, tokens=total, longest=LONGEST, crumb_span=0.2
        )
        taught = rule(name).teach(scored)
        (now,) = policy.logprobs([TokenizedGroup(prompt, completions)], 1.0)
        moved = np.concatenate([_moves(noise, length, near=i % 2 == 0) for i, length in enumerate(lengths[question])])
        groups.append(
            TrainingGroup(prompt, completions, taught.advantage, taught.weight, old_logp=(now - moved).astype(np.float32))
        )
        shaped = rewards + (np.array(punish([list(ids) for ids in completions])) if name == "dapo" else 0.0)
        advantages += list((shaped - shaped.mean()) / (1.0 if name == "dr_grpo" else shaped.std() + 1e-4))
    return groups, advantages


def _moves(noise: Any, length: int, *, near: bool) -> Any:
    """Log ratios of a completion. Every second one has a mean within GSPO's range."""
    moves = noise.normal(scale=0.3, size=length)
    return moves - moves.mean() + 1e-4 * noise.choice([-1, 1]) if near else moves


def own_gradient(policy: Any, groups: list[Any], name: str) -> tuple[float, float, dict[str, Any]]:
    """Loss, clipped share and gradient of a step; the first moment after one step is a tenth of the gradient."""
    from waggle.rl.batch import StepParams
    from waggle.rl.update_rules import rule

    chosen = rule(name)
    params = StepParams(learning_rate=0.0, clip=chosen.clip, ratio=chosen.ratio, max_gradient_norm=1e9)
    metrics = policy.step(groups, params)
    moments = policy.state()[1]
    gradient = {key.removeprefix("exp_avg."): value * 10.0 for key, value in moments.items() if key.startswith("exp_avg.")}
    return metrics.loss, metrics.clip_fraction, gradient


def trl_gradient(folder: Path, groups: list[Any], advantages: list[float], loss: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    import numpy as np
    import torch

    from waggle_lab.benchmark import other_trainers, trl
    from waggle_lab.benchmark.cells import STARTER, Cell
    from waggle_lab.benchmark.equal import _padded, _parts

    cell = Cell((), STARTER, questions=QUESTIONS, group_size=GROUP, prompt=PROMPT, longest=LONGEST)
    model = other_trainers.load_model(folder, "float32")
    trainer, _ = trl.make(cell, model, loss)
    model.eval()
    prompts = [group.prompt for group in groups for _ in group.completions]
    completions = [ids for group in groups for ids in group.completions]
    inputs = {
        "prompt_ids": _padded(prompts, on_the_left=True),
        "prompt_mask": _padded([np.ones_like(ids) for ids in prompts], on_the_left=True),
        "completion_ids": _padded(completions),
        "completion_mask": _padded([np.ones_like(ids) for ids in completions]),
        "old_per_token_logps": _padded([part for group in groups for part in _parts(group, group.old_logp)]),
        "advantages": torch.tensor(np.array(advantages, np.float32)),
        "num_items_in_batch": torch.tensor(sum(map(len, completions))),
    }
    computed = trainer.compute_loss(model, inputs)
    computed.backward()
    return float(computed.detach()), {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}


def distance(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    import numpy as np

    if ours.keys() != theirs.keys():
        raise ValueError(f"only one side has {sorted(ours.keys() ^ theirs.keys())}")
    square = sum(float(np.square(ours[name].astype(np.float64) - theirs[name]).sum()) for name in theirs)
    return float((square / sum(float(np.square(gradient.astype(np.float64)).sum()) for gradient in theirs.values())) ** 0.5)


def measure_ratios(model: Path | None) -> dict[str, object]:
    import torch

    from waggle.core import paths

    torch.set_num_threads(1)
    figures: dict[str, object] = {}
    for folder in filter(None, (paths.starter(), model)):
        for precision in ("float32", "bfloat16"):
            figures[f"{'starter' if folder == paths.starter() else folder.name}, {precision}"] = _ratios(folder, precision)
    return figures


def _ratios(folder: Path, precision: Any) -> dict[str, float]:
    import numpy as np

    from waggle.models.shared.training_mode import TrainingMode
    from waggle.models.torch.policy import TorchPolicy
    from waggle.rl.batch import SamplingParams, TokenizedGroup
    from waggle.rl.random_streams import uniforms

    noise, policy = np.random.default_rng(0), TorchPolicy(folder, training=TrainingMode(precision=precision))
    prompts = [noise.integers(5, policy._model.configuration.vocab_size, 40 + 7 * i).astype(np.int32) for i in range(4)]
    rows = policy.sample(prompts, uniforms(1, "sample", 0, 4, 8, 32), SamplingParams(max_new=32, stops=(-1,)))
    texts = [TokenizedGroup(prompt, tuple(each.tokens for each in row)) for prompt, row in zip(prompts, rows, strict=True)]
    learned = [policy.logprobs(texts, 1.0), [policy.logprobs([text], 1.0)[0] for text in texts]]
    sampled = [np.concatenate([each.logp for each in row]) for row in rows]
    differs = np.concatenate(learned[0]) - np.concatenate(sampled)  # all completions have 32 tokens
    regrouped = np.concatenate(learned[0]) - np.concatenate(learned[1])
    means = differs.reshape(-1, 32).mean(-1)
    return {
        "token_mean": float(np.abs(differs).mean()),
        "token_max": float(np.abs(differs).max()),
        "completion_mean": float(np.abs(means).mean()),
        "completion_max": float(np.abs(means).max()),
        "outside_token_clip": float(((differs < np.log(0.8)) | (differs > np.log(1.28))).mean()),
        "outside_gspo_clip": float(((means < np.log(1 - 3e-4)) | (means > np.log(1 + 4e-4))).mean()),
        "learning_in_other_batches_max": float(np.abs(regrouped).max()),
    }


if __name__ == "__main__":
    raise SystemExit(main())
