"""How a model is trained: which numbers, kept in which precision. Every backend obeys this table, and no other exists.

    full  every weight, fp32, AdamW                              16 bytes a weight
    lean  every weight, Adafactor, rounded stochastically          4 bytes a weight in bfloat16
    lora  small fp32 adapters beside frozen weights, AdamW         2 bytes a weight in bfloat16

A step of reinforcement learning is smaller than the distance of two neighbouring bfloat16 numbers, so rounding to the nearest
would lose it without a word. What is trained is therefore fp32, or rounded stochastically: right on average.
"""

from dataclasses import dataclass
from typing import Literal

Method = Literal["full", "lean", "lora"]
Precision = Literal["float32", "bfloat16"]
OPTIMIZERS: dict[Method, str] = {"full": "adamw", "lean": "adafactor", "lora": "adamw"}


@dataclass(frozen=True)
class TrainingMode:
    """`precision` is that of the products; `recompute` makes a layer's activations again instead of keeping them."""

    method: Method = "full"
    precision: Precision = "float32"
    recompute: bool = False
    parts: int = 1  # into which is divided what usually runs together, where memory ran short before

    @property
    def stored_precision(self) -> Precision:
        """The precision of the weights themselves: where AdamW moves them they are fp32 whatever is multiplied."""
        return "float32" if self.method == "full" else self.precision

    @property
    def scores(self) -> int:
        """How many scores the head holds at once while learning: few, which takes longer, where memory is short."""
        return 1 << (24 if self.recompute else 26)

    @property
    def optimizer(self) -> str:
        return OPTIMIZERS[self.method]
