"""Oracles of the logic datasets whose statements are counts, sets, circuits or programs."""

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

SIBLINGS = re.compile(
    r"(\w+) has (\d+) (brother|sister)s and she also has (\d+) (?:brother|sister)s\. How many sisters does (\w+)'s "
    r"brother have\?"
)
FRIENDS = re.compile(
    r"(\w+) has \d+ male friends and she also has (\d+) female friends\. They all are friends with each other and have "
    r"no other "
    r"friends aside\. How many female friends does \w+, a male friend of \1, have\?"
)
COLLEAGUES = re.compile(
    r"(\w+) has \d+ male colleagues and she also has (\d+) female colleagues\. These are all colleagues that \1 has\. "
    r"All these "
    r"mentioned persons around \1 are colleagues of each other\. (\w+) has \d+ male colleagues and (\d+) female "
    r"colleagues in total\. "
    r"All these mentioned persons around \3 are colleagues of each other\. The people in the circle around \3 do not "
    r"have other "
    r"colleagues aside - with the only exception of Matilda\. She is colleague of \3 and she is also colleague of \1, "
    r"being part of "
    r"\1's circle\. How many female colleagues does Matilda have\?"
)


def aiw(question: str, key: str) -> bool:
    """Check a count of sisters, friends or colleagues. No key is true where the text does not say who the brother is."""
    if siblings := SIBLINGS.fullmatch(question):
        name, first, kind, second, asked_about = siblings.groups()
        return name == asked_about and key == str(int(first if kind == "sister" else second) + 1)
    if friends := FRIENDS.fullmatch(question):
        return key == str(int(friends[2]) + 1)
    if colleagues := COLLEAGUES.fullmatch(question):
        # Matilda counts in both circles. Her colleagues are the other women of both and the woman at the center of the first.
        return key == str(int(colleagues[2]) + int(colleagues[4]) - 1)
    raise UnreadableQuestion(question)


BRAINFUCK = re.compile(
    r"(?:This is a BF|Consider the following BF) \(Brainf\*ck\) [^\n]*\n\n([-+<>.\[\]\s]*)\n\n(?:Respond|Provide) only [^\n]*"
)
LONGEST_RUN = 1_000_000  # steps; far more than a program of the catalogue takes


def bf(question: str, key: str) -> bool:
    """Run a Brainfuck program without input, on cells of one byte that wrap around."""
    text = BRAINFUCK.fullmatch(question)
    if not text or text[1].count("[") != text[1].count("]"):
        raise UnreadableQuestion(question)
    return _output_of("".join(text[1].split())) == key


@functools.lru_cache(512)
def _output_of(program: str) -> str:
    return "".join(map(chr, _output(program)))


@dataclass(frozen=True)
class _Countdown:
    """A loop that counts this cell down to 0 and adds to others as often: how much each gains a time, by its distance."""

    gains: Mapping[int, int]


def _output(program: str) -> Iterator[int]:
    steps = _steps(program)
    jumps: dict[int, int] = {}
    openings: list[int] = []
    for position, step in enumerate(steps):
        if step == "[":
            openings.append(position)
        elif step == "]":
            jumps[position] = openings.pop()
            jumps[jumps[position]] = position
    cells: defaultdict[int, int] = defaultdict(int)
    position = pointer = 0
    for _ in range(LONGEST_RUN):
        if position == len(steps):
            return
        match steps[position]:
            case _Countdown(gains):
                times, cells[pointer] = cells[pointer], 0
                for distance, gain in gains.items():
                    cells[pointer + distance] = (cells[pointer + distance] + times * gain) % 256
            case "." | "[" | "]" as symbol:
                if symbol == ".":
                    yield cells[pointer]
                elif (symbol == "[") == (cells[pointer] == 0):
                    position = jumps[position]
            case str(run) if run[0] in "<>":
                pointer += run.count(">") - run.count("<")
            case str(run):
                cells[pointer] = (cells[pointer] + run.count("+") - run.count("-")) % 256
        position += 1
    raise UnreadableQuestion("the program runs too long")


def _steps(program: str) -> list[str | _Countdown]:
    """The program with runs of equal kinds as one step, and loops that only count down and add as one, too."""
    steps: list[str | _Countdown] = []
    for text in re.findall(r"\[[-+<>]*\]|[-+]+|[<>]+|[.\[\]]", program):
        steps += [text] if len(text) == 1 or text[0] != "[" else _loop(text[1:-1])
    return steps


def _loop(body: str) -> list[str | _Countdown]:
    gains: defaultdict[int, int] = defaultdict(int)
    distance = 0
    for symbol in body:
        if symbol in "<>":
            distance += 1 if symbol == ">" else -1
        else:
            gains[distance] += 1 if symbol == "+" else -1
    if distance == 0 and gains.pop(0, 0) == -1:
        return [_Countdown(gains)]
    return ["[", *re.findall(r"[-+]+|[<>]+", body), "]"]


CIRCUIT = re.compile(
    r"Below is a randomly generated logic circuit\.\n\n(.+?)\n\n\nLegend for gates:\n(.+?)\n\n"
    r"Given the following input assignments:\n(.+?)\n\nWhat is the final output\?",
    re.DOTALL,
)
GATE_INPUT = re.compile(r"[├└]─+(>o)?─*│(\S)\2")
FINAL_GATE = re.compile(r"│(\S)\1─+ OUT")
GATES: dict[str, Callable[[list[int]], bool]] = {
    "AND": all,
    "NAND": lambda bits: not all(bits),
    "OR": any,
    "NOR": lambda bits: not any(bits),
    "XOR": lambda bits: sum(bits) % 2 == 1,
}


def circuit_logic(question: str, key: str) -> bool:
    """Follow the wires of a drawing: each column of branches is an input, each block of rows a gate of the first layer."""
    text = read(CIRCUIT, question)
    try:
        return key == str(_output_bit(*text.groups()))
    except (KeyError, StopIteration, ValueError) as error:
        raise UnreadableQuestion(question) from error


def _output_bit(diagram: str, legend: str, assignments: str) -> int:
    names = dict(line.split(": ") for line in legend.split("\n"))
    bits = {name: int(bit) for name, bit in re.findall(r"  (\w+) = ([01])(?:\n|$)", assignments)}
    drawing = diagram.split("\n")
    columns = {line.index("┐"): bits[line.split(":")[0]] for line in drawing[: len(bits)]}
    inputs = [_gate_input(line, columns) for line in drawing[len(bits) :]]
    gates = [list(rows) for is_gate, rows in itertools.groupby(inputs, key=bool) if is_gate]
    final = FINAL_GATE.search(diagram)
    if not final or any(len({symbol for symbol, _ in filter(None, rows)}) != 1 for rows in gates):
        raise UnreadableQuestion(diagram)
    column = next(line.index(final[0]) for line in drawing if final[0] in line)
    if sum(line[column : column + 3] == f"│{final[1] * 2}" for line in drawing) != len(gates):
        raise UnreadableQuestion(diagram)
    outputs = [int(GATES[names[rows[0][0] * 2]]([bit for _, bit in filter(None, rows)])) for rows in gates if rows[0]]
    return int(GATES[names[final[1] * 2]](outputs))


def _gate_input(line: str, columns: dict[int, int]) -> tuple[str, int] | None:
    """The gate's symbol and the bit that reaches it on this line of the drawing; None on a line between two gates."""
    branches = [column for column in columns if line[column : column + 1] in ("├", "└")]
    if not branches:
        return None
    wire = GATE_INPUT.match(line, min(branches))
    if len(branches) != 1 or not wire:
        raise UnreadableQuestion(line)
    return wire[2], columns[branches[0]] ^ bool(wire[1])


SELF_REFERENCE = re.compile(
    r"Given the truthfulness of these statements, please tell me the number of possible solutions: \n"
    r" - Statement 1: 'At least (\d) of these 7 statements are true\.'\n"
    r" - Statement 2: 'At most (\d) of these 7 statements are false\.'\n"
    r" - Statement 3: 'Exactly (\d) of these 7 statements are true\.'\n"
    r" - Statement 4: 'Exactly (\d) of these 7 statements are false\.'\n"
    r" - Statement 5: 'Either Statement 3 or Statement 4 is true, but not both\.'\n"
    r" - Statement 6: 'The number of true statements is a prime number\.'\n"
    r" - Statement 7: 'The number of false statements is a composite number\.'\n"
)


def self_reference(question: str, key: str) -> bool:
    """Count the ways to call each of seven statements true or false that agree with what the statements say."""
    text = read(SELF_REFERENCE, question)
    least_true, most_false, exactly_true, exactly_false = map(int, text.groups())
    consistent = 0
    for claims in itertools.product((False, True), repeat=7):
        true = sum(claims)
        false = 7 - true
        facts = (
            true >= least_true, false <= most_false, true == exactly_true, false == exactly_false,
            claims[2] != claims[3], true in (2, 3, 5, 7), false in (4, 6),
        )  # fmt: skip
        consistent += facts == claims
    return key == str(consistent)


SYLLOGISM = re.compile(
    r"Consider these statements:\n1\. ([^\n]+)\n2\. ([^\n]+)\n\nDoes it logically follow that:\n([^\n]+)\?\n\(Answer "
    r"Yes or No\)"
)
STATEMENT = re.compile(r"(All|No|Some) (\w+) are (not )?(\w+)")


def syllogism(question: str, key: str) -> bool:
    """Look for a world in which the premises hold and the conclusion does not.

    Each kind of being that a statement names exists in every such world, as in plain speech and in Aristotle: from "All dogs are
    animals" follows "Some animals are dogs".
    """
    text = SYLLOGISM.fullmatch(question)
    statements = [STATEMENT.fullmatch(statement) for statement in text.groups()] if text else []
    if not all(statements) or not statements:
        raise UnreadableQuestion(question)
    read = [statement.groups() for statement in statements if statement]
    if any(negation and quantifier != "Some" for quantifier, _, negation, _ in read):
        raise UnreadableQuestion(question)
    terms = sorted({term for _, subject, _, predicate in read for term in (subject, predicate)})
    beings = [frozenset(kinds) for size in range(len(terms) + 1) for kinds in itertools.combinations(terms, size)]
    follows = True
    for chosen in itertools.product((False, True), repeat=len(beings)):
        world = [being for being, is_there in zip(beings, chosen, strict=True) if is_there]
        if all(any(term in being for being in world) for term in terms):
            *premises, conclusion = (_holds(world, *statement) for statement in read)
            follows = follows and (conclusion or not all(premises))
    return key == ("Yes" if follows else "No")


def _holds(world: list[frozenset[str]], quantifier: str, subject: str, negation: str | None, predicate: str) -> bool:
    members = [(predicate in being) != bool(negation) for being in world if subject in being]
    match quantifier:
        case "All":
            return all(members)
        case "No":
            return not any(members)
    return any(members)


ORACLES: dict[str, Oracle] = {
    "aiw": aiw,
    "bf": bf,
    "circuit_logic": circuit_logic,
    "self_reference": self_reference,
    "syllogism": syllogism,
}
