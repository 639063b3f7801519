"""What may be an invite link in a text, and in which order it is tried; tests/network/messages has the invites themselves."""

import time

import pytest

from waggle.core.text import pasted_link


@pytest.mark.parametrize("text", ["", "waggle", "https://example.org/?charter=1", "the waggle dance: it says where", "waggle:"])
def test_without_a_link_there_is_none(text):
    assert list(pasted_link.links_in(text)) == []


@pytest.mark.parametrize(
    "text", ["waggle://join?a", "WAGGLE://JOIN?a", "waggle:join?a", "waggle&#58;//join?a", "waggle%3A%2F%2Fjoin%3Fa"]
)
def test_a_link_is_seen_as_one(text):
    assert pasted_link.has_link(text)
    assert next(pasted_link.links_in(text)) == "waggle://join?a"


def test_more_of_a_wrapped_link_is_tried_before_less():
    assert list(pasted_link.links_in("waggle://join?a=\n1\n2 see you"))[:5] == [
        f"waggle://join?a={end}" for end in ("12seeyou", "12see", "12", "1", "")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "waggle://join?" * 2000,
        "waggle://join?" + "=" * 20_000,
        "waggle://join?a\n" * 2000,
        "&amp;" * 9000,
        "%25" * 9000,
        "=3D" * 9000,
        "waggle:join? " * 4 + " ".join(["=&" * 5] * 64),
    ],
    ids=["starts", "marks", "lines", "html", "percent", "mail", "marks and lines"],
)
def test_a_text_that_was_made_to_take_long_takes_a_moment(text):
    began = time.process_time()
    count = sum(1 for _ in pasted_link.links_in(text))
    assert time.process_time() - began < 2.0
    assert count < 100_000
