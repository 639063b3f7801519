"""The address range of a peer, or none if it counts for itself."""

import pytest

from waggle.network.limits.address_ranges import RELAYED, owner_of, source_of


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("/ip4/8.8.4.77/tcp/4001/p2p/x", "8.8.4.0/24"),
        ("/ip6/2a00:1450:4001:81b::2004/tcp/1/p2p/x", "2a00:1450:4001::/48"),
        ("/ip6/::ffff:8.8.4.9/tcp/1/p2p/x", "8.8.4.0/24"),
        ("/ip4/127.0.0.1/tcp/4001/p2p/x", ""),
        ("/ip4/192.168.1.20/tcp/4001/p2p/x", ""),
        ("/ip4/172.17.0.1/tcp/4001/p2p/x", ""),
        ("/ip4/100.63.7.9/tcp/4001/p2p/x", "100.63.7.0/24"),
        ("/ip4/100.64.7.9/tcp/4001/p2p/x", "100.64.7.0/24"),
        ("/ip6/::ffff:100.127.7.9/tcp/4001/p2p/x", "100.127.7.0/24"),
        ("/ip6/fe80::1/tcp/1/p2p/x", ""),
        ("/dns4/example.org/tcp/1/p2p/x", RELAYED),
        ("", RELAYED),
    ],
)
def test_a_range_for_the_open_internet_and_nothing_at_home(address: str, source: str) -> None:
    assert source_of(address, relayed=False) == source


def test_all_relayed_peers_share_one_source() -> None:
    assert source_of("/ip4/8.8.4.77/tcp/4001/p2p/x/p2p-circuit", relayed=True) == RELAYED


def test_who_owns_a_range_is_one_and_relayed_ones_are_counted_together_too() -> None:
    owners = [owner_of(source, b"me") for source in ("8.8.4.0/24", "", RELAYED)]
    assert owners == [("8.8.4.0/24", "8.8.4.0/24"), (b"me", b"me"), (b"me", RELAYED)]
