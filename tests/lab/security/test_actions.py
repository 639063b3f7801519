"""Test the attacks on the network itself, made on live nodes."""

import pytest

from waggle.network.transport.hivemind.patches import load_hivemind
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security import near_names
from waggle_lab.security.sieges.siege import SiegeKey, run_siege


@pytest.fixture(scope="module")
def charter() -> Charter:
    return first_swarm()


@pytest.mark.parametrize("attack", ["stalled streams", "named bystanders", "eclipse", "twin lessons"])
async def test_honest_nodes_go_on_exchanging_groups_under_an_attack_on_the_network(attack: str, charter: Charter) -> None:
    key = SiegeKey(attack=attack, honest=2, hostile=2, rounds=2, seed=1)
    result = await run_siege(key, charter, (), "commit", lambda _: None)
    assert (result.crashes, result.honest_groups_lost, result.wrong_answers_accepted) == (0, 0, 0)
    assert result.honest_received > 0
    assert result.attackers is not None
    assert result.attackers.cpu_seconds > 0
    assert result.bystander_calls == (0 if attack == "named bystanders" else None)


def test_ground_keys_lie_nearer_to_a_key_of_the_directory_than_the_others() -> None:
    hivemind = load_hivemind()
    key = "waggle/1/00/0/0"
    assert near_names.place_of(key) == int(hivemind.DHTID.generate(key))
    ground = near_names.ground_keys(key, 2, tries=1_000)
    assert all(near_names.place_of(peer_id) == int(hivemind.node_id_of(hivemind.PeerID(peer_id))) for _, peer_id in ground)
    first, second = (near_names.place_of(peer_id) ^ near_names.place_of(key) for _, peer_id in ground)
    assert first < second < 1 << 156, (
        "one in 16 of all places of 160 bits lies as near, so that 1,000 random keys have two for certain"
    )
