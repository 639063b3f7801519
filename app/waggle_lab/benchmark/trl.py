"""Time the same round in TRL's GRPOTrainer, set for a CPU: one pass a group, no recomputation, fused AdamW, no second forward."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from waggle_lab.benchmark import cells, other_trainers
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, Measurement, Phases, clock_of, with_update

LEARNING_RATE = 1e-6
LORA_RANK = 16
# As in Waggle: the loss of GRPO (arXiv 2402.03300) without KL, with the clip bounds of DAPO (arXiv 2503.14476).
GRPO = {"loss_type": "grpo", "epsilon": 0.2, "epsilon_high": 0.28}


def measure(cell: Cell, folder: Path) -> Measurement:
    """Time the rounds of a cell, after a short round that is not timed."""
    phases, rounds = Phases(clock_of(cell.device)), list[dict[str, float]]()
    model = other_trainers.load_model(folder, cell.training.stored_precision)
    trainer, forced_lengths = make(cell, model)

    class PhaseTimer(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            now = cell if state.global_step else cell.warm_up
            trainer.generation_config.max_new_tokens = now.longest
            forced_lengths.begin([length for row in cells.lengths(now) for length in row])
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

    model.generate = _with_forced_lengths(phases.timed("sample", model.generate), forced_lengths)
    trainer.accelerator.clip_grad_norm_ = phases.timed("optimiser", trainer.accelerator.clip_grad_norm_)
    trainer.add_callback(PhaseTimer())
    watched = _watched_weight(trainer.model)
    weights_before = watched.detach().clone().float()
    trainer.train()
    return Measurement(rounds, float((watched.detach().float() - weights_before).abs().mean()))


def make(cell: Cell, model: Any, loss: Mapping[str, Any] = GRPO) -> tuple[Any, other_trainers.ForcedLengths]:
    """A trainer with one step for each round, and one for the warm-up before them. `loss`: arguments of GRPOConfig."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    schedule = [cell.warm_up, *[cell] * cell.rounds]
    rows = [
        {"prompt": text} for step_cell in schedule for text in other_trainers.prompt_texts(step_cell, model.config.vocab_size)
    ]
    calls = iter(schedule)

    def rewards(completions: list[str], **_: Any) -> list[float]:
        return [reward for row in cells.rewards(next(calls)) for reward in row]

    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=cell.group_size, gradient_accumulation_steps=cell.questions,
        num_generations=cell.group_size, max_completion_length=cell.longest, shuffle_dataset=False, max_steps=len(schedule),
        bf16=cell.precision == "bfloat16", gradient_checkpointing=cell.recompute, use_cpu=cell.device == "cpu",
        optim="adamw_torch_fused", learning_rate=LEARNING_RATE, lr_scheduler_type="constant", beta=0.0, num_iterations=1,
        save_strategy="no", report_to=[], logging_steps=1000, disable_tqdm=True, dataloader_pin_memory=False, **loss,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, reward_funcs=rewards, args=config, train_dataset=Dataset.from_list(rows),
        processing_class=other_trainers.word_tokenizer(model.config), peft_config=_adapters(cell),
    )  # fmt: skip
    return trainer, other_trainers.ForcedLengths(model.config)


def _adapters(cell: Cell) -> Any:
    if cell.method != "lora":
        return None
    from peft import LoraConfig

    return LoraConfig(r=LORA_RANK, lora_alpha=2 * LORA_RANK, target_modules="all-linear", task_type="CAUSAL_LM")


def _watched_weight(model: Any) -> torch.Tensor:
    trained: dict[str, torch.Tensor] = {
        name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
    }
    return next(parameter for name, parameter in trained.items() if "q_proj" in name and "lora_A" not in name)


def _with_forced_lengths(generate: Any, forced_lengths: other_trainers.ForcedLengths) -> Any:
    from transformers import LogitsProcessorList

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return generate(*arguments, **named, logits_processor=LogitsProcessorList([forced_lengths]))

    return wrapped
