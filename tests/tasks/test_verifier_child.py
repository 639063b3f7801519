"""What stands in the last answer tag, as the pattern of old found it, and quickly in whatever a stranger writes."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.tasks.charter import LONGEST_COMPLETION
from waggle.tasks.verifier_child import last_answer

PATTERN = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
PIECES = st.sampled_from(["<answer>", "</answer>", "<answer", "answer>", "<", "/", "\n", "7", "<answer></answer>"])


@given(st.lists(PIECES, max_size=12).map("".join) | st.text("<answer/>\n", max_size=40))
def test_the_last_answer_is_where_the_pattern_finds_it(text):
    found = list(PATTERN.finditer(text))
    assert last_answer(text) == (found[-1].span(1) if found else None)


@pytest.mark.parametrize("text", ["<answer>", "<answer></answer>", "</answer>", "<answer>7</answer><answer>"])
def test_a_text_of_nothing_but_tags_takes_no_time(text):
    longest = (text * LONGEST_COMPLETION)[:LONGEST_COMPLETION]
    begun = time.process_time()
    last_answer(longest)
    assert time.process_time() - begun < 0.05
