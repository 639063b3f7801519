"""The last answer tag, found as a regular expression would and fast in any text; and the cache of entries."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import waggle
from waggle.tasks.charter import LONGEST_COMPLETION
from waggle.tasks.sandbox.verifier_process import last_answer, same_answer

PATTERN = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
PIECES = st.sampled_from(["<answer>", "</answer>", "<answer", "answer>", "<", "/", "\n", "7", "<answer></answer>"])
MANY_QUESTIONS = """
import sys
out, sys.stdout = sys.stdout, sys.stderr
from waggle.tasks.sandbox import verifier_process
from waggle.tasks.questions import QuestionKey
from waggle.tasks.sandbox.messages import DatasetLevels

verifier_process.CACHED_CHARACTERS = 40_000
name, most = sys.argv[1:]
bench = verifier_process.CharterDatasets((DatasetLevels(name, ({"min_n": 30, "max_n": int(most)},)),))
first, *_, last = [bench.question(QuestionKey(name, seed)) for seed in range(30)]
seeds = [key.seed for key in bench._entries]
characters = sum(len(repr(entry)) for entry, _ in bench._entries.values())
print(len(seeds), seeds[-1], characters, bench.question(QuestionKey(name, 0)) == first != last, file=out, sep="\\n")
"""


@given(st.lists(PIECES, max_size=12).map("".join) | st.text("<answer/>\n", max_size=40))
def test_the_last_answer_is_where_the_pattern_finds_it(text):
    matches = list(PATTERN.finditer(text))
    assert last_answer(text) == (matches[-1].span(1) if matches else None)


@pytest.mark.parametrize(
    ("text", "truth", "same"),
    [
        ("42", "42", True),
        ("\n42\n", "42", True),
        ("   42", "42", False),
        ("YES", "yes", True),
        ("0  1\n1 0", "0 1\n1 0", True),
        ("42 Zog!", "42", False),
        ("٤٢", "42", False),
        ("4", "42", False),
    ],
)
def test_a_true_answer_is_the_same_up_to_case_and_a_little_white_space(text, truth, same):
    assert same_answer(text, truth) == same


@pytest.mark.parametrize("text", ["<answer>", "<answer></answer>", "</answer>", "<answer>7</answer><answer>"])
def test_a_text_of_nothing_but_tags_takes_no_time(text):
    longest = (text * LONGEST_COMPLETION)[:LONGEST_COMPLETION]
    begun = time.process_time()
    last_answer(longest)
    assert time.process_time() - begun < 0.05


@pytest.mark.parametrize(("dataset", "most"), [("binary_matrix", "30"), ("count_primes", "50000")])
def test_of_what_holds_much_less_is_remembered_and_what_was_forgotten_is_made_again(dataset, most):
    """Also where little of it stands in the question."""
    environment = dict(os.environ, PYTHONPATH=str(Path(waggle.__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", MANY_QUESTIONS, dataset, most], env=environment, capture_output=True, check=True)
    remembered, last, characters, is_regenerated = done.stdout.decode().splitlines()
    assert 1 <= int(remembered) < 20
    assert int(characters) <= 40_000
    assert (last, is_regenerated) == ("29", "True")
