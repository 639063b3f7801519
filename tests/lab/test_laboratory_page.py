"""The tables that `tests/measured/lab_swarm/README.md` shows are those of `lab_swarm.json`, to the last digit."""

import json
from pathlib import Path

import pytest

MEASURED = Path(__file__).parents[1] / "measured"
SETTINGS = ("sparse", "identical", "diversified", "heterogeneous")
ROWS = {
    "8/0, alone": "8/0",
    "8/0-filtered: alone, up to three times the questions": "8/0-filtered",
    "6/2": "6/2",
    "4/4, the paper's best": "4/4",
    "2/6": "2/6",
    "**the default**": "default",
}
MEASURES = {"heldout_auc": 100.0, "heldout_final": 100.0, "reward_cumulative": 1.0}


def table(figures: dict, measure: str) -> list[str]:
    """One row a configuration, one column a setting; then how the default compares."""
    rows = []
    for words, name in ROWS.items():
        rows.append([words, *(level(figures[setting][name][measure], MEASURES[measure]) for setting in SETTINGS)])
    ratios = {"default against 8/0": "_ratio", "default against 8/0-filtered": "_ratio_to_8/0-filtered"}
    for words, suffix in ratios.items():
        rows.append([words, *(gain(figures[setting]["default"][measure + suffix]) for setting in SETTINGS)])
    if measure != "reward_cumulative":
        at_cost = measure.replace("_final", "") + "_at_equal_cost_ratio_to_8/0-filtered"
        rows.append(["the same, by completions generated", *(gain(figures[s]["default"][at_cost]) for s in SETTINGS)])
    return ["| " + " | ".join(row) + " |" for row in rows]


def level(figure: list[float], times: float) -> str:
    mean, low, high = (f"{times * value:.1f}" for value in figure)
    return f"{mean} [{low}, {high}]"


def gain(figure: list[float]) -> str:
    mean, low, high = (f"{round(100 * (value - 1)):+d}" for value in figure)
    return f"{mean} % [{low}, {high}]"


@pytest.mark.parametrize("measure", MEASURES)
def test_the_tables_for_people_hold_the_measured_figures(measure: str) -> None:
    figures = json.loads((MEASURED / "lab_swarm.json").read_text())["figures"]
    text = (MEASURED / "lab_swarm" / "README.md").read_text(encoding="utf-8")
    assert "\n".join(table(figures, measure)) in text
