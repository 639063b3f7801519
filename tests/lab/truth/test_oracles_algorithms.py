"""Test the oracles of the datasets about algorithms on short questions worked out by hand."""

import re

import pytest
import reasoning_gym

from waggle.tasks import catalogue
from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles import oracles

FOUR_LITRES = '["fill B", "pour B->A", "empty A", "pour B->A", "fill B", "pour B->A"]'
BLINKER = "[[0,0,0,0,0],\n [0,0,1,0,0],\n [0,0,1,0,0],\n [0,0,1,0,0],\n [0,0,0,0,0]]"
BLINKED = "[[0,0,0,0,0],[0,0,0,0,0],[0,1,1,1,0],[0,0,0,0,0],[0,0,0,0,0]]"
CORNERS = "[[1,0,0,0],\n [0,0,0,0],\n [0,0,0,0],\n [1,0,0,1]]"  # three neighbours across the edges of a torus
BLOCK = "[[1,0,0,1],[0,0,0,0],[0,0,0,0],[1,0,0,1]]"
LONG = "If the string length is greater than 15, remove the middle character."

# The part of the sample question that differs, as a regular expression.
GRID = r"(?<=:\n)[\d \n]+(?=\n)"
PARTS = {
    "ab": r"(?<=program:\n\n).+(?=\n\nReturn)",
    "base_conversion": r"(?<=convert the ).+(?=\n)",
    "binary_alternation": r"(?<=alternating: )[01]+",
    "binary_matrix": GRID,
    "caesar_cipher": r"(?<=text: )[^.]+",
    "count_primes": r"(?<=between )\d+ and \d+",
    "cryptarithm": r"(?<=cryptarithm:\n\n).+(?=\n\nEach)",
    "game_of_life": r"(?<=\n\n)\[.+\](?=\.)",
    "isomorphic_strings": r"(?<=otherwise:\n).+(?=\n)",
    "jugs": r"(?<=water: ).+(?= litres)",
    "letter_counting": r'(?<=letter )".+"(?=\?)',
    "manipulate_matrix": r"(?<=matrix:\n).+(?=\n)",
    "number_filtering": r".+\](?=\n)",
    "palindrome_generation": r"(?<=letters: ).+(?=\n)",
    "palindrome_partitioning": r"(?<=palindromes: ).+(?=\n)",
    "ransom_note": r"Ransom note: .+(?=\n)",
    "rotate_matrix": r"(?<=matrix below by ).+(?=\n)",
    "rotten_oranges": GRID,
    "spell_backward": r"(?<=\): ).+",
    "string_manipulation": r"1\. .+(?=\n\nOnce)|(?<=list of rules:\n).+(?=\n)",
    "string_synthesis": r"(?<=you have )\d+ \[A\], \d+ \[B\], and \d+ \[C\]",
    "word_sequence_reversal": r"(?<=words: ).+(?=\n)",
    "word_sorting": r"(?<=sort these words in ).+(?=\n)",
}


def samples(dataset: str) -> list[str]:
    """A question of each level; of a dataset that the catalogue leaves out, a question in its default settings."""
    for entry in catalogue.catalogue_entries():
        if entry.dataset == dataset:
            return [level.sample for level in entry.levels.values()]
    return [reasoning_gym.create_dataset(dataset, seed=2, size=1)[0]["question"]]


def question(dataset: str, *texts: str) -> str:
    """A sample question with its varying parts replaced by these texts."""
    sample = samples(dataset)[0]
    replacements = iter(texts)
    changed, count = re.subn(PARTS[dataset], lambda _: next(replacements), sample, flags=re.DOTALL)
    assert count == len(texts), sample
    return changed


def matrix_step(step: str) -> tuple[str, str]:
    series = "Perform the following series of operations in order:\n- Identity transformation, i.e. no change"
    return "manipulate_matrix", f"1 2 3\n4 5 6\n\n{series}\n- {step}"


def blocks(a: int, b: int, c: int) -> str:
    return f"{a} [A], {b} [B], and {c} [C]"


@pytest.mark.parametrize(
    ("dataset", "text", "true", "false"),
    [
        ("ab", "B# A# #B #A B#", "B#", "A#"),
        ("ab", "A# #B B# #A", "#B B#", "A# B#"),
        ("base_conversion", "base-3 number 102 to binary", "1011", "1010"),
        ("base_conversion", "base-10 number 35 to base-36", "z", "Z"),
        ("binary_alternation", "1100", "1", "2"),
        ("binary_alternation", "11100", "1", "2"),
        ("binary_alternation", "1110", "-1", "1"),
        ("binary_matrix", "0 1\n1 1", "0 1\n1 2", "0 1\n1 1"),
        ("caesar_cipher", "UIF DBU BOE UIF EPH", "THE CAT AND THE DOG", "SGD BZS ZMC SGD CNF"),
        ("count_primes", "2 and 11", "5", "4"),
        ("count_primes", "1 and 1", "0", "1"),
        ("cryptarithm", "    AB\n+   AB\n------\n    CD", "A=2,B=3,C=4,D=6", "A=2,B=3,C=4,D=5"),
        ("cryptarithm", "    AB\n+   AB\n------\n    CD", "A=3,B=1,C=6,D=2", "A=0,B=3,C=0,D=6"),
        ("game_of_life", BLINKER, BLINKED, BLINKED.replace("1,1,1", "1,0,1")),
        ("game_of_life", CORNERS, BLOCK, BLOCK.replace("[0,0,0,0]", "[1,0,0,0]")),
        ("isomorphic_strings", "egg add", "True", "False"),
        ("isomorphic_strings", "foo bar", "False", "True"),
        ("isomorphic_strings", "ab cc", "False", "True"),
        ("jugs", "A:3, B:5\nAnd your target is: 4", FOUR_LITRES, '["fill B", "pour B->A"]'),
        ("jugs", "A:3, B:5\nAnd your target is: 2", '["fill B", "pour B->A"]', '["fill C"]'),
        ("letter_counting", '"t" appear in the text: "The cat"', "2", "1"),
        ("number_filtering", "Keep all numbers larger than 1.5 in this list: ['1.50', '2', '-3.0']", "['2']", "['1.50', '2']"),
        (
            "number_filtering",
            "Remove all numbers larger than 0 in this list: ['0.0', '-1', '-1.0']",
            "['0.0', '-1', '-1.0']",
            "[]",
        ),
        ("palindrome_generation", "b, a, a", "aba", "aab"),
        ("palindrome_generation", "b, a, a, b", "baab", "aba"),
        ("palindrome_partitioning", "aab", '[["a", "a", "b"], ["aa", "b"]]', '[["a", "a", "b"]]'),
        ("ransom_note", "Ransom note: aab\nMagazine: bcaa", "True", "False"),
        ("ransom_note", "Ransom note: aab\nMagazine: abbc", "False", "True"),
        ("rotate_matrix", "90 degrees clockwise:\n1 2\n3 4", "3 1\n4 2", "2 4\n1 3"),
        ("rotate_matrix", "900 degrees clockwise:\n1 2\n3 4", "4 3\n2 1", "1 2\n3 4"),
        ("rotten_oranges", "2 1\n0 1", "2", "1"),
        ("rotten_oranges", "2 0\n0 1", "-1", "0"),
        ("spell_backward", "lot", "tol", "lot"),
        ("string_synthesis", blocks(1, 1, 0), "0 0 0 0 0 1 0 0 0", "1 1 0 0 0 0 0 0 0"),
        ("string_synthesis", blocks(2, 2, 1), "0 0 0 0 0 0 1 1 0", "0 0 0 1 0 1 0 0 0"),
        ("string_synthesis", blocks(0, 2, 2), "0 0 0 0 0 0 0 0 1", "0 0 0 0 2 0 0 0 0"),
        ("word_sequence_reversal", "one, two, three", "three, two, one", "one, two, three"),
        (
            "word_sorting",
            "ascending order (using ASCII/Unicode ordering) and return them as a comma-separated list: b, A, a",
            "A, a, b",
            "a, A, b",
        ),
        (
            "word_sorting",
            "descending order (using ASCII/Unicode ordering) and return them as a comma-separated list: be, b, a",
            "be, b, a",
            "b, be, a",
        ),
        (*matrix_step("Rotate the matrix 90 degrees"), "4 1\n5 2\n6 3", "3 6\n2 5\n1 4"),
        (*matrix_step("Horizontally mirror the matrix"), "3 2 1\n6 5 4", "4 5 6\n1 2 3"),
        (*matrix_step("Vertically mirror the matrix"), "4 5 6\n1 2 3", "3 2 1\n6 5 4"),
        (*matrix_step("Mirror the matrix along the diagonal"), "1 4\n2 5\n3 6", "6 3\n5 2\n4 1"),
        (*matrix_step("Mirror the matrix along the counterdiagonal"), "6 3\n5 2\n4 1", "1 4\n2 5\n3 6"),
        (*matrix_step("Map each occurrence of 5 to 0"), "1 2 3\n4 0 6", "1 2 3\n4 5 6"),
        (*matrix_step("Set all elements divisible by 3 to zero"), "1 2 0\n4 5 0", "1 2 3\n4 5 6"),
        (*matrix_step("Crop the matrix to rows 2-2 and columns 1-2 (1-indexed)"), "4 5", "1 2"),
        (*matrix_step("Remove every 2-nd row (1-indexed)"), "1 2 3", "4 5 6"),
        (*matrix_step("Remove every 2-nd column (1-indexed)\n- Rotate the matrix 180 degrees"), "6 4\n3 1", "1 3\n4 6"),
    ],
)
def test_an_oracle_accepts_a_true_key_and_rejects_a_false_one(dataset, text, true, false):
    check = oracles()[dataset]
    assert check(question(dataset, text), true)
    assert not check(question(dataset, text), false)


@pytest.mark.parametrize(
    ("rules", "text", "true", "false"),
    [
        ("1. If the string prefix is 'ab', replace it with 'ca'.", "abb", "cab", "abb"),
        ("1. If the string suffix is 'ac', replace it with 'cb'.", "bac", "bcb", "bac"),
        ("1. If the string prefix is 'bc', delete the first two characters and append 'aa' to the end.", "bcb", "baa", "b"),
        ("1. If the string suffix is 'bb', delete the last two characters.", "abb", "a", "abb"),
        ("1. If the string prefix is 'cb', replace it with 'aa' and delete the last character.", "cbcc", "aac", "aacc"),
        ("1. If the string prefix is 'cb', replace it with 'aa' and delete the last character.", "cb", "a", "aa"),
        ("1. If the string prefix is 'ca', replace it with 'bb' and append 'c' to the end.", "caa", "bbac", "bba"),
        ("1. If the string suffix is 'cc', replace it with 'b' and prepend 'a' to the start.", "bcc", "abb", "bb"),
        ("1. If the string prefix is 'aa', remove the first character.", "aaab", "ab", "aab"),
        ("1. If the string contains 'abc', replace the first occurrence with 'cab'.", "babcabc", "bccabab", "bcababc"),
        ("1. If the string contains 'bca', delete the first occurrence entirely.", "bbcac", "bc", "bbcac"),
        ("1. If the string ends with 'ba', replace it with 'ab'.", "cba", "cab", "cba"),
        ("1. If the string starts with 'cc', remove the first two characters.", "cccca", "a", "cca"),
        ("1. If the string contains 'acb', replace the first occurrence with its reverse ('bca').", "cacb", "cbca", "cacb"),
        ("1. If the string ends with 'ca', remove the last character.", "bca", "bc", "bca"),
        ("1. If the string starts with 'bb', remove the second character.", "bba", "ba", "a"),
        ("1. If the string ends with 'aa', replace it with 'cc'.", "baa", "bcc", "baa"),
        (
            "1. If the string contains 'ca' (not at the start), remove the first occurrence found after the first character.",
            "caca",
            "ca",
            "caca",
        ),
        (
            "1. If the string contains an even number of 'b's (and at least one 'b'), append 'ab' at the end.",
            "bcb",
            "bcbab",
            "bcb",
        ),
        (f"1. {LONG}", 17 * "a", 15 * "a", 16 * "a"),
        ("1. If the string starts with 'ac', replace the first two characters with 'zz'.", "acb", "zzb", "acb"),
        (
            "1. If the string ends with 'ba', replace it with 'ab'.\n2. If the string prefix is 'ab', replace it with 'ca'.",
            "ba",
            "ca",
            "ab",
        ),
    ],
)
def test_each_rule_of_string_manipulation(rules, text, true, false):
    check = oracles()["string_manipulation"]
    assert check(question("string_manipulation", rules, text), true)
    assert not check(question("string_manipulation", rules, text), false)


@pytest.mark.parametrize(
    ("dataset", "texts", "keys"),
    [
        ("string_manipulation", (f"1. {LONG}", 8 * "a" + 8 * "b"), (7 * "a" + 8 * "b", 8 * "a" + 7 * "b")),
        ("string_synthesis", (blocks(2, 2, 2),), ("0 0 0 2 0 0 0 0 0", "0 0 1 0 0 0 1 1 0")),
    ],
)
def test_a_question_with_two_readings_has_no_true_key(dataset, texts, keys):
    assert not any(oracles()[dataset](question(dataset, *texts), key) for key in keys)


@pytest.mark.parametrize("dataset", PARTS)
def test_an_oracle_reads_the_samples_of_all_levels_and_no_other_text(dataset):
    check = oracles()[dataset]
    for sample in samples(dataset):
        assert check(sample, "nonsense") is False
        for text in ("", "How are you?", sample + "?", sample[:-5]):
            with pytest.raises(UnreadableQuestion):
                check(text, "nonsense")


@pytest.mark.parametrize(
    ("dataset", "texts"),
    [
        ("base_conversion", ("base-7 number  to base-8",)),
        ("base_conversion", ("base-40 number 1 to base-8",)),
        ("binary_matrix", ("0 1\n1",)),
        ("caesar_cipher", ("XQZ",)),
        ("caesar_cipher", ("Ë",)),
        matrix_step("Shake the matrix"),
        ("rotate_matrix", ("45 degrees clockwise:\n1 2\n3 4",)),
        ("string_manipulation", ("1. If the string is long, cut it.", "abc")),
    ],
)
def test_an_oracle_refuses_a_question_that_it_does_not_understand(dataset, texts):
    with pytest.raises(UnreadableQuestion):
        oracles()[dataset](question(dataset, *([texts] if isinstance(texts, str) else texts)), "1")
