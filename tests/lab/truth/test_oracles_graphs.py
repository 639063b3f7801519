"""Test the oracles of the graph datasets with answers worked out by hand."""

import pytest

from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles.graphs import ORACLES

COURSES = (
    "\nThere are a total of 3 courses you have to take, labeled from 0 to 2.\n\nYou are given the following list of "
    "prerequisites, "
    "where prerequisites[i] = (a_i, b_i) indicates that you must first take course b_i if you want to take course a_i:\n{}\n\n"
    "Return True if you can finish all courses considering the prerequisites, or False otherwise.\n"
)
ISLANDS = (
    "You are given the following 2 x 3 binary matrix grid:\n{}\n\nAn island is a group of 1's (representing land) connected "
    "4-directionally (horizontal or vertical).\nReturn the maximum area of an island in grid. If there is no island, "
    "return 0.\n"
)
PATH_STAR = (
    "\nFind a path from the start node to the goal node in the following path-star graph.\nSeparate node labels with a single "
    "space.\n\nSolve the following task:\n|2 4|1 2|3 5|1 3/1 5 = \n"
)
GRID_WALK = (
    "Your task is to find the shortest path from the start to the destination point in a grid.\n\nYou may only move in four "
    'directions: up, down, left, and right.\n\nIf there is no path from * to #, simply write "infeasible" (without quotes).\n\n'
    "Now, find the shortest path from * to # in the following grid:\n{}\n"
)
DETOUR = GRID_WALK.format("* X #\nO O O\nO O O")
SMITHS = (
    "John is married to Mary. They have children called Anna, Peter and Rain. "
    "Peter is married to Emma. They have a child called Jack."
)
FAMILY = SMITHS + "\n\nWhat relation is {} to {}? Answer with a single word."


@pytest.mark.parametrize(
    ("dataset", "question", "true", "false"),
    [
        ("course_schedule", COURSES.format("[(1, 0), (2, 1), (2, 0)]"), "True", "False"),
        ("course_schedule", COURSES.format("[(1, 0), (2, 1), (0, 2)]"), "False", "True"),
        ("largest_island", ISLANDS.format("1 0 1\n0 1 1"), "3", "4"),
        ("largest_island", ISLANDS.format("0 0 0\n0 0 0"), "0", "1"),
        ("path_star", PATH_STAR, "1 3 5", "1 2 5"),
        ("path_star", PATH_STAR, "1 3 5", "1 2 1 3 5"),
        ("shortest_path", DETOUR, "down right right up", "right right"),
        ("shortest_path", DETOUR, "down right right up", "down down right right up up"),
        ("shortest_path", GRID_WALK.format("* X\nX #"), "infeasible", "right down"),
        ("family_relationships", FAMILY.format("Emma", "Mary"), "daughter-in-law", "mother-in-law"),
        ("family_relationships", FAMILY.format("Mary", "Emma"), "mother-in-law", "daughter-in-law"),
        ("family_relationships", FAMILY.format("Anna", "Jack"), "aunt", "niece"),
        ("family_relationships", FAMILY.format("Jack", "Anna"), "nephew", "aunt"),
        ("family_relationships", FAMILY.format("Jack", "John"), "grandson", "grandfather"),
        ("family_relationships", FAMILY.format("Peter", "Rain"), "brother", "sister"),
    ],
)
def test_a_true_key_is_true_and_a_false_one_is_not(dataset: str, question: str, true: str, false: str) -> None:
    assert ORACLES[dataset](question, true)
    assert not ORACLES[dataset](question, false)


def test_a_name_that_women_and_men_bear_decides_nothing() -> None:
    assert not any(ORACLES["family_relationships"](FAMILY.format("Rain", "Peter"), key) for key in ("brother", "sister"))


@pytest.mark.parametrize("dataset", ORACLES)
def test_an_unknown_text_is_unreadable(dataset: str) -> None:
    with pytest.raises(UnreadableQuestion):
        ORACLES[dataset]("How are you?", "1")
