"""A seed gives the charter to nodes that know its hash."""

from pathlib import Path

import pytest

from network.loopback import fresh_identity, options
from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network.identity.keys import Identity
from waggle.network.transport.choice import fetch_charter
from waggle.tasks.charter import Charter


async def test_a_charter_is_fetched_by_its_hash_from_the_seed_that_answers(
    seed_address: str, identity: Identity, charter: Charter, tmp_path: Path
) -> None:
    dead = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'dead').peer_id)}"
    result = await fetch_charter(options(seeds=(dead, seed_address)), identity, charter.digest)
    assert result == charter


async def test_a_charter_that_no_seed_has_is_an_error_with_advice(seed_address: str, identity: Identity) -> None:
    with pytest.raises(SwarmError) as refused:
        await fetch_charter(options(seeds=(seed_address,)), identity, bytes(32))
    assert refused.value.advice
