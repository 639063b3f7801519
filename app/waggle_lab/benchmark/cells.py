"""The cells of `waggle-lab bench`: rounds of stated shapes, with the same prompts, lengths and rewards for every trainer."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from waggle.core import paths
from waggle.models.shared.training_mode import Method, Precision, TrainingMode
from waggle_lab.starter_model import shapes

STARTER, SMALL, HALF = "starter", "SmolLM2-135M", "Qwen2.5-0.5B"
# Tokens of the first round, which is not timed: it pays for everything that is allocated or compiled once.
WARM_PROMPT, WARM_LONGEST = 8, 2
ALL = ("waggle", "trl", "genrl")
NO_GENRL = ("waggle", "trl")


@dataclass(frozen=True)
class Cell:
    """The shape of a round: each of `questions` gets `group_size` completions, and one optimizer step learns from them.

    Every completion has `longest` tokens. If `skewed`, three in ten have that length and the others are shorter, and every second
    group has no advantage. A process times `rounds` rounds of one side (a trainer); each side runs in `repetitions` processes.
    """

    sides: Sequence[str]
    model: str = HALF
    questions: int = 2
    group_size: int = 8
    prompt: int = 150  # tokens
    longest: int = 64
    method: Method = "full"
    precision: Precision = "float32"
    recompute: bool = False
    skewed: bool = False
    learns: bool = True
    device: str = "cpu"
    rounds: int = 1
    repetitions: int = 3

    @property
    def training(self) -> TrainingMode:
        return TrainingMode(self.method, self.precision, self.recompute)

    @property
    def completions(self) -> int:
        return self.questions * self.group_size

    @property
    def warm_up(self) -> "Cell":
        return replace(self, prompt=WARM_PROMPT, longest=WARM_LONGEST, skewed=False)

    @property
    def description(self) -> str:
        """The shape in words, to be quoted beside every ratio."""
        lengths = f"{self.longest} tokens"
        if self.skewed:
            lengths = f"up to {lengths}, half of the groups without advantage,"
        shape = f"{self.model}, {self.questions} x {self.group_size} answers of {lengths} after {self.prompt}"
        recompute = "activations computed again, " if self.recompute else ""
        return f"{shape}; {self.method}, {self.precision}, {recompute}{self.device}"


LEAN = Cell(("waggle",), method="lean", precision="bfloat16", recompute=True, rounds=2, repetitions=1)
LORA = replace(LEAN, method="lora")
PAPER = replace(LEAN, questions=8, longest=256, rounds=1)  # 64 answers, as in the SAPO paper
CELLS: dict[str, Cell] = {  # the most important first
    "tiny": Cell(ALL, STARTER, questions=9, prompt=100, rounds=3),
    "half-fp32": Cell(ALL),
    "half-bf16": Cell(ALL, precision="bfloat16"),
    "half-lora": Cell(NO_GENRL, method="lora", precision="bfloat16"),
    "half-skewed": Cell(NO_GENRL, precision="bfloat16", skewed=True),
    "decode-72": Cell(("waggle",), questions=9, longest=16, precision="bfloat16", learns=False),
    "memory-full": Cell(("waggle",), rounds=2, repetitions=1, recompute=True),
    "memory-lean": LEAN,
    "memory-lora": LORA,
    "paper-lean": PAPER,
    "paper-lora": replace(PAPER, method="lora"),
    "smollm2": Cell(NO_GENRL, SMALL, precision="bfloat16"),
    "cuda": Cell(("waggle", "generic", "trl"), questions=8, longest=256, precision="bfloat16", device="cuda"),
}
EQUAL = "equal"  # not a round: compares loss and gradients with those of TRL


def folder_of(model: str) -> Path:
    """The transformers folder of a cell's model, created if necessary; raises LabError."""
    return paths.starter() if model == STARTER else shapes.write(paths.cache() / "shapes", model)


def prompts(cell: Cell, vocabulary: int) -> list[list[int]]:
    """Token ids by question; none is a special token of the measured models."""
    noise = random.Random(0)
    return [[noise.randrange(2, min(vocabulary, 150_000)) for _ in range(cell.prompt)] for _ in range(cell.questions)]


def lengths(cell: Cell) -> list[list[int]]:
    """The number of tokens of each completion, by question."""
    noise = random.Random(1)

    def draw_length() -> int:
        return cell.longest if not cell.skewed or noise.random() < 0.3 else noise.randint(cell.longest // 8, cell.longest)

    return [[draw_length() for _ in range(cell.group_size)] for _ in range(cell.questions)]


def rewards(cell: Cell) -> list[list[float]]:
    """Rewards by question: every second completion is right; in skewed cells all completions of every second question are."""
    return [
        [1.0 if cell.skewed and question % 2 else float(answer % 2) for answer in range(cell.group_size)]
        for question in range(cell.questions)
    ]
