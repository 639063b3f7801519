"""Test the oracles of the pattern and geometry datasets with answers worked out by hand."""

import pytest

from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles import geometry, patterns

ORACLES = patterns.ORACLES | geometry.ORACLES

EXPERIMENTS = (
    "You are a researcher studying causal relationships using Blicket experiments.\n\nPrevious experimental results:\n"
    "red metal cube → off\nred metal cube, blue rubber cube → on\ngray metal cube, cyan metal cube → on\n\n"
    "New test case:\n{}\n\nWhat is the detector light status?"
)
CUBE = (
    "A cube has:\n- a red top side\n- a blue right side\n- a gold front side\n- a cyan left side\n- a pink back side\n"
    "- a gray bottom side\n\n{}\n\nWhat is now the color of the {} side of the cube?\nProvide only the color as your "
    "final answer."
)
LEFT_TO_TOP = "The cube is rotated so that the side which was before at the left is now at the top."
FRONT_TO_TOP = "Next, the front side is rotated to become the top face."
BOTTOM_TO_TOP = "The cube is rotated so that the side which was before at the bottom is now at the top."
GRID = (
    "Identify the mathematical pattern which defines this grid, then use that pattern to fill in the question marks. "
    "Return the entire completed grid as your answer.\n\n"
)
ODD_SUMS = "❌✅❌✅\n✅❌✅❌\n❌✅❌✅\n✅❌✅❌"
POLYGON = (
    "Given a convex polygon with 4 sides, its first 3 interior angles are: {}. What is the measure of the remaining "
    "interior angle "
    "(in degrees)?Return only the angle as your answer.Do not give the units in your answer."
)


@pytest.mark.parametrize(
    ("dataset", "question", "true", "false"),
    [
        ("acre", EXPERIMENTS.format("red metal cube"), "off", "undetermined"),
        ("acre", EXPERIMENTS.format("blue rubber cube"), "on", "undetermined"),
        ("acre", EXPERIMENTS.format("gray metal cube, red metal cube"), "undetermined", "on"),
        ("acre", EXPERIMENTS.format("gray metal cube, cyan metal cube"), "on", "undetermined"),
        ("acre", EXPERIMENTS.format("green metal cube"), "undetermined", "off"),
        ("color_cube_rotation", CUBE.format(LEFT_TO_TOP, "right"), "red", "blue"),
        ("color_cube_rotation", CUBE.format(LEFT_TO_TOP, "front"), "gold", "red"),
        ("color_cube_rotation", CUBE.format(f"{LEFT_TO_TOP}\n\n{FRONT_TO_TOP}", "back"), "cyan", "red"),
        ("color_cube_rotation", CUBE.format(BOTTOM_TO_TOP, "top"), "gray", "red"),
        ("modulo_grid", GRID + ODD_SUMS[:-1] + "❔", ODD_SUMS, ODD_SUMS[:-1] + "✅"),
        ("modulo_grid", GRID + ODD_SUMS[:-1] + "❔", ODD_SUMS, "✅" + ODD_SUMS[1:]),
        ("simple_geometry", POLYGON.format("90.0°, 90.0°, 90.5°"), "89.5", "90"),
        ("simple_geometry", POLYGON.format("100.0°, 120.0°, 80.0°"), "60", "sixty"),
    ],
)
def test_a_true_key_is_true_and_a_false_one_is_not(dataset: str, question: str, true: str, false: str) -> None:
    assert ORACLES[dataset](question, true)
    assert not ORACLES[dataset](question, false)


@pytest.mark.parametrize(
    ("dataset", "question", "keys"),
    [
        ("color_cube_rotation", CUBE.format(BOTTOM_TO_TOP, "front"), ("gold", "pink")),  # the cube may turn forwards or sideways
        ("modulo_grid", GRID + "❔❌\n❌✅", ("✅❌\n❌✅", "❌❌\n❌✅")),  # the same parity, or an odd product
        ("simple_geometry", POLYGON.format("30.0°, 30.0°, 30.0°"), ("270", "90")),  # no angle of a convex polygon
    ],
)
def test_no_key_is_true_where_the_text_does_not_decide(dataset: str, question: str, keys: tuple[str, ...]) -> None:
    assert not any(ORACLES[dataset](question, key) for key in keys)


@pytest.mark.parametrize("dataset", ORACLES)
def test_an_unknown_text_is_unreadable(dataset: str) -> None:
    with pytest.raises(UnreadableQuestion):
        ORACLES[dataset]("How are you?", "1")
