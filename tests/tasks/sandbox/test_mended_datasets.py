"""What Waggle changes in datasets of reasoning-gym: false keys, and pay for what is wrong or not alone."""

import math
import re
import time
from contextlib import closing

import pytest

from waggle.tasks.questions import Question, QuestionKey
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox import mended_datasets
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

SEEDS = range(200)


@pytest.fixture(scope="module")
def standard():
    """A verifier of several datasets in their default settings."""
    datasets = tuple(DatasetLevels(dataset, ({},)) for dataset in (*mended_datasets.MENDED, "gcd"))
    with closing(Verifier(first_swarm(), datasets=datasets)) as verifier:
        yield verifier


def rewards(verifier: Verifier, dataset: str, write) -> list[float]:
    """The rewards of answers that `write` makes from the keys."""
    keys = [QuestionKey(dataset, seed) for seed in SEEDS]
    items = [
        (Question(dataset=dataset, seed=key.seed, text=""), Completion(text=f"<answer>{write(answer)}</answer>", ended=True))
        for key, answer in zip(keys, verifier.answers(keys), strict=True)
    ]
    return [verdict.reward for verdict in verifier.judge(items)]


@pytest.mark.parametrize("dataset", [*mended_datasets.MENDED, "gcd"])
def test_keys_are_paid_in_full_and_only_alone(standard, dataset):
    assert all(reward >= RIGHT for reward in rewards(standard, dataset, str))
    for words in ("{} is the answer", "The answer is {}", "{}\nI am sure.", "{} or 17", "17 or {}"):
        assert max(rewards(standard, dataset, words.format)) < 0.2, words


@pytest.mark.parametrize("dataset", ["basic_arithmetic", "chain_sum", "products", "gcd", "gsm_symbolic", "decimal_arithmetic"])
@pytest.mark.parametrize("text", ["{}5", "7{}", "-{}", "{}.5", "{}/3"])
def test_a_number_that_holds_the_right_one_earns_nothing(standard, dataset, text):
    def alter(answer: str) -> str:
        altered = text.format(answer.lstrip("-") if text == "7{}" else answer)
        return "x" if answer in ("0", "-0") or "--" in altered or (text == "{}.5" and "." in answer) else altered

    crumbs = {("decimal_arithmetic", "{}5"), ("gsm_symbolic", "{}/3")}  # close, and the key beside another number
    assert max(rewards(standard, dataset, alter)) <= (mended_datasets.CRUMB if (dataset, text) in crumbs else 0.01)


def test_the_product_of_the_factors_is_no_factorization(standard):
    def product(answer: str) -> str:
        return f"{math.prod(map(int, answer.split(' × ')))} × 1"

    assert max(rewards(standard, "prime_factorization", product)) == 0.0
    assert min(rewards(standard, "prime_factorization", lambda answer: "×".join(answer.split(" × ")[::-1]))) == 1.0


def test_a_duration_that_is_wrong_by_its_last_digit_is_wrong(standard):
    def last_digit(answer: str) -> str:
        place = max(index for index, letter in enumerate(answer) if letter.isdigit())
        return f"{answer[:place]}{(int(answer[place]) + 1) % 10}{answer[place + 1 :]}"

    assert max(rewards(standard, "time_intervals", last_digit)) <= mended_datasets.CRUMB
    assert max(rewards(standard, "number_format", lambda answer: str(float(answer) + 0.001))) == 0.0


def test_a_wrong_count_of_days_earns_a_crumb_at_most(standard):
    def next_number(answer: str) -> str:
        return str(int(answer) + 1) if answer.isdigit() else answer

    below = [reward for reward in rewards(standard, "calendar_arithmetic", next_number) if reward < 1.0]
    assert len(below) > 50
    assert 0.0 < max(below) <= mended_datasets.CRUMB


@pytest.mark.parametrize("dataset", ["cryptarithm", "word_sorting"])
def test_more_words_than_the_key_has_are_wrong(standard, dataset):
    assert max(rewards(standard, dataset, lambda answer: f"{answer}, {answer.split(',')[-1].strip()}")) < 0.2


def test_a_word_with_a_wrong_letter_is_wrong(standard):
    def first_letter(answer: str) -> str:
        return ("x" if answer[0] != "x" else "y") + answer[1:]

    assert 0.0 < max(rewards(standard, "spell_backward", first_letter)) <= mended_datasets.CRUMB


@pytest.mark.parametrize("dataset", ["ab", "string_manipulation"])
def test_no_key_is_empty(standard, dataset):
    assert all(standard.answers([QuestionKey(dataset, seed) for seed in range(2000)]))


@pytest.mark.parametrize("dataset", ["sudoku", "mini_sudoku"])
def test_a_grid_with_a_wrong_digit_earns_nothing(standard, dataset):
    def last_digit(answer: str) -> str:
        return answer[:-1] + ("1" if answer[-1] != "1" else "2")

    assert max(rewards(standard, dataset, last_digit)) == 0.0
    assert min(rewards(standard, dataset, lambda answer: answer.replace(" ", "  "))) >= RIGHT


def test_calling_everybody_truthful_earns_only_where_it_is_true(standard):
    def truthful(answer: str) -> str:
        liars = [role for role in ("knave", "villain", "liar", "sinner", "devil", "fool", "altruist") if role in answer]
        return answer if not liars else re.sub("is an? [a-z]+", "is a knight", answer)

    assert set(rewards(standard, "knights_knaves", truthful)) <= {0.0, 1.0}


def test_a_detour_is_no_shortest_path():
    entry = {"answer": "right"}
    assert mended_datasets.shortest("right", entry, lambda: 1.0) == 1.0
    assert mended_datasets.shortest("down right up", entry, lambda: 0.5) == mended_datasets.CRUMB


@pytest.mark.parametrize(
    ("letter", "span", "count", "is_asked"),
    [
        ("a", ["an", "apple"], "2", True),
        ("a", ["An", "apple"], "2", False),  # one or two: are capitals letters "a"?
        ("1", ["1", "apple"], "1", False),
    ],
)
def test_letters_are_counted_where_capitals_do_not_matter(letter, span, count, is_asked):
    entry = {"answer": count, "metadata": {"target_letter": letter, "span": span}}
    assert (mended_datasets.letter_in_one_case(entry) is entry) == is_asked


def test_a_cipher_shifts_letters_of_the_alphabet_only():
    assert mended_datasets.plain_letters({"answer": "THE AERIAL SHIP"})
    assert mended_datasets.plain_letters({"answer": "THE A\u00cbRIAL SHIP"}) is None


def test_a_family_has_names_that_tell_women_from_men():
    assert mended_datasets.names_of_one_sex({"question": "John is married to Mary. They have a child called Rainer."})
    assert mended_datasets.names_of_one_sex({"question": "Rain is married to Mary. What is Rain to Mary?"}) is None


def test_a_grid_without_life_is_no_answer_to_most_questions(standard):
    def without_life(answer: str) -> str:
        return answer.replace("1", "0")

    assert sum(reward < 0.2 for reward in rewards(standard, "game_of_life", without_life)) > 0.6 * len(SEEDS)
    assert max(rewards(standard, "game_of_life", lambda answer: answer[:-1] + ",[0]]")) < 0.2


def test_keys_follow_the_order_of_operations():
    settings = {
        "min_terms": 3,
        "max_terms": 3,
        "min_digits": 1,
        "max_digits": 1,
        "operators": ["+", "-", "*"],
        "allow_parentheses": False,
    }
    with closing(Verifier(first_swarm(), datasets=(DatasetLevels("basic_arithmetic", (settings,)),))) as verifier:
        keys = [QuestionKey("basic_arithmetic", seed) for seed in SEEDS]
        texts = [question.text for question in verifier.questions(keys)]
        answers = verifier.answers(keys)
    sums = [text.removeprefix("Calculate ").removesuffix(".").replace(" - ", " + -").split(" + ") for text in texts]
    assert [str(sum(math.prod(map(int, part.split(" * "))) for part in parts)) for parts in sums] == answers
    assert sum("*" in text.split(" ", 3)[3] for text in texts) > 50


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 2 * 3", 7), ("-( 2 - 5 )", 3), ("1.1*3", "3.3"), ("2 - -1", 3), ("6/4/3", "0.5"), ("10 / 4", "2.5")],
)
def test_the_value_of_an_expression_is_exact(expression, value):
    assert mended_datasets.exact_value(expression) == mended_datasets.Fraction(value)


@pytest.mark.parametrize("expression", ["2 ** 3", "f(1)", "a", "1 if 1 else 2", "7 // 2"])
def test_what_is_no_arithmetic_has_no_value(expression):
    with pytest.raises(ValueError, match="not an arithmetic expression"):
        mended_datasets.exact_value(expression)


def test_a_question_without_a_true_answer_gives_way_to_that_of_the_next_seed():
    class Dataset:
        def __getitem__(self, index: int) -> dict:
            return {"answer": index}

        def score_answer(self, answer: str, entry: dict) -> float:
            return 0.0

    def multiples_of_five(entry: dict) -> dict | None:
        return entry if entry["answer"] % 5 == 0 else None

    mended_datasets._mend(Dataset, mended_datasets.Mend(reason="", entry=multiples_of_five))
    assert [Dataset()[index]["answer"] for index in (0, 1, 5, 6)] == [0, 5, 5, 10]
    mended_datasets._mend(Dataset, mended_datasets.Mend(reason="", entry=lambda entry: None))
    with pytest.raises(ValueError, match="no question with a true answer"):
        Dataset()[0]


def test_every_change_has_its_reason():
    assert all(mend.reason and (mend.entry or mend.score) for mend in mended_datasets.MENDED.values())


@pytest.mark.parametrize("name", ["MARKS", "NUMBER", "FRACTION", "FACTORS", "STATEMENTS", "BITS", "NUMBERS"])
def test_a_long_text_of_a_stranger_is_read_in_time(name):
    pattern = getattr(mended_datasets, name)
    parts = (
        "9",
        "9.",
        "1e",
        " ",
        "1 ",
        "a",
        "a is a b and ",
        "a is a b, ",
        "1×",
        "1/",
        "\\frac{1}{",
        "\\frac{" + " " * 50,
        ".",
        "[",
    )
    texts = [part * (20_000 // len(part)) + end for part in parts for end in ("", "x", "!")]
    began = time.process_time()
    for text in texts:
        pattern.fullmatch(text)
    assert time.process_time() - began < 1.0
