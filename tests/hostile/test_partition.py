"""A network of 4 + 4 real nodes that was cut in two reunites within half a minute and loses nothing.

Nothing lost means: no node and no network process ended; every group that had arrived still waits to be trained on, and none
arrived twice; every reputation and address is kept; and each node's last offer, made during the partition, arrives. Older offers
that a newer one replaced are not sent again: even in a whole swarm no node samples every group.
"""

from pathlib import Path

import pytest

from hostile.partition import ALONE, BEFORE, part, why_not

HEALED_S = 30.0


@pytest.mark.privileged
@pytest.mark.parametrize("way", ["silent", pytest.param("unplugged", marks=pytest.mark.slow)])
def test_a_swarm_cut_in_two_is_one_again_with_nothing_lost(tmp_path: Path, way: str) -> None:
    if reason := why_not():
        pytest.skip(reason)

    healed = part(way, tmp_path)

    assert healed.trouble == []
    for me, before, after, arrived in zip(healed.peers, healed.before, healed.after, healed.arrived, strict=True):
        others = set(healed.peers) - {me}
        for number in (BEFORE, ALONE):
            assert {origin for origin, round_, _ in arrived if round_ == number} == others
        assert sorted(name for _, _, groups in arrived for name in groups) == after["waiting"]
        assert set(before["waiting"]) <= set(after["waiting"])
        assert after["received"] == {
            other: sum(len(groups) for origin, _, groups in arrived if origin == other) for other in others
        }
        assert set(before["known"]) <= set(after["known"])
        assert after["p2pd"] == before["p2pd"]


@pytest.mark.privileged
@pytest.mark.quiet
def test_a_swarm_cut_in_two_is_one_again_within_half_a_minute(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)

    assert part("silent", tmp_path).seconds <= HEALED_S
