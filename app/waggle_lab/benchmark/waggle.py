"""One round in Waggle, timed by phase."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.models.torch.policy import TorchPolicy
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.batch import Floats, Ids, SamplingParams, StepParams, TrainingGroup
from waggle.rl.random_streams import uniforms
from waggle.rl.update_rules import grpo
from waggle.rl.update_rules.interface import ScoredGroup
from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import ROUND, SYSTEM, Measured, Phases, clock_of, of_system

RATE = 1e-6
STOP = 1  # written where a text should end, and nowhere else


class Pauses:
    """How long whoever asks for a pause at the worst moment waits while answers are written, where nobody else computes."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.process_time()

    def begin(self) -> None:
        self._last = time.process_time()

    def point(self) -> None:
        now = time.process_time()
        self.longest, self._last = max(self.longest, now - self._last), now


def measure(cell: Cell, folder: Path) -> Measured:
    """The timed rounds, after a short one."""
    policy, pauses = TorchPolicy(folder, device=cell.device, training=cell.training), Pauses()
    phases, system = Phases(clock_of(cell.device)), Phases(of_system)
    policy._gradient = phases.timed("update", system.timed(SYSTEM, policy._gradient))  # type: ignore[method-assign]
    watched = _some_trained(policy)
    before = watched.detach().clone().float()
    _play(cell.warm_up, policy, phases, pauses)
    phases.take()
    system.take()
    rounds = []
    for _ in range(cell.rounds):
        with phases.of(ROUND):
            _play(cell, policy, phases, pauses)
        rounds.append(_phases(phases.take()) | system.take())
    moved = float((watched.detach().float() - before).abs().mean())
    return Measured(rounds, moved, {"pause_ms": 1000 * pauses.longest})


def _some_trained(policy: TorchPolicy) -> torch.Tensor:
    """A weight that every step moves: of adapters B, which begins as zeros."""
    return next(one for name, one in policy._parameters.items() if "q_proj" in name and "lora_A" not in name)


def _phases(taken: dict[str, float]) -> dict[str, float]:
    """What is no phase of its own: making weights ready before answering, and all of a step but its gradient."""
    taken["ready"] = taken["sample"] - taken["prefill"] - taken["decode"]
    if "step" in taken:
        taken["optimiser"] = taken.pop("step") - taken["update"]
    return taken


def _play(cell: Cell, policy: TorchPolicy, phases: Phases, pauses: Pauses) -> None:
    vocabulary = policy._model.configuration.vocab_size
    prompts = [np.array(ids, np.int32) for ids in cells.prompts(cell, vocabulary)]
    noise = uniforms(0, "sample", 0, cell.questions, cell.group_size, cell.longest)
    pauses.begin()
    usual = policy._rows
    policy._rows = partial(Timed, np.array(cells.lengths(cell)).ravel(), phases, usual)
    with phases.of("sample"):
        answers = policy.sample(prompts, noise, SamplingParams(max_new=cell.longest, stop=STOP, pause_point=pauses.point))
    if policy._batch_size.rows is not None:
        raise MemoryError("Answers were written a few at a time, so nothing was measured.")
    policy._rows = usual
    pauses.point()
    if not cell.learns:
        return
    batches = lessons(cell, prompts, [tuple(one.tokens for one in row) for row in answers])
    with phases.of("step"):
        metrics = policy.step(batches, StepParams(learning_rate=RATE))
    if not metrics.applied:
        raise ArithmeticError("The step was not taken, so nothing was measured.")


def lessons(cell: Cell, prompts: Sequence[Ids], answers: Sequence[tuple[Ids, ...]]) -> list[TrainingGroup]:
    """As a round makes them; groups without advantage are left out."""
    made = []
    for prompt, row, rewards in zip(prompts, answers, cells.rewards(cell), strict=True):
        lengths = tuple(map(len, row))
        scored = ScoredGroup(tuple(rewards), lengths, cell.questions, 0, cell.longest, CRUMB_SPAN)
        teaching = grpo.RULE.teach(scored)
        if teaching.advantage.any():
            made.append(TrainingGroup(prompt, row, teaching.advantage, teaching.weight))
    return made


class Timed:
    """Rows that end where they should, and nowhere else: random weights know no end."""

    def __init__(self, lengths: NDArray[np.int64], phases: Phases, usual: Callable[..., Any], *arguments: Any) -> None:
        self._lengths, self._phases, self._column = lengths, phases, 0
        with phases.of("prefill"):
            self._rows = usual(*arguments)
        self.drop_below = self._rows.drop_below

    def pick(self, noise: Floats) -> tuple[NDArray[np.int64], Floats]:
        with self._phases.of("decode"):
            tokens, scores = self._rows.pick(noise)
            self._column += 1
            tokens[tokens == STOP] = 2
            tokens[self._lengths == self._column] = STOP
            self._rows._picked = torch.from_numpy(tokens).to(self._rows._device)
        return tokens, scores

    def keep(self, rows: NDArray[np.int64]) -> None:
        self._lengths = self._lengths[rows]
        with self._phases.of("decode"):
            self._rows.keep(rows)

    def advance(self, column: int) -> None:
        with self._phases.of("decode"):
            self._rows.advance(column)
