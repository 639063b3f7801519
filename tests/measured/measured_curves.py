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
from waggle.practice.results import Run
from waggle.tasks.shipped_swarms import first_steps
from waggle_lab.study.statistics import held_out

TABLE = Path(__file__).parent / "real_model/first_steps.jsonl"
OPTIONS = "form=0.25:prompt=chat_example_opened:rate=2e-5"
ALONE, WITH_PEERS = f"8/0:{OPTIONS}", f"default:{OPTIONS}"
DIGITS = 3
SOURCE = "SmolLM2-135M on one graphics card"


def runs_of(lines: Iterable[bytes]) -> list[Run]:
    return [msgspec.json.decode(line, type=Run) for line in lines if line.strip()]


def curve(played: Sequence[Run], configuration: str, nodes: int) -> tuple[list[int], list[float], int]:
    """The rounds, the mean held-out share after each, and the number of runs of a configuration with so many nodes."""
    runs = [run for run in played if run.key.configuration == configuration and len(run.models) == nodes]
    (rounds,) = {run.measured_at for run in runs}
    return list(rounds), [round(fmean(shares), DIGITS) for shares in zip(*map(held_out, runs), strict=True)], len(runs)


def content(played: Sequence[Run]) -> list[dict[str, Any]]:
    """The resource: one model so far."""
    charter = first_steps()
    rounds, alone, runs = curve(played, ALONE, 1)
    same_rounds, with_peers, swarms = curve(played, WITH_PEERS, 4)
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
    (paths.resources() / "measured_curves.json").write_bytes(written(content(runs_of(TABLE.read_bytes().splitlines()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
