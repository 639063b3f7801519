"""Presets: choices for a new swarm of a certain kind, so that its author only names it."""

from dataclasses import dataclass

from waggle.tasks.specialties.interface import Difficulty


@dataclass(frozen=True, kw_only=True)
class SwarmPreset:
    """What a charter of this kind agrees on. Short answers and small groups make short rounds, on any computer."""

    specialties: tuple[tuple[str, Difficulty], ...]
    model_hint: str
    completion_characters: int
    group_size_max: int


# Questions that children and beginners can check in their heads, and answers to which the starter nearly knows.
CLASSROOM = SwarmPreset(
    specialties=(
        ("basic_arithmetic", "easy"), ("calendar_arithmetic", "easy"), ("decimal_arithmetic", "easy"),
        ("fraction_simplification", "easy"), ("logic_deduction", "easy"),
    ),
    model_hint="The starter that comes with Waggle",
    completion_characters=400,
    group_size_max=8,
)  # fmt: skip
PRESETS = {"classroom": CLASSROOM}
