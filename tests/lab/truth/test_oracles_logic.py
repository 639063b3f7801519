"""Test the oracles of the logic datasets with answers worked out by hand."""

import pytest

from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles import logic, logic_deduction, logic_formulas

ORACLES = logic.ORACLES | logic_formulas.ORACLES | logic_deduction.ORACLES

SISTERS = "Susan has 2 brothers and she also has 6 sisters. How many sisters does Susan's brother have?"
SOMEBODY_ELSE = "Susan has 6 sisters and she also has 2 brothers. How many sisters does David's brother have?"
FRIENDS = (
    "Mary has 3 male friends and she also has 4 female friends. They all are friends with each other and have no other friends "
    "aside. How many female friends does Bob, a male friend of Mary, have?"
)
COLLEAGUES = (
    "Mary has 1 male colleagues and she also has 4 female colleagues. These are all colleagues that Mary has. All "
    "these mentioned "
    "persons around Mary are colleagues of each other. Bob has 2 male colleagues and 3 female colleagues in total. All "
    "these mentioned "
    "persons around Bob are colleagues of each other. The people in the circle around Bob do not have other colleagues "
    "aside - with "
    "the only exception of Matilda. She is colleague of Bob and she is also colleague of Mary, being part of Mary's circle. "
    "How many female colleagues does Matilda have?"
)
PROGRAM = (
    "This is a BF (Brainf*ck) computer program. What is the output?\n\n{}\n\nRespond only with the exact output of the program."
)
CIRCUIT = """Below is a randomly generated logic circuit.

A: ───┐
B: ─┐ │
    │ ├────│&&
    ├──────│&&─┐
    │ │        └─│++
    │ └─>o─│⊕⊕ ┌─│++─── OUT
    └──────│⊕⊕─┘


Legend for gates:
&&: AND
↑↑: NAND
⊕⊕: XOR
>o: Negate
++: OR

Given the following input assignments:
  A = {a}
  B = {b}

What is the final output?"""
SELF_REFERENCE = (
    "Given the truthfulness of these statements, please tell me the number of possible solutions: \n"
    " - Statement 1: 'At least {} of these 7 statements are true.'\n"
    " - Statement 2: 'At most {} of these 7 statements are false.'\n"
    " - Statement 3: 'Exactly {} of these 7 statements are true.'\n"
    " - Statement 4: 'Exactly {} of these 7 statements are false.'\n"
    " - Statement 5: 'Either Statement 3 or Statement 4 is true, but not both.'\n"
    " - Statement 6: 'The number of true statements is a prime number.'\n"
    " - Statement 7: 'The number of false statements is a composite number.'\n"
)
SYLLOGISM = "Consider these statements:\n1. {}\n2. {}\n\nDoes it logically follow that:\n{}?\n(Answer Yes or No)"
FORMULAS = (
    "The following question is a propositional logic reasoning question.\n\nIn the question we provide a list of premises.\n\n"
    "Here is the question:\nGiven:\n1. (P → ¬Q)\n.2. Q\n.What can we conclude from the above statements?"
)
DEDUCTION = "{} is true.\n{}.\nIs Q true, false or unknown? Answer with one word."
ISLAND = (
    "A very special island is inhabited only by heros and villains. Heros always tell the truth, and villains always lie. "
    'You meet 2 inhabitants: Zoey, and Jack. {} So who is a hero and who is a villain? (Format your answer like: "Zoey is a '
    'hero/villain, and Jack is a hero/villain")'
)


def syllogism(*statements: str) -> str:
    return SYLLOGISM.format(*statements)


@pytest.mark.parametrize(
    ("dataset", "question", "true", "false"),
    [
        ("aiw", SISTERS, "7", "6"),
        ("aiw", FRIENDS, "5", "4"),
        ("aiw", COLLEAGUES, "6", "5"),  # of four and three women each circle lacks Matilda, and Mary joins them
        ("bf", PROGRAM.format("++++++++[>++++++++<-]>+.+."), "AB", "A"),
        ("bf", PROGRAM.format("-[-]+++++[>+++++++++++++<-]>."), "A", "B"),
        ("bf", PROGRAM.format("+++++[>++++[>+++<-]>+<<-]>>."), "A", "<"),  # a loop within a loop
        ("bf", PROGRAM.format(f"----[++>{33 * '+'}<]>."), "B", "A"),  # a loop that counts up by two
        ("self_reference", SELF_REFERENCE.format(1, 7, 7, 7), "0", "1"),
        ("syllogism", syllogism("All dogs are cats", "All cats are fish", "All dogs are fish"), "Yes", "No"),
        ("syllogism", syllogism("All dogs are cats", "Some cats are fish", "Some dogs are fish"), "No", "Yes"),
        ("syllogism", syllogism("No dogs are cats", "All fish are cats", "No dogs are fish"), "Yes", "No"),
        ("syllogism", syllogism("All dogs are cats", "No cats are fish", "Some cats are dogs"), "Yes", "No"),
        ("syllogism", syllogism("Some dogs are not cats", "No cats are fish", "Some cats are not dogs"), "No", "Yes"),
        ("logic_deduction", DEDUCTION.format("P", "If P is true, then Q is false"), "false", "unknown"),
        ("logic_deduction", DEDUCTION.format("P", "If P is false, then Q is false"), "unknown", "true"),
        ("logic_deduction", DEDUCTION.format("R", "If Q is false, then R is false"), "true", "unknown"),
        ("logic_deduction", DEDUCTION.format("R", "Exactly one of Q and R is true"), "false", "true"),
        ("logic_deduction", DEDUCTION.format("R", "Q and R are both true or both false"), "true", "false"),
        ("logic_deduction", DEDUCTION.format("R", "At least one of R and Q is false"), "false", "unknown"),
        ("propositional_logic", FORMULAS, "¬P", "P"),
        ("propositional_logic", FORMULAS, "(P ↔ ¬Q)", "(P ∧ Q)"),
        ("propositional_logic", FORMULAS, "(R ∨ Q)", "therefore Q"),
    ],
)
def test_a_true_key_is_true_and_a_false_one_is_not(dataset: str, question: str, true: str, false: str) -> None:
    assert ORACLES[dataset](question, true)
    assert not ORACLES[dataset](question, false)


def test_no_number_of_sisters_is_true_for_somebody_of_whom_the_text_says_nothing() -> None:
    assert not any(ORACLES["aiw"](SOMEBODY_ELSE, str(number)) for number in range(20))


@pytest.mark.parametrize(("a", "b", "true"), [(1, 1, "1"), (0, 0, "1"), (1, 0, "0"), (0, 1, "0")])
def test_a_circuit_is_read_from_its_drawing(a: int, b: int, true: str) -> None:
    question = CIRCUIT.format(a=a, b=b)
    assert ORACLES["circuit_logic"](question, true)
    assert not ORACLES["circuit_logic"](question, "10"[int(true)])


@pytest.mark.parametrize(
    ("speeches", "true", "false"),
    [
        ('Zoey said that Jack is a villain. Jack stated, "Zoey is a hero or Zoey is a villain".', (False, True), (True, True)),
        ('"Jack is a hero if and only if Zoey is a villain" - Zoey. In Jack\'s words: "Jack is a hero".', None, (False, False)),
        (
            '"if Jack is a villain then (Zoey is a villain and Jack is a villain)," Zoey declared. Jack was heard '
            'saying, "it is not the case '
            'that (Zoey is a villain and Jack is a villain)".',
            (True, True),
            (False, True),
        ),
    ],
)
def test_the_truthful_and_the_liars(speeches: str, true: tuple[bool, bool] | None, false: tuple[bool, bool]) -> None:
    def answer(roles: tuple[bool, bool]) -> str:
        zoey, jack = ("a hero" if role else "a villain" for role in roles)
        return f"Zoey is {zoey}, and Jack is {jack}."

    question = ISLAND.format(speeches)
    assert true is None or ORACLES["knights_knaves"](question, answer(true))
    assert not ORACLES["knights_knaves"](question, answer(false))
    assert not ORACLES["knights_knaves"](question, "Zoey is a hero")


@pytest.mark.parametrize("dataset", ORACLES)
def test_an_unknown_text_is_unreadable(dataset: str) -> None:
    with pytest.raises(UnreadableQuestion):
        ORACLES[dataset]("How are you?", "1")
