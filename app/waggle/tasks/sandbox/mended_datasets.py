"""Datasets of reasoning-gym whose keys are not always true, or whose scorers pay for wrong answers: what Waggle changes, and why.

`waggle-lab truth` finds them. Two rules hold for pay: only a right answer that stands alone is paid in full, and a wrong number
that contains the right one earns nothing. A question without a true answer is replaced by that of the next seed, and a false key
by the true one, so that most questions stay those of upstream.
"""

import ast
import functools
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

Entry = dict[str, Any]
MendEntry = Callable[[Entry], Entry | None]
Score = Callable[[str, Entry, Callable[[], float]], float]  # of an answer; the last argument computes upstream's reward

CRUMB = 0.1  # the most that an answer earns which is not right, or not alone
SEEDS_TRIED = 100  # for a question with a true answer
MARKS = re.compile(r"[\s.,:;!?'\"*$()\[\]{}=`]*")  # beside a right answer they are no words
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?(?![0-9])")
FRACTION = re.compile(r"\$?\s*(?:[0-9]+\s*/\s*[0-9]+|\\d?frac\s*\{\s*[0-9]+\s*\}\s*\{\s*[0-9]+\s*\})\s*\$?", re.IGNORECASE)
FACTORS = re.compile(r"\s*[0-9]{1,18}(?:\s*×\s*[0-9]{1,18})*\s*")
STATEMENT = r"[A-Za-z]+ is an? [a-z]+"
STATEMENTS = re.compile(rf"\s*{STATEMENT}(?:(?:\s*,\s*and|\s*,|\s+and)\s+{STATEMENT})*\s*\.?\s*")  # of knights_knaves
BITS = re.compile(r"[01\s,\[\]]*")  # a grid of kakurasu
NUMBERS = re.compile(r"[0-9\s]*")  # a grid of survo
UNISEX = re.compile(r"\b(?:Phoenix|Rain|River|Sage|Sky|Winter)\b")  # names that family_relationships gives to women and men
LAST_DIGIT = 1e-6  # of the candidates of number_format as the question shows them
POWER_DIGITS = 3  # significant digits that power_function asks for
GUARD_DIGITS = 80  # of a quotient before it is rounded


@dataclass(frozen=True, kw_only=True)
class Mend:
    """What is wrong with a dataset, and what Waggle does about it.

    `entry` returns an entry with a true key, or None if its question has no true answer. `score` replaces the scorer.
    """

    reason: str
    entry: MendEntry | None = None
    score: Score | None = None


def mend_datasets() -> None:
    """Change the classes of the mended datasets in this process. Call it once."""
    from reasoning_gym import factory
    from reasoning_gym.dataset import ProceduralDataset

    _mend(ProceduralDataset, DEFAULT_SCORER)
    for name, mend in MENDED.items():
        _mend(factory.DATASETS[name][0], mend)


def _mend(dataset: Any, mend: Mend) -> None:
    if mend.entry is not None:
        dataset.__getitem__ = _true_entries(dataset.__getitem__, mend.entry)
    if mend.score is not None:
        dataset.score_answer = _scorer(dataset.score_answer, mend.score)


def _true_entries(upstream: Callable[[Any, int], Entry], mend: MendEntry) -> Callable[[Any, int], Entry]:
    @functools.wraps(upstream)
    def get(self: Any, index: int) -> Entry:
        for candidate in range(index, index + SEEDS_TRIED):
            entry = mend(upstream(self, candidate))
            if entry is not None:
                return entry
        raise ValueError("no question with a true answer")

    return get


def _scorer(upstream: Callable[[Any, str, Entry], float], score: Score) -> Callable[[Any, str, Entry], float]:
    @functools.wraps(upstream)
    def score_answer(self: Any, answer: str, entry: Entry) -> float:
        return score(answer, entry, lambda: float(upstream(self, answer, entry)))

    return score_answer


def standing_alone(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Upstream's reward, but a key within a longer number or word earns nothing, and a key among words a crumb."""
    reward, key = upstream(), str(entry["answer"])
    return reward if reward >= 1.0 else min(reward, _most_beside(answer, key))


def _most_beside(answer: str, key: str) -> float:
    """The most that an answer may earn for the key that it contains beside something else."""
    match = re.search(rf"(?<![\w.+/-]){re.escape(key)}(?!\w|[.,]\d|/)", answer)
    if match is None:
        return 0.0
    return 1.0 if MARKS.fullmatch(answer[: match.start()]) and MARKS.fullmatch(answer[match.end() :]) else CRUMB


def exact_value(expression: str) -> Fraction:
    """The value of an arithmetic expression that a generator wrote. Raises ZeroDivisionError."""
    return _value(ast.parse(expression.strip(), mode="eval").body, expression.strip())


def _value(node: ast.expr, source: str) -> Fraction:
    match node:
        case ast.BinOp(first_operand, operator, second_operand):
            first, second = _value(first_operand, source), _value(second_operand, source)
            match operator:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
                case ast.Div():
                    return first / second
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, source)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _value(operand, source)
        case ast.Constant():
            return Fraction(source[node.col_offset : node.end_col_offset])  # its digits: a float would round them
    raise ValueError("not an arithmetic expression")


def _with_key(entry: Entry, key: str) -> Entry:
    return {**entry, "answer": key}


def answerable(entry: Entry) -> Entry | None:
    """No entry whose key is empty, because an empty answer earns nothing."""
    return entry if entry["answer"].strip() else None


def whole_value(entry: Entry) -> Entry | None:
    """Of basic_arithmetic: the exact value of the expression, if it is a whole number."""
    try:
        value = exact_value(entry["metadata"]["expression"])
    except ZeroDivisionError:
        return None
    return _with_key(entry, str(value)) if value.denominator == 1 else None


def decimal_value(entry: Entry) -> Entry | None:
    """Of decimal_arithmetic: the exact value, rounded half up to as many digits as the question says."""
    digits, expression = re.findall(r"maximum of (\d+) significant digits.*\n(.*) = \?", entry["question"])[0]
    value = exact_value(expression)
    quotient = Context(prec=GUARD_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    key = Context(prec=int(digits), rounding=ROUND_HALF_UP).plus(quotient)
    return entry if key == Decimal(entry["answer"]) else _with_key(entry, f"{key:f}")


def same_number(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Full pay for the key's value alone, and a crumb for what upstream takes for close."""
    if NUMBER.fullmatch(answer) and Decimal(answer) == Decimal(entry["answer"]):
        return 1.0
    return min(upstream(), CRUMB)


def number_among_words(answer: str, entry: Entry, _upstream: Callable[[], float]) -> float:
    """Of gsm_symbolic: full pay for the key's value with marks around it, a crumb for it among words."""
    key, text = Decimal(entry["answer"]), answer.replace(",", "")
    numbers = NUMBER.findall(text)
    if not any(Decimal(number) == key for number in numbers):
        return 0.01 if numbers else 0.0
    return 1.0 if len(numbers) == 1 and MARKS.fullmatch(NUMBER.sub("", text)) else CRUMB


def consistent_dates(entry: Entry) -> Entry | None:
    """Of calendar_arithmetic: no range that ends in another year than it says, and no weekday that depends on a leap year."""
    metadata = entry["metadata"]
    if "end_date" in metadata and metadata["start_date"][:4] != metadata["end_date"][:4]:
        return None
    if metadata["task"] == "weekday_of_date_from_first_date" and metadata["target_date"][5:7] > "02":
        return None
    return entry


def crumb_for_close(_answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    """Of calendar_arithmetic: a part of a crumb for a wrong count, the larger the closer it is."""
    reward = upstream()
    return reward if reward >= 1.0 else CRUMB * reward


def exact_text(answer: str, entry: Entry, _upstream: Callable[[], float]) -> float:
    """Of sudoku: pay for the key, whatever its white space, and none for a share of it: most of it is in the question."""
    return float(answer.split() == entry["answer"].split())


def shortest(_answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    """Of shortest_path: a crumb for a path that is longer than the shortest."""
    reward = upstream()
    return reward if reward >= 1.0 else min(reward, CRUMB)


def plain_letters(entry: Entry) -> Entry | None:
    """Of caesar_cipher: only letters of the alphabet that its key is shifted in."""
    return entry if entry["answer"].isascii() else None


def letter_in_one_case(entry: Entry) -> Entry | None:
    """Of letter_counting: no digit as the letter, and no text in which it depends on capitals how often the letter appears."""
    letter, text = entry["metadata"]["target_letter"], " ".join(entry["metadata"]["span"])
    return entry if letter.isalpha() and text.count(letter) == int(entry["answer"]) else None


def names_of_one_sex(entry: Entry) -> Entry | None:
    """Of family_relationships: only names that tell whether a person is female or male."""
    return None if UNISEX.search(entry["question"]) else entry


def fraction_alone(answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    reward = upstream()
    return reward if FRACTION.fullmatch(answer) else min(reward, CRUMB)


def statements_alone(answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    """Of knights_knaves: full pay for the role of each, none for some of them: half are right by chance."""
    reward = upstream()
    return reward if reward >= 1.0 and STATEMENTS.fullmatch(answer) else 0.0


def grid_alone(answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    return upstream() if BITS.fullmatch(answer) else 0.0


def numbers_alone(answer: str, _entry: Entry, upstream: Callable[[], float]) -> float:
    return upstream() if NUMBERS.fullmatch(answer) else 0.0


def same_words(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Of lists with commas: full pay for no more words than the key has, a crumb for a share of them."""
    reward = upstream()
    return reward if reward >= 1.0 and answer.count(",") <= entry["answer"].count(",") else CRUMB * reward


def same_grid(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Of game_of_life: full pay for exactly the key's cells, a crumb for a share of them: most are right by chance."""
    reward = upstream()
    return 1.0 if reward >= 1.0 and json.loads(answer) == json.loads(entry["answer"]) else CRUMB * reward


def full_pay_alone(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Upstream's reward for the key, and a crumb for a share of its letters."""
    reward = upstream()
    is_key = " ".join(answer.split()).casefold() == " ".join(entry["answer"].split()).casefold()
    return reward if is_key else CRUMB * reward


def prime_factors(answer: str, entry: Entry, _upstream: Callable[[], float]) -> float:
    if not FACTORS.fullmatch(answer):
        return 0.0
    return float(sorted(map(int, answer.split("×"))) == sorted(entry["metadata"]["factors"]))


def shown_candidate(answer: str, entry: Entry, _upstream: Callable[[], float]) -> float:
    number = answer.replace(",", "")
    return float(bool(NUMBER.fullmatch(number)) and math.fabs(float(number) - entry["metadata"]["solution"]) <= LAST_DIGIT)


def power_as_asked(entry: Entry) -> Entry:
    """Of power_function: the key in the form that the question asks for."""
    value = Context(prec=POWER_DIGITS, rounding=ROUND_HALF_UP).create_decimal(repr(entry["metadata"]["solution"]))
    digits, exponent = f"{value:.{POWER_DIGITS - 1}e}".split("e")
    return _with_key(entry, f"{digits}e{int(exponent):+d}")


def true_duration(entry: Entry) -> Entry | None:
    """Of time_intervals: none that ends before it starts or leaves out the time of day, and every millisecond."""
    metadata = entry["metadata"]
    if entry["answer"].startswith("-") or "(%A) %H" in metadata["format"]:
        return None
    if metadata["expected_format"] != "HH:MM:SS.mmm":
        return entry
    duration = datetime.fromisoformat(metadata["end_time"]) - datetime.fromisoformat(metadata["start_time"])
    seconds, millisecond = divmod(duration // timedelta(milliseconds=1), 1000)
    return _with_key(entry, f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millisecond:03d}")


def same_text(answer: str, entry: Entry, upstream: Callable[[], float]) -> float:
    """Full pay for the key, whatever its white space; a crumb for what upstream takes for close."""
    return 1.0 if " ".join(answer.split()) == entry["answer"] else min(upstream(), CRUMB)


DEFAULT_SCORER = Mend(
    reason="paid a wrong number in part if it contains the right one (15 for 5), and a choice of several answers",
    score=standing_alone,
)
MENDED: Mapping[str, Mend] = {
    "ab": Mend(reason="had empty keys, which no answer can give", entry=answerable),
    "basic_arithmetic": Mend(
        reason="computed from left to right without parentheses (3 + 4 * 0 is 0), and rounded quotients down within a sum",
        entry=whole_value,
    ),
    "caesar_cipher": Mend(reason="shifted accented letters into others than the alphabet's", entry=plain_letters),
    "calendar_arithmetic": Mend(
        reason="asked for business days until a date of the next year and named this one, and for weekdays after a February of "
        "unknown length; paid up to 0.97 for wrong counts, too nearly as much as for right ones",
        entry=consistent_dates,
        score=crumb_for_close,
    ),
    "chain_sum": Mend(reason=DEFAULT_SCORER.reason, score=standing_alone),
    "cryptarithm": Mend(reason="paid in full for letters behind the last one", score=same_words),
    "decimal_arithmetic": Mend(
        reason="rounded every step half to even, and paid in full what is wrong by a unit of the operands' last digit",
        entry=decimal_value,
        score=same_number,
    ),
    "emoji_mystery": Mend(reason="paid in full for a sentence with a wrong letter in a hundred", score=full_pay_alone),
    "family_relationships": Mend(reason="gave six names to women and men", entry=names_of_one_sex),
    "fraction_simplification": Mend(reason="paid in full for words behind a fraction in LaTeX", score=fraction_alone),
    "game_of_life": Mend(
        reason="paid for the share of right cells, 0.96 for a grid without life, and in full for more rows", score=same_grid
    ),
    "gsm_symbolic": Mend(reason="paid for the first number among any words, whatever its sign", score=number_among_words),
    "kakurasu": Mend(reason="skipped everything but 0 and 1, so that words beside a grid were paid", score=grid_alone),
    "knights_knaves": Mend(
        reason="skipped words that are no name or role, and paid 0.6 if all are called truthful",
        score=statements_alone,
    ),
    "letter_counting": Mend(
        reason="did not say whether capitals count, and asked for digits as letters", entry=letter_in_one_case
    ),
    "letter_jumble": Mend(reason="skipped words behind the key", score=full_pay_alone),
    "manipulate_matrix": Mend(reason=DEFAULT_SCORER.reason, score=standing_alone),
    "mini_sudoku": Mend(reason="paid 0.6 for a grid of which the blanks are filled with ones", score=exact_text),
    "number_format": Mend(reason="paid in full what is wrong by a hundredth, often another candidate", score=shown_candidate),
    "power_function": Mend(reason="had a key in another form than its question asks for", entry=power_as_asked),
    "prime_factorization": Mend(
        reason="paid half for any factors of the right product, even the number itself", score=prime_factors
    ),
    "products": Mend(reason=DEFAULT_SCORER.reason, score=standing_alone),
    "shortest_path": Mend(reason="paid half for any longer path", score=shortest),
    "spell_backward": Mend(
        reason="skipped letters behind the key, and paid most for a word with a wrong letter", score=full_pay_alone
    ),
    "string_manipulation": Mend(reason="had empty keys, which no answer can give", entry=answerable),
    "sudoku": Mend(reason="paid 0.6 for a grid of which the blanks are filled with ones", score=exact_text),
    "survo": Mend(reason="skipped everything but numbers, so that words beside a grid were paid", score=numbers_alone),
    "time_intervals": Mend(
        reason="had negative durations, keys without the time of day and lost milliseconds, and paid in full what is wrong by "
        "minutes of a day",
        entry=true_duration,
        score=same_text,
    ),
    "word_sorting": Mend(reason="paid in full for more words behind the sorted ones", score=same_words),
}
