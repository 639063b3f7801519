"""A stranger's clients cost a real seed little memory, and what they cost is given back."""

from pathlib import Path

import pytest

from memory_siege import ATTACKS, Attack, Siege, besieged_seed
from waggle.network.transport.gateway import metered_connection, server

MOST_MIB = 64  # of growth, by any attack


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_no_attack_on_a_gateway_makes_a_seed_grow_much(attack: Attack, tmp_path: Path) -> None:
    async with besieged_seed(tmp_path) as siege:
        assert await siege.growth(attack, 30.0) < MOST_MIB
        assert await is_served(siege)


async def is_served(siege: Siege) -> bool:
    async with siege.crowd(1) as crowd:
        return len(crowd) == 1


def test_the_bounds_of_a_gateway_fit_into_that_together() -> None:
    most = server.MAX_UPLOADED + metered_connection.MAX_UNPROCESSED + 2 * server.MAX_UNSENT
    assert most < MOST_MIB << 20
