"""A name stands alone where names are read at a glance, unless another key has it."""

from waggle.gui.state.story.namesakes import namesakes, short_name
from waggle.protocol.events import Aha, PeerInfo

OTTER, OTHER = "12D3KooWfirst1", "12D3KooWother2"


def peer(peer_id: str, name: str) -> PeerInfo:
    return PeerInfo(id=peer_id, name=name, connection="direct")


def test_a_name_that_one_key_has_stands_alone() -> None:
    several = namesakes([peer(OTTER, "Brisk Otter"), peer(OTHER, "Calm Wren")])
    assert short_name("Brisk Otter", OTTER, several) == "Brisk Otter"


def test_a_name_that_another_key_took_stands_with_the_key_in_whatever_letters() -> None:
    aha = Aha(round=3, at=0.0, specialty="Logic", origin=OTTER, name="Brisk Otter")
    several = namesakes([peer(OTHER, "brisk otter")], [aha])
    assert short_name("Brisk Otter", OTTER, several) == "Brisk Otter · oWfirst1"
    assert short_name("brisk otter", OTHER, several) == "brisk otter · oWother2"


def test_who_has_no_name_is_named_by_the_key() -> None:
    assert short_name("", OTTER, frozenset()) == OTTER
