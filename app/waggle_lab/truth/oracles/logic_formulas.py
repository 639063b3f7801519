"""Oracles of the logic datasets whose statements are formulas, in symbols or in words."""

import itertools
import re
from collections.abc import Callable, Mapping

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

Formula = Callable[[Mapping[str, bool]], bool]
CONNECTIVES: dict[str, Callable[[bool, bool], bool]] = {
    "∧": lambda first, second: first and second,
    "∨": lambda first, second: first or second,
    "→": lambda first, second: not first or second,
    "↔": lambda first, second: first == second,
}
PREMISES = re.compile(
    r"The following question is a propositional logic reasoning question\.\n.*\nHere is the question:\nGiven:\n1\. (.+)"
    r"\n\.What can we conclude from the above statements\?",
    re.DOTALL,
)


def propositional_logic(question: str, key: str) -> bool:
    """Check in all rows of the truth table that the conclusion holds wherever the premises do."""
    text = read(PREMISES, question)
    premises = [_read_formula(premise) for premise in re.split(r"\n\.\d+\. ", text[1])]
    try:
        conclusion = _read_formula(key)
    except UnreadableQuestion:
        return False
    letters = sorted(set(re.findall(r"[A-Z]", text[1] + key)))
    rows = [dict(zip(letters, row, strict=True)) for row in itertools.product((False, True), repeat=len(letters))]
    return all(conclusion(row) for row in rows if all(premise(row) for premise in premises))


def _read_formula(text: str) -> Formula:
    formula, rest = _read_operand(re.sub(r"\s", "", text))
    if rest:
        raise UnreadableQuestion(text)
    return formula


def _read_operand(text: str) -> tuple[Formula, str]:
    """The formula at the start of a text, and the rest of the text. Two operands stand in brackets."""
    head, rest = text[:1], text[1:]
    if head == "¬":
        negated, rest = _read_operand(rest)
        return lambda row: not negated(row), rest
    if head == "(":
        first, rest = _read_operand(rest)
        connective, rest = rest[:1], rest[1:]
        second, rest = _read_operand(rest)
        if connective not in CONNECTIVES or not rest.startswith(")"):
            raise UnreadableQuestion(text)
        return lambda row: CONNECTIVES[connective](first(row), second(row)), rest[1:]
    if "A" <= head <= "Z":
        return lambda row: row[head], rest
    raise UnreadableQuestion(text)


ISLAND = re.compile(
    r"A very special island is inhabited only by (\w+)s and (\w+)s\. (\w+)s always tell the truth, and (\w+)s always lie\. "
    r"You meet \d+ inhabitants: ([\w, ]+), and (\w+)\. (.+) So who is an? \1 and who is an? \2\? "
    r'\(Format your answer like: "[^"]*"\)'
)
SPEECHES = (
    r"NAME (?:said|told you|expressed) that WORDS\.",
    r'NAME (?:said|remarked|stated|was heard saying|commented|noted), "WORDS(?:\."|"\.)',
    r'NAME asserted: "WORDS"\.',
    r'(?:According to|In a statement by|In|As) NAME(?:\'s words| put it|)[,:] "WORDS"\.',
    r'"WORDS," NAME (?:declared|mentioned|claimed)\.',
    r'"WORDS" - NAME\.',
)


def knights_knaves(question: str, key: str) -> bool:
    """Check that the key is the only way in which exactly the truthful inhabitants say true things."""
    text = ISLAND.fullmatch(question)
    if not text or [text[3].lower(), text[4].lower()] != [text[1], text[2]]:
        raise UnreadableQuestion(question)
    roles = {text[1]: True, text[2]: False}
    names = [*text[5].split(", "), text[6]]
    statements = _read_speeches(text[7], names, roles)
    rows = [dict(zip(names, row, strict=True)) for row in itertools.product((False, True), repeat=len(names))]
    solutions = [row for row in rows if all(statements[name](row) == row[name] for name in names)]
    answers = [re.fullmatch(r"(?:and )?(\w+) is an? (\w+)", part) for part in key.removesuffix(".").split(", ")]
    if not all(answer and answer[2] in roles for answer in answers) or len(answers) != len(names):
        return False
    return solutions == [{answer[1]: roles[answer[2]] for answer in answers if answer}]


def _read_speeches(text: str, names: list[str], roles: dict[str, bool]) -> dict[str, Formula]:
    statements: dict[str, Formula] = {}
    some_name = rf"({'|'.join(names)})"
    patterns = [re.compile(speech.replace("NAME", some_name).replace("WORDS", r'([^".]+?)') + r"(?: |$)") for speech in SPEECHES]
    while text:
        matches = [match for pattern in patterns if (match := pattern.match(text))]
        if len(matches) != 1:
            raise UnreadableQuestion(text)
        name, words = sorted(matches[0].groups(), key=names.__contains__, reverse=True)
        statements[name], rest = _read_words(words, roles)
        if rest:
            raise UnreadableQuestion(words)
        text = text[matches[0].end() :]
    if set(statements) != set(names):
        raise UnreadableQuestion(text)
    return statements


def _read_words(text: str, roles: dict[str, bool]) -> tuple[Formula, str]:
    """The statement at the start of a text, and the rest of the text, which begins with a closing bracket."""
    if text.startswith("it is not the case that "):
        negated, rest = _read_clause(text.removeprefix("it is not the case that "), roles)
        return lambda row: not negated(row), rest
    if text.startswith("if "):
        condition, rest = _read_clause(text.removeprefix("if "), roles)
        if not rest.startswith(" then "):
            raise UnreadableQuestion(text)
        result, rest = _read_clause(rest.removeprefix(" then "), roles)
        return lambda row: not condition(row) or result(row), rest
    first, rest = _read_clause(text, roles)
    if rest.startswith(" if and only if "):
        second, rest = _read_clause(rest.removeprefix(" if and only if "), roles)
        return lambda row: first(row) == second(row), rest
    for word, combine in (" and ", all), (" or ", any):
        if rest.startswith(word):
            clauses = [first]
            while rest.startswith(word):
                clause, rest = _read_clause(rest.removeprefix(word), roles)
                clauses.append(clause)
            return lambda row, clauses=clauses, combine=combine: combine(clause(row) for clause in clauses), rest
    return first, rest


def _read_clause(text: str, roles: dict[str, bool]) -> tuple[Formula, str]:
    if text.startswith("("):
        inner, rest = _read_words(text[1:], roles)
        if not rest.startswith(")"):
            raise UnreadableQuestion(text)
        return inner, rest[1:]
    simple = re.match(r"(\w+) is an? (\w+)", text)
    if not simple or simple[2] not in roles:
        raise UnreadableQuestion(text)
    name, role = simple[1], roles[simple[2]]
    return lambda row: row[name] == role, text[simple.end() :]


ORACLES: dict[str, Oracle] = {"knights_knaves": knights_knaves, "propositional_logic": propositional_logic}
