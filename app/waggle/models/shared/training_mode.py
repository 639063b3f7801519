"""Training modes: which numbers are trained, with which optimizer, in which precision.

    full  all weights in fp32, AdamW                             16 bytes per weight
    lean  all weights, Adafactor, stochastic rounding             4 bytes per weight in bfloat16
    lora  small fp32 adapters beside frozen weights, AdamW        2 bytes per weight in bfloat16
    qlora  as lora, over layers in 4 bits (arXiv 2305.14314)      about half a byte per weight of these layers

A step of reinforcement learning is smaller than the distance between two neighbouring bfloat16 numbers, so rounding to the
nearest would silently lose it. So trained numbers are fp32, or are rounded stochastically, which is right on average.
"""

from dataclasses import dataclass
from typing import Literal

Method = Literal["full", "lean", "lora", "qlora"]
Precision = Literal["float32", "bfloat16"]
OPTIMIZERS: dict[Method, str] = {"full": "adamw", "lean": "adafactor", "lora": "adamw", "qlora": "adamw"}
ADAPTED: frozenset[Method] = frozenset(("lora", "qlora"))  # what they train and save are adapters


@dataclass(frozen=True)
class TrainingMode:
    """`precision` is that of the products. `recompute`: activation checkpointing, a layer's activations are computed twice."""

    method: Method = "full"
    precision: Precision = "float32"
    recompute: bool = False
    parts: int = 1  # into which a usual batch is divided, if memory ran short before

    @property
    def stored_precision(self) -> Precision:
        """The precision of the stored weights: fp32 if AdamW trains them, whatever the products use."""
        return "float32" if self.method == "full" else self.precision

    @property
    def is_adapted(self) -> bool:
        """Whether adapters are trained, and the weights of the model stay as they are."""
        return self.method in ADAPTED

    @property
    def logits_at_once(self) -> int:
        """How many logits the head holds at once while learning: fewer, which is slower, if memory is short."""
        return 1 << (24 if self.recompute else 26)

    @property
    def optimizer(self) -> str:
        return OPTIMIZERS[self.method]
