"""Test the one sentence for each peer."""

import pytest

from waggle.protocol.events import PeerInfo
from waggle.protocol.text.peer_text import standing, standing_text

NOW = 1000.0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "Nothing was exchanged with it yet."),
        ({"groups_pulled": 3}, "It takes examples from here; none of its own has come yet."),
        (
            {"received": 4, "useful": 2, "used": 1},
            "It is asked like any stranger. Used 1 of its 4 examples. "
            "2 had only right or only wrong answers: nothing to learn. 1 was left out. None broke a rule.",
        ),
        (
            {"received": 1200, "useful": 900, "barren": True},
            "It is asked like any stranger: most of its examples that were tried here taught nothing. None broke a rule.",
        ),
        (
            {"received": 1200, "useful": 960, "used": 900, "rejected": 2, "trusted": True},
            "Trusted. Used 900 of its 1,200 examples. "
            "240 had only right or only wrong answers: nothing to learn. 60 were left out. 2 broke a rule.",
        ),
        ({"reason": "too long", "doubted_until": NOW + 45}, "It broke a rule (too long): it is asked again in 45 s."),
        ({"reason": "malformed", "doubted_until": NOW + 600}, "It broke a rule (malformed): it is asked again in 10 min."),
        ({"reason": "malformed", "doubted_until": NOW + 7200}, "It broke a rule (malformed): it is asked again in 2 h."),
        ({"refusal": "trains under another charter"}, "It trains under another charter."),
        (
            {"choice": "muted", "trusted": True, "received": 9},
            "You muted it: nothing is learned from it, but it still gets your examples.",
        ),
        ({"choice": "blocked", "refusal": "x"}, "You blocked it: neither of you learns from the other."),
    ],
)
def test_it_says_what_decides(fields: dict[str, object], says: str) -> None:
    assert standing_text(PeerInfo(id="x", name="Brisk Otter", **fields), NOW) == says


@pytest.mark.parametrize(
    ("fields", "decides"),
    [
        ({}, "plain"),
        ({"trusted": True}, "trusted"),
        ({"trusted": True, "doubted_until": NOW}, "trusted"),
        ({"trusted": True, "doubted_until": NOW + 1}, "doubted"),
        ({"refusal": "runs Waggle 0.2", "doubted_until": NOW + 1}, "differs"),
        ({"refusal": "runs Waggle 0.2", "choice": "muted"}, "muted"),
        ({"trusted": True, "choice": "blocked"}, "blocked"),
    ],
)
def test_the_first_reason_decides(fields: dict[str, object], decides: str) -> None:
    assert standing(PeerInfo(id="x", name="Brisk Otter", **fields), NOW) == decides
