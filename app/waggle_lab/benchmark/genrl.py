"""The same round in the published trainer of GenRL (gensyn-genrl on PyPI), with its defaults: pairs of answers, recomputation.

What surrounds the trainer there, its game, its network and its loggers, is left out.
"""

import importlib.machinery
import logging
import sys
import tempfile
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from waggle_lab.benchmark import cells, others
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, Measured, Phases, clock_of, with_update


def measure(cell: Cell, folder: Path) -> Measured:
    """The timed rounds, after a short one."""
    phases = Phases(clock_of(cell.device))
    model = others.load(folder, "float32")  # the trainer turns it into its own precision
    trainer = _make(cell, model)
    endings = others.Endings(model.config)
    _time(trainer, phases)
    watched = dict(model.named_parameters())["model.layers.0.self_attn.q_proj.weight"]
    before = watched.detach().clone().float()
    _play(cell.warm_up, trainer, endings, phases)
    phases.take()
    rounds = []
    for _ in range(cell.rounds):
        with phases.of(ROUND):
            _play(cell, trainer, endings, phases)
        rounds.append(with_update(phases.take()))
    return Measured(rounds, float((watched.detach().float() - before).abs().mean()))


def _make(cell: Cell, model: Any) -> Any:
    _without_loggers()
    from genrl.trainer.grpo_trainer import GRPOLanguageTrainerModule, GRPOTrainerConfig

    config = GRPOTrainerConfig(dtype=cell.precision, max_new_tokens=cell.longest, num_generations=cell.group_size)
    logging.disable(logging.INFO)
    return GRPOLanguageTrainerModule(
        [model], config=config, processing_class=others.words(model.config), log_dir=tempfile.mkdtemp(), log_with="none"
    )


def _without_loggers() -> None:
    """It imports two loggers that this measurement gives nothing to."""
    import transformers.integrations  # noqa: F401 - looks for them itself, so it must have looked before

    for name, what in (("wandb", "Image"), ("torch.utils.tensorboard", "SummaryWriter")):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        setattr(module, what, None)
        sys.modules[name] = module
    torch.utils.tensorboard = sys.modules["torch.utils.tensorboard"]


def _time(trainer: Any, phases: Phases) -> None:
    score = trainer._get_per_token_logps

    def scored(*arguments: Any) -> Any:
        if torch.is_grad_enabled():
            return score(*arguments)
        with phases.of("old"):
            return score(*arguments)

    trainer._get_per_token_logps = scored
    trainer.optimizer.step = phases.timed("optimiser", trainer.optimizer.step)
    trainer.log = lambda *_: None


def _play(cell: Cell, trainer: Any, endings: others.Endings, phases: Phases) -> None:
    texts = others.texts(cell, trainer.model.config.vocab_size)
    asked = [{"prompt": [{"role": "user", "content": text}]} for text in texts]
    trainer.generation_config.max_new_tokens = cell.longest
    with phases.of("sample"):
        answers = _answers(cell, trainer, endings, asked)
    state = SimpleNamespace(
        get_stage_state=lambda _: asked, get_stage_actions=lambda _: {0: {i: {0: row} for i, row in enumerate(answers)}}
    )
    data = SimpleNamespace(prepare_input=lambda inputs, _: (inputs, {i: (0, i, 0) for i in range(cell.questions)}))
    rewards = {0: {0: {i: {0: row} for i, row in enumerate(cells.rewards(cell))}}}
    trainer.model.train()
    trainer.step(0, state, data, rewards, 0)
    trainer.model.eval()


def _answers(cell: Cell, trainer: Any, endings: others.Endings, asked: list[Any]) -> Any:
    """It answers every question once, as often as a group is large."""
    from transformers import LogitsProcessorList

    columns = iter(zip(*cells.lengths(cell), strict=True))
    generate = type(trainer.model).generate

    def ending(*arguments: Any, **named: Any) -> Any:
        endings.begin(next(columns))
        return generate(trainer.model, *arguments, **named, logits_processor=LogitsProcessorList([endings]))

    trainer.model.generate = ending
    trainer.model.eval()
    return trainer.generate(asked)
