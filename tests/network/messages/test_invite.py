"""Invite links are read as they were written, and nothing else is accepted."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waggle.core.ed25519 import is_public_key
from waggle.core.errors import SwarmError
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.network.messages import invite
from waggle.network.messages.invite import Invite

PEER = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"
SEED = f"/ip4/192.0.2.1/tcp/4001/p2p/{PEER}"
OTHER = f"/dns4/seed.example.org/tcp/443/wss/p2p/{PEER}"
DIGEST = bytes(range(32))
KEY = bytes(range(100, 132))
LINK = f"waggle://join?charter={DIGEST.hex()}&seed={SEED}&seed={OTHER}#key={base64.urlsafe_b64encode(KEY).decode().rstrip('=')}"


def test_gateways_stand_in_the_link_with_the_peer_that_they_must_be() -> None:
    invitation = Invite(
        charter=DIGEST, seeds=(SEED,), gateways=(f"wss://example.org/gateway#{PEER}", "ws://[2001:db8::1]:80/gateway")
    )
    link = invite.write(invitation)
    assert f"&gateway=wss://example.org/gateway%23{PEER}&gateway=ws://[2001:db8::1]:80/gateway" in link
    assert invite.read(link) == invitation
    alone = Invite(charter=DIGEST, gateways=("ws://192.0.2.1:8080/some/where/gateway",), key=KEY)
    assert invite.read(invite.write(alone)) == alone


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/gateway", "ws://example.org/reboot?now=/gateway", "ws://example.org/", "ws://me:pass@example.org/gateway",
        "ws://example.org:70000/gateway", "ws://999.1.1.1/gateway", "ws://[::1/gateway", "ws://example.org/gateway%23nobody",
        "ws://example.org/a/b/c/d/e/gateway",
    ],
)  # fmt: skip
def test_a_link_can_ask_for_no_page_but_a_gateway(address: str) -> None:
    with pytest.raises(SwarmError, match="names a gateway"):
        invite.read(f"waggle://join?charter={DIGEST.hex()}&gateway={address}")


def test_an_invite_is_this_link() -> None:
    assert invite.write(Invite(charter=DIGEST, seeds=(SEED, OTHER), key=KEY)) == LINK
    assert invite.read(LINK) == Invite(charter=DIGEST, seeds=(SEED, OTHER), key=KEY)


PEERS = st.binary(min_size=32, max_size=32).filter(is_public_key).map(lambda key: text_of(PEER_ID_PREFIX + key))
SEEDS = st.builds("/ip4/{}/tcp/{}/p2p/{}".format, st.ip_addresses(v=4), st.integers(1, 65535), PEERS)
INVITES = st.builds(
    Invite,
    charter=st.binary(min_size=32, max_size=32),
    seeds=st.lists(SEEDS, min_size=1, max_size=invite.MAX_SEEDS, unique=True).map(tuple),
    key=st.just(b"") | st.binary(min_size=32, max_size=32),
)


@given(INVITES)
def test_what_is_written_is_read_again(invitation: Invite) -> None:
    assert invite.read(invite.write(invitation)) == invitation


def test_what_programs_do_to_links_on_the_way_is_forgiven() -> None:
    expected = invite.read(LINK)
    for changed in (LINK.replace("join?", "join/?"), f"  {LINK}\r\n", LINK.replace("=/", "=%2F").replace("/tcp", "%2ftcp")):
        assert invite.read(changed) == expected


def test_the_key_of_a_private_swarm_is_shown_nowhere() -> None:
    invitation = invite.read(LINK)
    assert invitation.key == KEY
    assert "key" not in repr(invitation)
    assert repr(KEY) not in repr(invitation)


PLAIN = LINK.partition("#")[0]
REFUSED = {
    "nothing": "",
    "no link": "hello",
    "another scheme": LINK.replace("waggle:", "http:"),
    "another host": LINK.replace("//join", "//leave"),
    "a user": LINK.replace("//join", "//me@join"),
    "a port": LINK.replace("//join", "//join:1"),
    "no charter": LINK.replace(f"charter={DIGEST.hex()}&", ""),
    "two charters": LINK.replace("join?", f"join?charter={DIGEST.hex()}&"),
    "a short hash": LINK.replace(DIGEST.hex(), DIGEST.hex()[:-2]),
    "a hash in capitals": LINK.replace(DIGEST.hex(), DIGEST.hex().upper()),
    "no seed": PLAIN.partition("&")[0],
    "a gateway twice": f"{PLAIN}&gateway=ws://a.b/gateway&gateway=ws://a.b/gateway",
    "five gateways": PLAIN + "".join(f"&gateway=ws://{i}.b/gateway" for i in range(5)),
    "a seed twice": f"{PLAIN}&seed={SEED}",
    "seventeen seeds": PLAIN + "".join(f"&seed=/ip4/192.0.2.{i}/tcp/1/p2p/{PEER}" for i in range(15)),
    "a seed without its peer": LINK.replace(f"/p2p/{PEER}", ""),
    "a seed that is a web page": LINK.replace(SEED, "https://example.org"),
    "an unknown parameter": f"{PLAIN}&name=x",
    "the key where it would be sent": f"{PLAIN}&key={'A' * 43}",
    "an empty parameter": f"{PLAIN}&",
    "a broken percent": f"{PLAIN}%",
    "a percent that is no text": f"{PLAIN}%ff",
    "a hidden line break": f"{PLAIN}%0A",
    "a control character": LINK.replace("tcp", "t\0cp"),
    "a space": LINK.replace("&", " &"),
    "text that runs backwards": LINK.replace("&", "\u202e&"),
    "letters that only look right": LINK.replace("seed", "s\u0435ed"),
    "an empty fragment": f"{PLAIN}#",
    "another fragment": f"{PLAIN}#top",
    "a short key": LINK[:-1],
    "a key with another ending": LINK[:-1] + "5",
    "two fragments": f"{LINK}#key=",
    "too long": f"{PLAIN}&seed={'x' * 5000}",
}


@pytest.mark.parametrize("link", REFUSED.values(), ids=REFUSED.keys())
def test_a_link_that_breaks_a_rule_is_refused_in_words_that_repeat_none_of_it(link: str) -> None:
    with pytest.raises(SwarmError) as refused:
        invite.read(link)
    assert refused.value.title.startswith("This ")
    assert refused.value.advice
    assert not link or link[-20:] not in str(refused.value)


@pytest.mark.parametrize(
    "invitation",
    [
        Invite(charter=bytes(31), seeds=(SEED,)),
        Invite(charter=DIGEST, seeds=()),
        Invite(charter=DIGEST, seeds=(f"{SEED}&seed={OTHER}",)),
        Invite(charter=DIGEST, seeds=(f"{SEED}#",)),
        Invite(charter=DIGEST, seeds=(SEED,), key=b"short"),
    ],
)
def test_an_invite_that_nobody_could_read_is_not_written(invitation: Invite) -> None:
    with pytest.raises(SwarmError):
        invite.write(invitation)


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    for link in (text, f"waggle://join?{text}", f"{LINK}{text}x"):
        with pytest.raises(SwarmError):
            invite.read(link)
