"""A partition of 4 + 4 real nodes is healed within half a minute of its repair, and nothing is lost by it.

Nothing lost means: no node and no network process ended; every group that had arrived still waits to be trained on, and none
came twice; every standing and every address is kept; and what each node offered last, made while the two sides were apart,
arrives at all. An offer that a newer one took the place of is not made up for: in a whole swarm, too, nobody samples every group.
"""

from pathlib import Path

import pytest

from end_to_end.programs import SLOW
from hostile.partition import ALONE, BEFORE, part, why_not

HEALED_S = 30.0  # on a computer that does nothing else


@pytest.mark.privileged
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["silent", pytest.param("unplugged", marks=pytest.mark.slow)])
def test_a_swarm_cut_in_two_is_one_again_with_nothing_lost(tmp_path: Path, way: str) -> None:
    if reason := why_not():
        pytest.skip(reason)

    healed = part(way, tmp_path)

    assert healed.seconds <= HEALED_S * SLOW
    assert healed.trouble == []
    for me, before, after, arrived in zip(healed.peers, healed.before, healed.after, healed.arrived, strict=True):
        others = set(healed.peers) - {me}
        for number in (BEFORE, ALONE):
            assert {origin for origin, found, _ in arrived if found == number} == others
        assert sorted(name for _, _, groups in arrived for name in groups) == after["waiting"]
        assert set(before["waiting"]) <= set(after["waiting"])
        assert after["received"] == {
            other: sum(len(groups) for origin, _, groups in arrived if origin == other) for other in others
        }
        assert set(before["known"]) <= set(after["known"])
        assert after["p2pd"] == before["p2pd"]
