"""The figures of a round and of a held-out score, by the names under which tools of research show them."""

import re

from waggle.protocol.events import HeldOutScore, RoundSummary

NO_NAME = re.compile(r"[^\w.-]+")
LONGEST_NAME = 60  # characters of a model's or a swarm's name


def run_name(chosen: str, model: str, swarm: str, recipe: str) -> str:
    """The chosen name, or else one for the rounds that are played with this model, swarm and recipe. It can be a folder's."""
    if own := _as_folder(chosen):
        return own
    return "_".join((_as_folder(model) or "unnamed", _as_folder(swarm) or "unnamed", recipe[:8] or "first"))


def _as_folder(name: str) -> str:
    return NO_NAME.sub("-", name).strip("-.")[:LONGEST_NAME]


def round_figures(summary: RoundSummary) -> dict[str, float]:
    """Every figure of a round that is known."""
    metrics = summary.metrics
    figures: dict[str, float | None] = {
        "reward/mean": summary.reward,
        "reward/of_others": summary.external_reward,
        "reward/right": summary.solved,
        "groups/own": summary.local,
        "groups/of_others": summary.external,
        "groups/learned_from": summary.taught,
        "speed/seconds": summary.seconds,
        "speed/tokens_per_second": summary.tokens / summary.seconds if summary.seconds else None,
        "speed/memory": summary.memory or None,
        "learning/loss": metrics.loss,
        "learning/clip_fraction": metrics.clip_fraction,
        "learning/gradient_norm": metrics.gradient_norm,
        "learning/entropy": metrics.entropy,
        "learning/external_share": metrics.external_share,
        "learning/rate": metrics.learning_rate,
        **{f"reward_by_specialty/{NO_NAME.sub('-', title)}": reward for title, reward in summary.by_specialty.items()},
    }
    return {name: float(figure) for name, figure in figures.items() if figure is not None}


def score_figures(score: HeldOutScore) -> dict[str, float]:
    """The figures of a held-out score."""
    share = {"held_out/share": score.right / score.total} if score.total else {}
    return {"held_out/right": float(score.right), "held_out/total": float(score.total), **share}
