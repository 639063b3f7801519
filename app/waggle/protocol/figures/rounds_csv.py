"""Every round as numbers: a table for spreadsheets, or one JSON object a line. The columns keep their names in every language."""

import csv
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TextIO

from waggle.protocol.events import HeldOutScore, RoundSummary

Form = Literal["csv", "jsonl"]
Value = int | float | str | None
FORMS: tuple[Form, ...] = ("csv", "jsonl")
WORDS = ("finished", "rule", "swarm", "run")
WHOLE_NUMBERS = (
    "round", "held_out_right", "held_out_total", "answers", "tokens", "local_groups", "external_groups", "groups_learned_from",
    "memory",
)  # fmt: skip


def write(file: TextIO, rounds: Sequence[RoundSummary], scores: Iterable[HeldOutScore], form: Form = "csv") -> None:
    """Write rounds, oldest first, each score with the last round before it was measured. Raises OSError.

    The reward of each specialty has a column of its own, `reward TITLE`.
    """
    rows = every_row(rounds, scores)
    if form == "jsonl":
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    writer = csv.writer(file)
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow(["" if value is None else _safe(value) for value in row.values()])


def every_row(rounds: Sequence[RoundSummary], scores: Iterable[HeldOutScore]) -> list[dict[str, Value]]:
    """Every round as a row, oldest first, with the columns of all of them: what `write` writes, for other forms of tables."""
    titles = list(dict.fromkeys(title for summary in rounds for title in summary.by_specialty))
    return list(_rows(rounds, score_places(rounds, scores), titles))


def kind_of(column: str) -> Literal["words", "whole", "number"]:
    """What the values of a column are, also where a table has none: tables of two runs have the same columns."""
    return "words" if column in WORDS else "whole" if column in WHOLE_NUMBERS else "number"


def _rows(
    rounds: Sequence[RoundSummary], scores: Mapping[int, HeldOutScore], titles: Sequence[str]
) -> Iterator[dict[str, Value]]:
    for place, summary in enumerate(rounds):
        score = scores.get(place)
        yield {
            "round": summary.round,
            "finished": datetime.fromtimestamp(summary.at).astimezone().isoformat(timespec="seconds"),
            "held_out_right": score.right if score else None,
            "held_out_total": score.total if score else None,
            "reward": summary.reward,
            "right": summary.solved,
            "answers": summary.completions,
            "tokens": summary.tokens,
            "seconds": summary.seconds,
            "local_groups": summary.local,
            "external_groups": summary.external,
            "external_reward": summary.external_reward,
            "groups_learned_from": summary.taught,
            "loss": summary.metrics.loss,
            "clip_fraction": summary.metrics.clip_fraction,
            "gradient_norm": summary.metrics.gradient_norm,
            "entropy": summary.metrics.entropy,
            "external_share": summary.metrics.external_share,
            "learning_rate": summary.metrics.learning_rate,
            "held_out": score.right / score.total if score and score.total else None,
            "rule": summary.rule or None,
            "swarm": summary.swarm or None,
            "memory": summary.memory or None,
            "run": summary.run or None,
            **{f"reward {title}": summary.by_specialty.get(title) for title in titles},
        }


def score_places(rounds: Sequence[RoundSummary], scores: Iterable[HeldOutScore]) -> dict[int, HeldOutScore]:
    """By the place of its round. `score.round` counts finished rounds; the very first score goes with the first round."""
    numbers = [summary.round for summary in rounds]
    return {max(0, bisect_left(numbers, score.round) - 1): score for score in scores if numbers and score.round >= numbers[0]}


def _safe(value: int | float | str) -> int | float | str:
    """Titles of specialties come from strangers: a spreadsheet must not take one for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
