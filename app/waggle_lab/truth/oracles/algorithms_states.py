"""Oracles of algorithms that carry a state through rules: tokens, strings, blocks and jugs of water.

Where the rules have two readings that a careful person may choose between, a key is true only if it holds in both.
"""

import json
import re
from collections.abc import Callable

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import Wording

TOKENS = Wording(
    """A::B is a system with 4 tokens: `A#`, `#A`, `B#` and `#B`.

An A::B program is a sequence of tokens. Example:

    B# A# #B #A B#

To *compute* a program, we must rewrite neighbor tokens, using the rules:

    A# #A ... becomes ... nothing
    A# #B ... becomes ... #B A#
    B# #A ... becomes ... #A B#
    B# #B ... becomes ... nothing

In other words, whenever two neighbor tokens have their '#' facing each-other,
they must be rewritten according to the corresponding rule.

Now, consider the following program:

«program»

Return the final state of the program.
""",
    program="(?:A#|#A|B#|#B)(?: (?:A#|#A|B#|#B))*",
)
REWRITING = Wording(
    """Your job is to repeatedly transform a string according to a set of rules until no further transformations can be \
performed, or a state is repeated.

Evaluate the following rules in order, and apply the first applicable rule to the string:
«rules»

Once you have applied a rule, repeat the process with the new string until no further transformations can be performed (i.e. \
the string doesn't change), or a state is repeated.
If a state is repeated, the process is terminated, and the repeated state is discarded (i.e. is not considered as the final \
answer) and the state before the repeated state is considered as the final answer.

Your output should be the final transformed string after applying all the rules.

Transform the following string according to the above list of rules:
«text»
""",
    rules=r"1\. .+(?:\n\d+\. .+)*",
    text="[a-c]+",
)
BLOCKS = Wording(
    """There are nine different blocks [A] [B] [C] {A} {B} {C} (A) (B) (C)
1. One [A], one [B], and one [C] can be combined to form one {A}.
2. One [A] and one [B] can be combined to form one {C}.
3. One [B] and one [C] can be combined to form one {B}.
4. Two [C] can be combined to form one {C}.
5. One {A} and one {C} can be combined to form one (A) and one (B).
6. Two {B} can be combined to form one (C).

Given a certain number of initial blocks, your job is to cycle through the rules 1-6 above, synthesizing new blocks until no \
more rules can be applied, or until a state (counts of each block type) is repeated.
In the case a state is repeated the answer is the state before the repetition!

The output should be the count of each block type after the rules have been applied in the order they are listed above.
For example 1 0 3 0 2 0 0 0 1 means that you have 1 [A] 0 [B] 3 [C] 0 {A} 2 {B} 0 {C} 0 (A) 0 (B) 1 (C).

Now, you have «a» [A], «b» [B], and «c» [C] blocks. Provide the count of each block type after applying the above rules.
Note: Apply the rules at most «most» times. If the rules cannot be applied anymore, or if you have reached the maximum number of \
iterations, stop and provide the current counts.
""",
    a=r"\d+",
    b=r"\d+",
    c=r"\d+",
    most=r"\d+",
)
JUGS = Wording(
    """You are a police officer. A maniac has planted a bomb next to a public fountain.

To defuse the bomb, you must solve a puzzle. The puzzle is solved when you fill any of the available jugs with the target \
amount of water.

You have three move types: 'fill', 'empty' and 'pour'.

To fill Jug A, you 'fill A'.
To empty Jug B, you 'empty B'.
To pour the contents of Jug A into Jug B, you 'pour A->B'.
All jugs are empty to begin with.

The empty jugs hold this many litres of water: «jugs»
And your target is: «target» litres.

How do you defuse the bomb?

Reply as a JSON-parsable list of moves which result in any of the jugs being filled with the target amount.
""",
    jugs=r"[A-Z]:\d+(?:, [A-Z]:\d+)*",
    target=r"\d+",
)


def ab(question: str, key: str) -> bool:
    """Whether the key is the program's normal form.

    Tokens of different letters pass each other, so each letter's tokens cancel as brackets do, and those that face left end up
    before those that face right.
    """
    program = TOKENS.read(question)["program"].split()
    remaining = set(range(len(program)))
    for letter in "AB":
        opened: list[int] = []
        for place, token in enumerate(program):
            if token == f"{letter}#":
                opened.append(place)
            elif token == f"#{letter}" and opened:
                remaining -= {opened.pop(), place}
    final = [program[place] for place in sorted(remaining)]
    return key == " ".join(sorted(final, key=lambda token: token.endswith("#")))


# Each rule is a pattern and what replaces its first match.
REPLACEMENTS: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "If the string prefix is 'ab', replace it with 'ca'.": (r"\Aab", "ca"),
    "If the string suffix is 'ac', replace it with 'cb'.": (r"ac\Z", "cb"),
    "If the string prefix is 'bc', delete the first two characters and append 'aa' to the end.": (r"\Abc(.*)", r"\1aa"),
    "If the string suffix is 'bb', delete the last two characters.": (r"bb\Z", ""),
    "If the string prefix is 'cb', replace it with 'aa' and delete the last character.": (
        r"\Acb(.*)",
        lambda match: f"aa{match[1]}"[:-1],
    ),
    "If the string prefix is 'ca', replace it with 'bb' and append 'c' to the end.": (r"\Aca(.*)", r"bb\1c"),
    "If the string suffix is 'cc', replace it with 'b' and prepend 'a' to the start.": (r"\A(.*)cc\Z", r"a\1b"),
    "If the string prefix is 'aa', remove the first character.": (r"\Aaa", "a"),
    "If the string contains 'abc', replace the first occurrence with 'cab'.": (r"abc", "cab"),
    "If the string contains 'bca', delete the first occurrence entirely.": (r"bca", ""),
    "If the string ends with 'ba', replace it with 'ab'.": (r"ba\Z", "ab"),
    "If the string starts with 'cc', remove the first two characters.": (r"\Acc", ""),
    "If the string contains 'acb', replace the first occurrence with its reverse ('bca').": (r"acb", "bca"),
    "If the string ends with 'ca', remove the last character.": (r"ca\Z", "c"),
    "If the string starts with 'bb', remove the second character.": (r"\Abb", "b"),
    "If the string ends with 'aa', replace it with 'cc'.": (r"aa\Z", "cc"),
    "If the string contains 'ca' (not at the start), remove the first occurrence found after the first character.": (
        r"(?<=.)ca",
        "",
    ),
    "If the string contains an even number of 'b's (and at least one 'b'), append 'ab' at the end.": (
        r"\A([^b]*(?:b[^b]*b[^b]*)+)\Z",
        r"\1ab",
    ),
    "If the string starts with 'ac', replace the first two characters with 'zz'.": (r"\Aac", "zz"),
}
MIDDLE = "If the string length is greater than 15, remove the middle character."
MOST_TRANSFORMATIONS = 10_000  # so that a string that grows for ever does not stop an audit


def _without_middle(text: str, after: bool) -> str | None:
    """A long string without its middle character: of the two of an even length the one after the middle or the one before."""
    if len(text) <= 15:
        return None
    middle = len(text) // 2 if after or len(text) % 2 else len(text) // 2 - 1
    return text[:middle] + text[middle + 1 :]


def _rule(wording: str, after: bool) -> Callable[[str], str | None]:
    """A rule as a function from a string to the next, or to None where the rule does not apply."""
    if wording == MIDDLE:
        return lambda text: _without_middle(text, after)
    if wording not in REPLACEMENTS:
        raise UnreadableQuestion(wording)
    pattern, replacement = REPLACEMENTS[wording]
    return lambda text: re.sub(pattern, replacement, text, count=1) if re.search(pattern, text) else None


def _rewritten(text: str, rules: list[Callable[[str], str | None]]) -> str:
    """The final string: the last before one that no rule changes, or before one that was there already."""
    states = {text}
    for _ in range(MOST_TRANSFORMATIONS):
        following = next((result for rule in rules if (result := rule(text)) is not None), text)
        if following in states:
            return text
        states.add(following)
        text = following
    raise UnreadableQuestion("a string that does not stop changing")


def string_manipulation(question: str, key: str) -> bool:
    """Whether the key is the final string, whichever of two characters in the middle is called the middle one."""
    parts = REWRITING.read(question)
    wordings = [line.partition(". ")[2] for line in parts["rules"].split("\n")]
    return all(key == _rewritten(parts["text"], [_rule(wording, after) for wording in wordings]) for after in (True, False))


BLOCK_KINDS = ("[A]", "[B]", "[C]", "{A}", "{B}", "{C}", "(A)", "(B)", "(C)")
BLOCK_RULES = (  # what each rule consumes, and what it produces
    (("[A]", "[B]", "[C]"), ("{A}",)),
    (("[A]", "[B]"), ("{C}",)),
    (("[B]", "[C]"), ("{B}",)),
    (("[C]", "[C]"), ("{C}",)),
    (("{A}", "{C}"), ("(A)", "(B)")),
    (("{B}", "{B}"), ("(C)",)),
)


def _synthesized(counts: dict[str, int], most: int, exhaust: bool) -> str:
    """The counts after all rules, which no state can repeat: each application lowers the number of blocks or their brackets.

    The rules take turns. At its turn a rule applies as often as it can, or just once.
    """
    counts, applications, idle, turn = dict(counts), 0, 0, 0
    while applications < most and idle < len(BLOCK_RULES):
        consumed, produced = BLOCK_RULES[turn % len(BLOCK_RULES)]
        if all(counts[kind] >= consumed.count(kind) for kind in consumed):
            for kind in consumed:
                counts[kind] -= 1
            for kind in produced:
                counts[kind] += 1
            applications, idle = applications + 1, 0
            turn += not exhaust
        else:
            idle, turn = idle + 1, turn + 1
    return " ".join(str(counts[kind]) for kind in BLOCK_KINDS)


def string_synthesis(question: str, key: str) -> bool:
    """Whether the key holds however a person cycles through the rules: each as often as it can at its turn, or once."""
    parts = BLOCKS.read(question)
    counts = dict.fromkeys(BLOCK_KINDS, 0) | {f"[{letter.upper()}]": int(parts[letter]) for letter in "abc"}
    return all(key == _synthesized(counts, int(parts["most"]), exhaust) for exhaust in (True, False))


def jugs(question: str, key: str) -> bool:
    """Whether a jug has the target after the key's moves. Other moves may do as well."""
    parts = JUGS.read(question)
    capacities = {name: int(litres) for name, litres in (jug.split(":") for jug in parts["jugs"].split(", "))}
    water = dict.fromkeys(capacities, 0)
    try:
        moves = json.loads(key)
    except ValueError:
        return False
    for move in moves:
        match = re.fullmatch(r"(fill|empty|pour) ([A-Z])(?:->([A-Z]))?", move)
        if match is None or (match[1] == "pour") != bool(match[3]) or not {match[2], match[3] or match[2]} <= set(capacities):
            return False
        if match[1] == "pour":
            amount = min(water[match[2]], capacities[match[3]] - water[match[3]])
            water[match[2]] -= amount
            water[match[3]] += amount
        else:
            water[match[2]] = capacities[match[2]] if match[1] == "fill" else 0
    return int(parts["target"]) in water.values()


ORACLES: dict[str, Oracle] = {
    "ab": ab,
    "jugs": jugs,
    "string_manipulation": string_manipulation,
    "string_synthesis": string_synthesis,
}
