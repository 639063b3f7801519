"""The hostile corpus: texts that a stranger might write as an answer, to examine what a scorer does with them.

None of them would do harm if it were executed.
"""

import re
from collections.abc import Callable, Iterator

CODE = (
    "__import__('os').system('true')",
    "__import__('os').getpid()",
    "__import__('subprocess').run(['true'])",
    "__import__('socket').socket()",
    "open('/dev/null').read()",
    "exec('x = 1')",
    "eval('1 + 1')",
    "(lambda: 1 / 0)()",
    "(lambda f: f(f))(lambda f: f(f))",
    "[x for x in range(10**9)]",
    "[[0, 1], [1, 0]] if True else 0",
    "().__class__.__base__.__subclasses__()",
    "f'{__import__(\"os\").getpid()}'",
    "(x := 5)",
    "print(1)\nimport os",
    "import os; os.getpid()",
    "compile('1', 'a', 'eval')",
    "globals()['__builtins__']",
    "9**9**9",
    "2**10**8",
    "10**100000 - 1",
    "1 << 10**9",
    "'a' * 10**9",
    "factorial(10**6)",
    "factorial(factorial(9))",
    "Integral(exp(x**2), (x, 0, oo))",
    "Sum(1/x**3, (x, 1, 10**6))",
    "solve(x**5 - x - 1, x)",
    "(x + y + z)**500",
    "x**2 + C",
    "1 + 2 * 3",
    "(5 + 7) * (3 - 1)",
    "8 / (3 - 8 / 3)",
    "\\frac{1}{0}",
    "\\frac{1}{2} + \\sqrt{2}",
    "\\input{/dev/null}",
    "$(true)",
    "`true`; true | true && true",
    "'; DROP TABLE answers; --",
    "<script>1</script>",
    "{{ 7 * 7 }} ${7 * 7} #{7 * 7}",
    "%s%s%s%n %(x)s %999999999d",
    "{0.__class__} {:>999999999} {x!r}",
    "!!python/object/apply:os.getpid []",
    "a: &a [1]\nb: [*a, *a, *a]\nc: !!binary aGk=",
    "cos\nsystem\n(S'true'\ntR.",
    '<!DOCTYPE a [<!ENTITY b "bbbb">]><a>&b;&b;</a>',
    "../../../../dev/null",
    "file:///dev/null",
    "http://127.0.0.1:9/",
)
NUMBERS = (
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "-0",
    "sNaN",
    "nan+nanj",
    "nanj",
    "inf+infj",
    "nan,nan",
    "(nan, nan)",
    "inf, inf",
    "nan, nan, nan, nan",
    "1e400",
    "-1e400",
    "1e-400",
    "1e9999999",
    "1e999999999",
    "-1e-999999999",
    "1E+999999999999999999",
    "1e-999999999999999999/3",
    "1/0",
    "0/0",
    "1e9999999/1e9999999",
    "-1/3",
    "1_000_000",
    "+1,000.00",
    "0x10",
    "0b1",
    "٣٫١٤",
    "１２３",
    "²",
    "Ⅷ",
    "1°",
    "99999999999999999999 days, 1:1:1",
    "1:2:3.4",
    "99:99:99.999999999",
    "1:2.3:4.5.6",
    "-1 days, -1:-1",
)
STRUCTURES = (
    "[]",
    "{}",
    "[[]]",
    "[[[]]]",
    "[null]",
    "[true, false]",
    "[NaN]",
    "[1e400]",
    "[[NaN, Infinity], [-Infinity, 1e400]]",
    '["a", 1, null, {"b": []}]',
    '{"a": {"b": {"c": 1}}}',
    '{"0": 1, "1": 2, "2": 3}',
    '{"a": 1, "a": 2}',
    '"\\ud800"',
    '["\\ud800"]',
    '[["\\ud800"]]',
    "[1, 2",
    "[[1, 2], [3]]",
    "[[0.5, 1], [1, 0]]",
    "['a', 'b']",
    "('a', 'b')",
    "0 1\n1 0",
    "0 1\n1",
    "1 2 3\n4 5 6\n7 8 9",
    "# 1 2\n3 4",
    '["fill A"]',
    '["fill Z", "pour A->A", "empty"]',
    '["pour A"]',
    '[""]',
    '["w,A1,A1"]',
    '["w,A1"]',
    '[{"Piece[0.5, 0.5]": "move(box_blue, square[0.5, 1.5])"}]',
    '[{"Piece": "move(box_blue, target_blue)"}]',
    '[{"Piece[0.5, 0.5]": 1}]',
    '{"Piece[0.5, 0.5]": "move(a, b)"}',
    '[{"Piece[0.5, 0.5]": "move(box_blue, square[9.5])"}]',
    '[{"Piece[0.5, 0.5]": "move(box_blue, square[99.5, 99.5])"}]',
    "Move disk 1 from Peg 1 to Peg 9",
    "Move disk 0 from Peg 0 to Peg 0",
    "Move disk 99999999999 from Peg 1 to Peg 2",
    "A=1,B=2,C=3",
    "A=1,A=1,=",
    "P=Q",
    "F999999999",
    "F9999 R9999",
    "U' R2 Z9 f b x",
    "F+999999999",
    "A+1 A-1 B+0 +",
    "×",
    "2×3×5",
    "2×-3×0",
    "×".join(["9" * 90] * 4),
    "P ∨ ¬P",
    "P → (Q ∧ ",
    "¬",
    "∧",
    "()",
    "P ∧∧ Q",
    "p ∨ q ∨ (r ∧ s)",
    "*",
    "#",
    "C4",
    "up down left right",
    "A is a knight, and B is a knave.",
    "is is is and and knight",
    "The answer is 42.",
    "I do not know",
    "<answer>1</answer>",
    "\\boxed{1}",
    "**1**",
    "```json\n[1]\n```",
    "answer",
    "a",
    "=",
    ",",
    ", ,,",
    "/",
    "//",
    ":",
    "\\",
    '"',
    "-",
    ".",
)
CHARACTERS = (
    "\x00",
    "1\x002",
    "\x1b[31mred\x1b[0m",
    "\x7f\x80\x9f",
    "a\r\nb\u2028c\u2029d\x85e",
    "\u202e321\u202c",
    "\u200b1\u200b",
    "\ufeff1",
    "\ufffe\uffff",
    "\U0010ffff",
    "İıßſK",
    "e\u0301",
    "👨‍👩‍👧‍👦",
    "ﷺ",
    "\u00a01\u00a0",
    "\u30001",
)
FIXED_TEXTS = CODE + NUMBERS + STRUCTURES + CHARACTERS


def _repeated(part: str, *, before: str = "", after: str = "") -> Callable[[int], str]:
    def write(length: int) -> str:
        return before + part * ((length - len(before) - len(after)) // len(part)) + after

    return write


def _nested(opening: str, middle: str, closing: str) -> Callable[[int], str]:
    def write(length: int) -> str:
        depth = (length - len(middle)) // (len(opening) + len(closing))
        return opening * depth + middle + closing * depth

    return write


def _formula_of_many_names(operator: str) -> Callable[[int], str]:
    """A formula over as many names as fit; its truth table has 2^n rows."""

    def write(length: int) -> str:
        names = [f"a{i}" for i in range(length // (6 + len(str(length))))]
        return "(" * (len(names) - 1) + f" {operator} ".join(name + ")" * (i > 0) for i, name in enumerate(names))

    return write


def _balanced_formula(leaf: str, operator: str) -> Callable[[int], str]:
    """A balanced tautology over ten names: the most work that still looks like an honest answer."""

    def write(length: int) -> str:
        parts = [leaf.format("abcdefghij"[i % 10]) for i in range(max(1, length // (len(leaf) + 4)))]
        while len(parts) > 1:
            pairs = [f"({a}{operator}{b})" for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0] if len(parts[0]) <= length else leaf.format("a")

    return write


SINGLE_CHARACTERS = (
    "9",
    "0",
    "1",
    "a",
    "A",
    "-",
    "+",
    ".",
    ",",
    "(",
    "[",
    "{",
    '"',
    "\\",
    "/",
    "¬",
    "×",
    "*",
    "^",
    "#",
    "٣",
    "é",
    "👍",
    "İ",
)
REPEATED_PARTS = (
    *("a ", "1 ", "1,", "1, ", "1.0 ", "1\n", "\n.", "a,", "a\n", "aA1 ", "ab", "aab", "e\u0301", " .", "1_", "0x", "1:", "=,"),
    *("ABC", "C", "UDLR", "LR", "udlr", "F R U' ", "F9 ", "R999999 ", "A+1 A-1 ", "up down ", "1 0 1 0\n", "123456789\n"),
    *("1 2 3 4\n", "nan,", "nan ", "inf ", "1e308 ", "A=1,", "A=9,B=9,", "1 days, ", "2×", "9×", "99999999999×"),
    *("a is a knight and ", "is knight ", "a knave ", "Move disk 1 from Peg 1 to Peg 2\nMove disk 1 from Peg 2 to Peg 1\n"),
    *("P∧", "P∨¬P∨", "P→", "P↔"),
)
GROWING_TEXTS: tuple[Callable[[int], str], ...] = (
    *(_repeated(part) for part in SINGLE_CHARACTERS + REPEATED_PARTS),
    _repeated(" ", before="1", after="x"),
    _repeated("9", before="1."),
    _repeated("9", before="1e"),
    _repeated("f", before="0x"),
    _repeated("1", after="/3"),
    _repeated("7", before="1/"),
    _repeated("1_", after="x"),
    _repeated("9", after=" days, 01:01"),
    _repeated("0", after="1"),
    _repeated(" ", before="\\frac{", after="x"),
    _repeated("1", before="\\frac{", after="}{1}"),
    _repeated("9", before="[", after="]"),
    _repeated("1,", before="[", after="1]"),
    _repeated("[1],", before="[", after="[1]]"),
    _repeated('"a",', before="[", after='"a"]'),
    _repeated('["a"],', before="[", after='["a"]]'),
    _repeated("NaN,", before="[", after="NaN]"),
    _repeated("1e308,", before="[", after="1]"),
    _repeated("{},", before="[", after="{}]"),
    _repeated('"fill A","empty A",', before="[", after='"fill A"]'),
    _repeated('"w,A1,B1",', before="[", after='"w,A1,B1"]'),
    _repeated("a", before='["', after='"]'),
    _repeated("\\u0061", before='"', after='"'),
    _repeated('{"Piece[0.5, 0.5]": "move(box_blue, square[0.5, 1.5])"},', before="[", after="{}]"),
    _repeated(", ", before='[{"a": "move(', after='"}]'),
    _repeated("1", before='[{"', after='": "move(a, b)"}]'),
    _repeated("1.", before='[{"', after='": "move(a, square[1, 1])"}]'),
    _nested("(", "1", ")"),
    _nested("[", "1", "]"),
    _nested('{"a":', "1", "}"),
    _nested("(", "P", ")"),
    _nested("¬(", "P", ")"),
    _nested("(P∧", "Q", ")"),
    _repeated("a", before="¬" * 90),
    _repeated(" ", before="a∧" * 90, after="a"),
    _repeated("a", before="(" * 90, after=")" * 90),
    _formula_of_many_names("∨"),
    _formula_of_many_names("∧"),
    _formula_of_many_names("↔"),
    _balanced_formula("({0}↔{0})", "↔"),
    _balanced_formula("({0}∨¬{0})", "∧"),
    _balanced_formula("({0}→{0})", "↔"),
)


def fixed() -> Iterator[str]:
    """Texts of a fixed length."""
    return iter(FIXED_TEXTS)


def growing(length: int) -> Iterator[str]:
    """Texts of nearly `length` characters, never more."""
    return (write(length) for write in GROWING_TEXTS)


def named(length: int) -> Iterator[tuple[str, str]]:
    """All fixed and growing texts, each with a short printable name."""
    for text in (*fixed(), *growing(length)):
        yield ascii(text if len(text) <= 24 else f"{text[:24]}..."), text


def twisted(answer: str) -> Iterator[tuple[str, str]]:
    """Texts with the form of this answer but other numbers or letters, each with a description."""
    for number in ("NaN", "nan", "Infinity", "1e400"):
        yield f"the true answer with {number} for numbers", re.sub(r"[-+]?\d+(\.\d+)?", number, answer)
    yield "the true answer with \u0661 for letters", re.sub(r"[^\W\d_]", "\u0661", answer)


def near(answer: str, other: str) -> Iterator[str]:
    """Near misses: the answer in other spellings, and the true answer to another question."""
    yield from (
        answer.upper(),
        answer.lower(),
        answer[::-1],
        f"{answer}.",
        f"[{answer}]",
        f'"{answer}"',
        f"The answer is {answer}.",
    )
    yield from (answer.replace(" ", ""), answer.replace("\n", " "), f"{answer}\n{answer}", answer[: len(answer) // 2], other)


def swollen(answer: str, length: int) -> Iterator[str]:
    """The true answer repeated, and followed by a long tail; nearly `length` characters, never more."""
    for between in ("", " ", "\n", ", "):
        yield (answer + between) * (length // max(1, len(answer + between)))
    yield (answer + " " * length)[: length - 1] + "x"
