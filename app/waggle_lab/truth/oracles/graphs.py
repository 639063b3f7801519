"""Oracles of the datasets about graphs, grids to walk through and families."""

import ast
import graphlib
import itertools
import re
from collections import defaultdict

from waggle_lab.truth.grids import STEPS, distances
from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

COURSES = re.compile(
    r"\s*There are a total of (\d+) courses you have to take, labeled from 0 to (\d+)\.\n\nYou are given the following list of "
    r"prerequisites, where prerequisites\[i\] = \(a_i, b_i\) indicates that you must first take course b_i if you want "
    r"to take course "
    r"a_i:\n(\[[\d(), ]*\])\n\nReturn True if you can finish all courses considering the prerequisites, or False otherwise\.\s*"
)


def course_schedule(question: str, key: str) -> bool:
    """Look for an order of the courses."""
    text = read(COURSES, question)
    courses: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for course, first in ast.literal_eval(text[3]):
        courses.add(course, first)
    try:
        courses.prepare()
    except graphlib.CycleError:
        return key == "False"
    return key == "True"


ISLANDS = re.compile(
    r"You are given the following (\d+) x (\d+) binary matrix grid:\n([01 \n]+)\n\nAn island is a group of 1's "
    r"\(representing land\) "
    r"connected 4-directionally \(horizontal or vertical\)\..*Return the maximum area of an island in grid\. "
    r"If there is no island, return 0\.\s*",
    re.DOTALL,
)


def largest_island(question: str, key: str) -> bool:
    """Measure each island."""
    text = ISLANDS.fullmatch(question)
    rows = [line.split() for line in text[3].split("\n")] if text else []
    if not text or len(rows) != int(text[1]) or any(len(row) != int(text[2]) for row in rows):
        raise UnreadableQuestion(question)
    land = {(row, column) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell == "1"}
    areas = [0]
    while land:
        island = distances(next(iter(land)), land)
        areas.append(len(island))
        land -= island.keys()
    return key == str(max(areas))


PATH_STAR = re.compile(
    r"\s*Find a path from the start node to the goal node in the following path-star graph\.\n.*Separate node labels "
    r"with a single "
    r"space\.\n.*Solve the following task:\n((?:\|\d+ \d+)+)/(\d+) (\d+) =\s*",
    re.DOTALL,
)


def path_star(question: str, key: str) -> bool:
    """Check that a path goes from the start to the goal along edges and visits no node twice."""
    text = read(PATH_STAR, question)
    edges = {frozenset(edge.split()) for edge in text[1].strip("|").split("|")}
    nodes = key.split(" ")
    return (
        (nodes[0], nodes[-1]) == text.groups()[1:]
        and len(set(nodes)) == len(nodes)
        and all(frozenset(edge) in edges for edge in itertools.pairwise(nodes))
    )


GRID_WALK = re.compile(
    r"Your task is to find the shortest path from the start to the destination point in a grid\..*You may only move in four "
    r'directions: up, down, left, and right\.\n\nIf there is no path from \* to #, simply write "infeasible" \(without '
    r"quotes\)\..*"
    r"Now, find the shortest path from \* to # in the following grid:\n([*#OX \n]+?)\s*",
    re.DOTALL,
)


def shortest_path(question: str, key: str) -> bool:
    """Check that a path is as short as any, or that there is none."""
    text = GRID_WALK.fullmatch(question)
    if not text or (text[1].count("*"), text[1].count("#")) != (1, 1):
        raise UnreadableQuestion(question)
    cells = {(row, column): cell for row, line in enumerate(text[1].split("\n")) for column, cell in enumerate(line.split(" "))}
    start, goal = (next(cell for cell, sign in cells.items() if sign == mark) for mark in "*#")
    distance = distances(start, [cell for cell, sign in cells.items() if sign != "X"]).get(goal)
    if distance is None or key == "infeasible":
        return distance is None and key == "infeasible"
    words = key.split(" ")
    if len(words) != distance or not set(words) <= set(STEPS):
        return False
    place = start
    for word in words:
        place = place[0] + STEPS[word][0], place[1] + STEPS[word][1]
        if cells.get(place, "X") == "X":
            return False
    return place == goal


FAMILY = re.compile(
    r"((?:\w+ is married to \w+\.(?: They have (?:a child|children) called [\w, ]+\.)? ?)+)\n\n"
    r"(?:What is (\w+) to (\w+)\? Respond only with the word that describes their relationship\."
    r"|How is (\w+) related to (\w+)\? Provide the relationship in one word\."
    r"|What relation is (\w+) to (\w+)\? Answer with a single word\.)"
)
COUPLE = re.compile(r"(\w+) is married to (\w+)\.(?: They have (?:a child|children) called ([\w, ]+)\.)?")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MALE = _names(
    "James John Robert Michael William David Richard Joseph Thomas Charles Peter Daniel Matthew Christopher Andrew "
    "George Edward Benjamin Henry Samuel Alexander Oliver Jack Harry Jacob Noah Ethan Lucas Mason Logan Sebastian "
    "Theodore Owen Liam Aiden Kai Jayden Zion Atlas Axel Ryder Finn"
)
FEMALE = _names(
    "Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Emma Lisa Anna Margaret Victoria "
    "Charlotte Sophia Isabella Olivia Ava Mia Emily Abigail Amelia Eleanor Grace Alice Lucy Chloe Sophie Lily Hannah "
    "Zoe Luna Nova Aria Willow Aurora"
)
UNISEX = _names("Phoenix Rain River Sage Sky Winter")  # given to women and men
WORDS = {  # by relation: the word for a man and the word for a woman
    "child": ("son", "daughter"),
    "child-in-law": ("son-in-law", "daughter-in-law"),
    "grandchild": ("grandson", "granddaughter"),
    "grandparent": ("grandfather", "grandmother"),
    "parent": ("father", "mother"),
    "parent-in-law": ("father-in-law", "mother-in-law"),
    "parent's sibling": ("uncle", "aunt"),
    "sibling": ("brother", "sister"),
    "sibling's child": ("nephew", "niece"),
    "spouse": ("husband", "wife"),
}


def family_relationships(question: str, key: str) -> bool:
    """Name the relation of the first person to the second.

    No key is true if the word depends on whether somebody with a unisex name is a woman or a man. Their spouse decides, if any.
    """
    text = read(FAMILY, question)
    spouses: dict[str, str] = {}
    parents: dict[str, set[str]] = defaultdict(set)
    for first, second, children in COUPLE.findall(text[1]):
        spouses |= {first: second, second: first}
        for child in filter(None, re.split(", | and ", children)):
            parents[child] = {first, second}
    person, other = filter(None, text.groups()[1:])
    kinds = _kinship(person, other, spouses, parents)
    if len(kinds) != 1 or not {person, other} <= spouses.keys() | parents.keys():
        raise UnreadableQuestion(question)
    return key == _word(person, kinds.pop(), spouses)


def _kinship(person: str, other: str, spouses: dict[str, str], parents: dict[str, set[str]]) -> set[str]:
    def parents_of(somebody: str) -> set[str]:
        return parents.get(somebody, set())

    def grandparents(somebody: str) -> set[str]:
        return {elder for parent in parents_of(somebody) for elder in parents_of(parent)}

    facts = {
        "child": other in parents_of(person),
        "child-in-law": other in parents_of(spouses.get(person, "")),
        "grandchild": other in grandparents(person),
        "grandparent": person in grandparents(other),
        "parent": person in parents_of(other),
        "parent-in-law": person in parents_of(spouses.get(other, "")),
        "parent's sibling": bool(parents_of(person) & grandparents(other)) and person not in parents_of(other),
        "sibling": bool(parents_of(person)) and parents_of(person) == parents_of(other),
        "sibling's child": bool(parents_of(other) & grandparents(person)) and other not in parents_of(person),
        "spouse": spouses.get(person) == other,
    }
    return {kind for kind, is_so in facts.items() if is_so}


def _word(person: str, kind: str, spouses: dict[str, str]) -> str | None:
    spouse = spouses.get(person, "")
    for names, opposite, word in (MALE, FEMALE, WORDS[kind][0]), (FEMALE, MALE, WORDS[kind][1]):
        if person in names or (person in UNISEX and spouse in opposite):
            return word
    if person not in UNISEX:
        raise UnreadableQuestion(person)
    return None


ORACLES: dict[str, Oracle] = {
    "course_schedule": course_schedule,
    "family_relationships": family_relationships,
    "largest_island": largest_island,
    "path_star": path_star,
    "shortest_path": shortest_path,
}
