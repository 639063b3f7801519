"""The same round in TRL's GRPOTrainer, tuned for a CPU: one pass a group, no recomputation, fused AdamW, no second forward."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from waggle_lab.benchmark import cells, others
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, Measured, Phases, clock_of, with_update

RATE = 1e-6
RANK = 16


def measure(cell: Cell, folder: Path) -> Measured:
    """The timed rounds, after a short one."""
    phases, rounds = Phases(clock_of(cell.device)), list[dict[str, float]]()
    model = others.load(folder, cell.training.stored_precision)
    trainer, endings = make(cell, model)
    before: torch.Tensor | None = None

    class Steps(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            now = cell if state.global_step else cell.warm_up
            trainer.generation_config.max_new_tokens = now.longest
            endings.begin([length for row in cells.lengths(now) for length in row])
            phases.take()
            self.round = phases.of(ROUND)
            self.round.__enter__()

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.step = phases.of("optimiser")
            self.step.__enter__()

        def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.step.__exit__(None, None, None)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.round.__exit__(None, None, None)
            if state.global_step > 1:
                rounds.append(with_update(phases.take()))

    model.generate = _ending(phases.timed("sample", model.generate), endings)
    trainer.accelerator.clip_grad_norm_ = phases.timed("optimiser", trainer.accelerator.clip_grad_norm_)
    trainer.add_callback(Steps())
    watched = _some_trained(trainer.model)
    before = watched.detach().clone().float()
    trainer.train()
    return Measured(rounds, float((watched.detach().float() - before).abs().mean()))


def make(cell: Cell, model: Any) -> tuple[Any, others.Endings]:
    """A trainer of as many steps as there are rounds and the one before them."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    asked = [cell.warm_up, *[cell] * cell.rounds]
    rows = [{"prompt": text} for one in asked for text in others.texts(one, model.config.vocab_size)]
    calls = iter(asked)

    def judge(completions: list[str], **_: Any) -> list[float]:
        return [reward for row in cells.rewards(next(calls)) for reward in row]

    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=cell.group_size, gradient_accumulation_steps=cell.questions,
        num_generations=cell.group_size, max_completion_length=cell.longest, shuffle_dataset=False, max_steps=len(asked),
        bf16=cell.precision == "bfloat16", gradient_checkpointing=cell.recompute, use_cpu=cell.device == "cpu",
        optim="adamw_torch_fused", learning_rate=RATE, lr_scheduler_type="constant", beta=0.0, num_iterations=1,
        epsilon=0.2, epsilon_high=0.28, loss_type="grpo", save_strategy="no", report_to=[], logging_steps=1000,
        disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, reward_funcs=judge, args=config, train_dataset=Dataset.from_list(rows),
        processing_class=others.words(model.config), peft_config=_adapters(cell),
    )  # fmt: skip
    return trainer, others.Endings(model.config)


def _adapters(cell: Cell) -> Any:
    if cell.method != "lora":
        return None
    from peft import LoraConfig

    return LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")


def _some_trained(model: Any) -> torch.Tensor:
    found: dict[str, torch.Tensor] = {name: one for name, one in model.named_parameters() if one.requires_grad}
    return next(one for name, one in found.items() if "q_proj" in name and "lora_A" not in name)


def _ending(generate: Any, endings: others.Endings) -> Any:
    from transformers import LogitsProcessorList

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return generate(*arguments, **named, logits_processor=LogitsProcessorList([endings]))

    return wrapped
