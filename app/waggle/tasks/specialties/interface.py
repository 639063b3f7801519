"""What a dataset of Waggle's own has to define: how it makes questions, in which levels, and how it scores answers.

The same seed and settings must give the same entry on every computer and Python, because a peer's questions are made again here.
A score must take time and memory at most in proportion to the text, and must not evaluate, import or open anything: the text
comes from strangers. `waggle-lab audit` checks both, and a charter may name the dataset once `resources/audit.jsonl` lists it.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Setting = int | float | bool | str | list[int | str]  # of a dataset
Difficulty = Literal["easy", "standard", "hard"]
Topic = Literal["algorithms", "arithmetic", "games", "geometry", "graphs", "logic", "patterns"]


@dataclass(frozen=True)
class Entry:
    """A question with its true answer."""

    question: str
    answer: str


def exact_match(text: str, answer: str) -> float:
    """1 for the true answer, whatever its case and the white space around it; else 0."""
    return float(text.strip().casefold() == answer.casefold())


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset.

    `generate(rng, **settings)` makes an entry from a `random.Random` and nothing else; its keyword arguments are the settings,
    their defaults the difficulty "standard". `score(text, answer)` returns a reward from 0 to 1. `title` and `topic` are words
    for people. `levels` holds the settings of each difficulty that a new swarm can choose, at least "standard": {}.
    """

    title: str
    topic: Topic
    generate: Callable[..., Entry]
    levels: Mapping[Difficulty, Mapping[str, Setting]]
    score: Callable[[str, str], float] = exact_match

    def __post_init__(self) -> None:
        """Raise ValueError for levels that a new swarm could not use."""
        if self.levels.get("standard") != {}:
            raise ValueError('levels needs "standard": {}')

    def entry(self, seed: int, settings: Mapping[str, Setting]) -> Entry:
        return self.generate(random.Random(seed), **settings)

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        """The method by which datasets of reasoning-gym score, with an entry in their form."""
        return self.score(answer, entry["answer"])
