"""Time the same round in GenRL's trainer (gensyn-genrl on PyPI) with its defaults: two completions a pass, recomputation.

GenRL's game, network and loggers, which surround its trainer, are not measured.
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

from waggle_lab.benchmark import cells, other_trainers
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, Measurement, Phases, clock_of, with_update


def measure(cell: Cell, folder: Path) -> Measurement:
    """Time the rounds of a cell, after a short round that is not timed."""
    phases = Phases(clock_of(cell.device))
    model = other_trainers.load_model(folder, "float32")  # the trainer converts it to its own precision
    trainer = _make(cell, model)
    forced_lengths = other_trainers.ForcedLengths(model.config)
    _time(trainer, phases)
    watched = dict(model.named_parameters())["model.layers.0.self_attn.q_proj.weight"]
    before = watched.detach().clone().float()
    _play(cell.warm_up, trainer, forced_lengths, phases)
    phases.take()
    rounds = []
    for _ in range(cell.rounds):
        with phases.of(ROUND):
            _play(cell, trainer, forced_lengths, phases)
        rounds.append(with_update(phases.take()))
    return Measurement(rounds, float((watched.detach().float() - before).abs().mean()))


def _make(cell: Cell, model: Any) -> Any:
    _replace_loggers()
    from genrl.trainer.grpo_trainer import GRPOLanguageTrainerModule, GRPOTrainerConfig

    config = GRPOTrainerConfig(dtype=cell.precision, max_new_tokens=cell.longest, num_generations=cell.group_size)
    logging.disable(logging.INFO)
    return GRPOLanguageTrainerModule(
        [model],
        config=config,
        processing_class=other_trainers.word_tokenizer(model.config),
        log_dir=tempfile.mkdtemp(),
        log_with="none",
    )


def _replace_loggers() -> None:
    """Put empty modules in place of two loggers that the trainer imports, and that nothing is logged to here."""
    import transformers.integrations  # noqa: F401 - probes for the real loggers, so import it before they are replaced

    for name, attribute in (("wandb", "Image"), ("torch.utils.tensorboard", "SummaryWriter")):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        setattr(module, attribute, None)
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


def _play(cell: Cell, trainer: Any, forced_lengths: other_trainers.ForcedLengths, phases: Phases) -> None:
    texts = other_trainers.prompt_texts(cell, trainer.model.config.vocab_size)
    conversations = [{"prompt": [{"role": "user", "content": text}]} for text in texts]
    trainer.generation_config.max_new_tokens = cell.longest
    with phases.of("sample"):
        completions = _completions(cell, trainer, forced_lengths, conversations)
    state = SimpleNamespace(
        get_stage_state=lambda _: conversations,
        get_stage_actions=lambda _: {0: {i: {0: row} for i, row in enumerate(completions)}},
    )
    data = SimpleNamespace(prepare_input=lambda inputs, _: (inputs, {i: (0, i, 0) for i in range(cell.questions)}))
    rewards = {0: {0: {i: {0: row} for i, row in enumerate(cells.rewards(cell))}}}
    trainer.model.train()
    trainer.step(0, state, data, rewards, 0)
    trainer.model.eval()


def _completions(cell: Cell, trainer: Any, forced_lengths: other_trainers.ForcedLengths, conversations: list[Any]) -> Any:
    """Completions by question. The trainer calls `generate` group_size times, each time with all questions."""
    from transformers import LogitsProcessorList

    columns = iter(zip(*cells.lengths(cell), strict=True))
    generate = type(trainer.model).generate

    def ending(*arguments: Any, **named: Any) -> Any:
        forced_lengths.begin(next(columns))
        return generate(trainer.model, *arguments, **named, logits_processor=LogitsProcessorList([forced_lengths]))

    trainer.model.generate = ending
    trainer.model.eval()
    return trainer.generate(conversations)
