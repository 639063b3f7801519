"""Write resources/measured_curves.json, the held-out curves of a real model that Progress shows beside a person's own.

    PYTHONPATH=app python tests/measured/measured_curves.py

They are the means over the seeds, and over the nodes of a swarm, of the runs in tests/measured/real_model/first_steps.jsonl.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from waggle.core import paths
from waggle.tasks.shipped_swarms import first_steps

TABLE = Path(__file__).parent / "real_model/first_steps.jsonl"
OPTIONS = "form=0.25:prompt=chat_example_opened:rate=2e-5"
ALONE, WITH_PEERS = f"8/0:{OPTIONS}", f"default:{OPTIONS}"
DIGITS = 3
SOURCE = "SmolLM2-135M on one graphics card"


def rows_of(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in lines if line.strip()]


def curve(rows: Sequence[dict[str, Any]], configuration: str, nodes: int) -> tuple[list[int], list[float], int]:
    """The rounds, the mean held-out share after each, and the number of runs of a configuration with so many nodes."""
    runs = [row for row in rows if row["key"]["configuration"] == configuration and len(row["models"]) == nodes]
    (rounds,) = {tuple(row["measured_at"]) for row in runs}
    swarms = [[fmean(shares) for shares in zip(*row["held_out"], strict=True)] for row in runs]
    return list(rounds), [round(fmean(shares), DIGITS) for shares in zip(*swarms, strict=True)], len(runs)


def content(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The resource: one model so far."""
    charter = first_steps()
    rounds, alone, runs = curve(rows, ALONE, 1)
    same_rounds, with_peers, swarms = curve(rows, WITH_PEERS, 4)
    assert rounds == same_rounds
    return [
        {
            "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
            "weights": 134_515_008,
            "specialties": {specialty.dataset: list(specialty.levels) for specialty in charter.specialties},
            "rounds": rounds,
            "alone": alone,
            "runs": runs,
            "with_peers": with_peers,
            "swarms": swarms,
            "peers": 3,
            "source": SOURCE,
        }
    ]


def written(models: Sequence[dict[str, Any]]) -> bytes:
    """One model a line."""
    return b"[\n" + b",\n".join(msgspec.json.format(msgspec.json.encode(model), indent=0) for model in models) + b"\n]\n"


def main() -> int:
    (paths.resources() / "measured_curves.json").write_bytes(written(content(rows_of(TABLE.read_bytes().splitlines()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
