"""Time one round in Waggle by phase."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.models.torch.base_policy import BasePolicy
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.batch import Floats, Ids, SamplingParams, StepParams, TrainingGroup
from waggle.rl.random_streams import uniforms
from waggle.rl.update_rules import grpo
from waggle.rl.update_rules.interface import ScoredGroup
from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, SYSTEM, Measurement, Phases, clock_of, system_seconds

LEARNING_RATE = 1e-6
STOP = 1  # the token that ends a completion; written at its given length and nowhere else


class Pauses:
    """The longest time between two pause points while completions are written: the delay of a pause on an idle computer."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.process_time()

    def begin(self) -> None:
        self._last = time.process_time()

    def point(self) -> None:
        now = time.process_time()
        self.longest, self._last = max(self.longest, now - self._last), now


def measure(cell: Cell, folder: Path, open_policy: Callable[..., BasePolicy] = TorchPolicy) -> Measurement:
    """Time the rounds of a cell, after a short round that is not timed."""
    policy, pauses = open_policy(folder, device=cell.device, training=cell.training), Pauses()
    phases, system = Phases(clock_of(cell.device)), Phases(system_seconds)
    policy._gradient = phases.timed("update", system.timed(SYSTEM, policy._gradient))  # type: ignore[method-assign]
    watched = _watched_weight(policy)
    before = watched.detach().clone().float()
    _play(cell.warm_up, policy, phases, pauses)
    phases.take()
    system.take()
    rounds = []
    for _ in range(cell.rounds):
        with phases.of(ROUND):
            _play(cell, policy, phases, pauses)
        rounds.append(_with_remaining_phases(phases.take()) | system.take())
    moved = float((watched.detach().float() - before).abs().mean())
    return Measurement(rounds, moved, {"pause_ms": 1000 * pauses.longest})


def _watched_weight(policy: BasePolicy) -> torch.Tensor:
    """A weight that every step moves. Of an adapter that is B: B starts as zeros, so the first step does not move A."""
    return next(parameter for name, parameter in policy._parameters.items() if "q_proj" in name and "lora_A" not in name)


def _with_remaining_phases(seconds: dict[str, float]) -> dict[str, float]:
    """Add the phases that no clock measures: preparing weights before sampling, and all of a step except its gradient."""
    seconds["ready"] = seconds["sample"] - seconds["prefill"] - seconds["decode"]
    if "step" in seconds:
        seconds["optimiser"] = seconds.pop("step") - seconds["update"]
    return seconds


def _play(cell: Cell, policy: BasePolicy, phases: Phases, pauses: Pauses) -> None:
    prompts = [np.array(ids, np.int32) for ids in cells.prompts(cell, policy._model.configuration.vocab_size)]  # type: ignore[attr-defined]
    noise = uniforms(0, "sample", 0, cell.questions, cell.group_size, cell.longest)
    pauses.begin()
    untimed_batch = policy._decoding_batch
    lengths = np.array(cells.lengths(cell)).ravel()
    policy._decoding_batch = partial(TimedRows, lengths, phases, policy._device, untimed_batch)  # type: ignore[method-assign]
    with phases.of("sample"):
        groups = policy.sample(prompts, noise, SamplingParams(max_new=cell.longest, stops=(STOP,), pause_point=pauses.point))
    if policy._batch_size.rows is not None:
        raise MemoryError("Memory ran short and completions were written in parts, so nothing was measured.")
    policy._decoding_batch = untimed_batch  # type: ignore[method-assign]
    pauses.point()
    if not cell.learns:
        return
    batches = lessons(cell, prompts, [tuple(completion.tokens for completion in row) for row in groups])
    with phases.of("step"):
        metrics = policy.step(batches, StepParams(learning_rate=LEARNING_RATE))
    if not metrics.applied:
        raise ArithmeticError("The optimizer step was not applied, so nothing was measured.")


def lessons(cell: Cell, prompts: Sequence[Ids], completions: Sequence[tuple[Ids, ...]]) -> list[TrainingGroup]:
    """The batches that a round learns from: groups with an advantage, with the weights of GRPO."""
    batches = []
    for prompt, row, rewards in zip(prompts, completions, cells.rewards(cell), strict=True):
        lengths = tuple(map(len, row))
        scored = ScoredGroup(tuple(rewards), lengths, cell.questions, 0, cell.longest, CRUMB_SPAN)
        teaching = grpo.RULE.teach(scored)
        if teaching.advantage.any():
            batches.append(TrainingGroup(prompt, row, teaching.advantage, teaching.weight))
    return batches


class TimedRows:
    """Rows of a sampling pass, timed, that end at their given lengths; a model with random weights would not end by itself."""

    def __init__(
        self, lengths: NDArray[np.int64], phases: Phases, device: torch.device, untimed_batch: Callable[..., Any], *arguments: Any
    ) -> None:
        self._lengths, self._phases, self._device, self._column = lengths, phases, device, 0
        with phases.of("prefill"):
            self._rows = untimed_batch(*arguments)
        self.drop_below = self._rows.drop_below

    def pick(self, noise: Floats) -> tuple[NDArray[np.int64], Floats]:
        with self._phases.of("decode"):
            tokens, scores = self._rows.pick(noise)
            self._column += 1
            tokens[tokens == STOP] = 2
            tokens[self._lengths == self._column] = STOP
            self._rows._picked = torch.from_numpy(tokens).to(self._device)
        return tokens, scores

    def keep(self, rows: NDArray[np.int64]) -> None:
        self._lengths = self._lengths[rows]
        with self._phases.of("decode"):
            self._rows.keep(rows)

    def advance(self, column: int) -> None:
        with self._phases.of("decode"):
            self._rows.advance(column)
