"""Which addresses are accepted, and that hivemind understands them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.errors import SwarmError
from waggle.core.message import plain
from waggle.core.peer_id import text_of
from waggle.network.messages import addresses
from waggle.network.messages.addresses import is_address, own_port, peer_of
from waggle.network.transport.hivemind.network import load_hivemind

PEER = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "example.org:4001",
        "/ip4/127.0.0.1/tcp/4001",
        f"/p2p/{PEER}",
        f"/ip4/127.0.0.1/tcp/4001/p2p/{PEER[:-2]}",
        f"/ip4/127.0.0.1/tcp/66000/p2p/{PEER}",
        f"/ip4/300.0.0.1/tcp/4001/p2p/{PEER}",
        f"/ip9/127.0.0.1/tcp/4001/p2p/{PEER}",
        f"ip4/127.0.0.1/tcp/4001/p2p/{PEER}",
        f"/ip4/127.0.0.1/tcp/p2p/{PEER}",
        f"/ip4/127.0.0.1/p2p/{PEER}",
        f"/ip6/fe80::1%eth0/tcp/4001/p2p/{PEER}",
        f"/unix/\0/p2p/{PEER}",
        f"/dns4/a..b/tcp/4001/p2p/{PEER}",
        f"/ip4/127.0.0.1/tcp/4001/p2p/{PEER}\n",
        f" /ip4/127.0.0.1/tcp/4001/p2p/{PEER}",
    ],
)
def test_a_malformed_seed_is_named(address: str) -> None:
    with pytest.raises(SwarmError) as refused:
        peer_of(address)
    assert plain(address) in refused.value.title
    assert "/p2p/" in refused.value.advice


@pytest.mark.parametrize(
    "address",
    [
        f"/ip4/127.0.0.1/tcp/4001/p2p/{PEER}",
        f"/dns4/seed.example.org/tcp/4001/p2p/{PEER}",
        f"/ip6/::1/tcp/4001/p2p/{PEER}",
        f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}/p2p-circuit/p2p/{PEER}",
    ],
)
def test_a_full_address_is_accepted(address: str) -> None:
    assert text_of(peer_of(address)) == PEER
    assert is_address(address)


def test_a_relay_is_written_by_its_plain_peer_id() -> None:
    address = f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}/p2p-circuit"
    written = load_hivemind().Multiaddr(address).to_bytes()
    named = peer_of(f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}")
    assert bytes([len(named)]) + named in written
    assert str(load_hivemind().Multiaddr(written)) == address


HOSTS = st.one_of(
    st.ip_addresses(v=4).map(lambda ip: f"/ip4/{ip}"),
    st.ip_addresses(v=6).map(lambda ip: f"/ip6/{ip}"),
    st.from_regex(addresses._NAME, fullmatch=True).map(lambda name: f"/dns4/{name}"),
)
FORMS = st.tuples(HOSTS, st.integers(1, 65535), st.sampled_from(["", "/ws", "/tls/ws", f"/p2p/{PEER}/p2p-circuit"]))


@given(FORMS)
def test_hivemind_knows_every_form_that_is_accepted(form: tuple[str, int, str]) -> None:
    host, port, rest = form
    address = f"{host}/tcp/{port}{rest}/p2p/{PEER}"
    assert is_address(address) == (len(host) <= len("/dns4/") + 253)
    if is_address(address):
        assert str(load_hivemind().Multiaddr(address)).endswith(f"/p2p/{PEER}")


@given(st.text())
def test_other_text_is_refused_in_words(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(SwarmError, match="is not a seed's address"):
        peer_of(text)


def test_the_port_of_a_seed_that_passes_calls_on_is_not_our_own() -> None:
    circuit = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}/p2p-circuit"
    assert own_port([circuit, "/ip4/127.0.0.1/tcp/4711"]) == 4711
    assert own_port([circuit, "/ip6/::1/udp/4712/quic-v1", "/ip6/::1/tcp/4713"]) == 4713
    assert own_port([circuit]) == own_port([]) == 0
