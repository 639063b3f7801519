"""A count that two surfaces show is the same on both at the same State: along a recording, with peers in every standing."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from gui.conftest import TellWindow
from gui.counts import Surfaces, differences, number_in
from pictures.screenshots import STANDINGS, with_peers
from waggle.protocol import events
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.state import AnyEvent, apply

ROUND = events.RoundCompleted


def until_round(story: Sequence[AnyEvent], count: int) -> list[AnyEvent]:
    """The story up to its round of this number."""
    places = [place for place, event in enumerate(story) if isinstance(event, ROUND)]
    return list(story[: places[min(count, len(places)) - 1] + 1])


@pytest.mark.parametrize("count", [1, 5, 10_000])
def test_along_a_recording_each_count_is_one_count(story: Sequence[AnyEvent], window_told: TellWindow, count: int) -> None:
    surfaces = Surfaces(window_told(until_round(story, count)))
    counts = surfaces.counts()
    assert not differences(counts)
    assert not differences(surfaces.contribution())
    assert len(counts["round"]) == 4
    assert len(counts["rounds that are finished"]) == 3
    assert len(counts["tokens a second"]) >= 4


def test_peers_in_every_standing_are_counted_alike(story: Sequence[AnyEvent], window_told: TellWindow) -> None:
    """One that was blocked after it fetched something, one that left, a seed, and one that only fetched."""
    blocked = events.PeerChanged(
        peer=events.PeerInfo(id="b" * 52, name="Grim Oak", received=3, groups_pulled=9, choice="blocked"), at=story[-1].at
    )
    seed = events.PeerChanged(peer=events.PeerInfo(id="s" * 52, name="Still Marten"), at=story[-1].at)
    reached = events.ReachChanged(reach="connected", peers=len(STANDINGS), at=story[-1].at)
    running = events.PhaseChanged(phase="contributing", round=180, at=story[-1].at)
    window = window_told([*with_peers(until_round(story, 10_000)), blocked, seed, reached, running])
    surfaces = Surfaces(window)
    counts = surfaces.counts()
    assert not differences(counts)
    assert len(counts["peers"]) >= 9, counts["peers"]
    assert counts["peers"]["Home"] == len(window._store.state.members) > 2
    assert number_in(surfaces.peers, r"(\d+) took your examples") == len(window._store.state.takers) > 2


def test_after_a_restart_what_the_engine_recalls_is_said_everywhere(story: Sequence[AnyEvent], window_told: TellWindow) -> None:
    """Its score was on Home alone until the next exam, and `waggle status` had none."""
    begun = [event for event in until_round(story, 1) if not isinstance(event, events.HeldOutMeasured)]
    ready = next(event for event in begun if isinstance(event, events.Ready))
    score = events.HeldOutScore(round=0, at=begun[-1].at, right=48, total=200)
    recalled = events.RoundsRecalled(rounds=(), score=score, at=begun[0].at)
    place = begun.index(ready) + 1
    counts = Surfaces(window_told([*begun[:place], recalled, *begun[place:]])).counts()
    assert not differences(counts)
    assert counts["new questions solved of 100"].keys() >= {"Home", "Progress", "waggle status", "waggle top", "status page"}


def test_a_score_of_another_swarm_is_said_nowhere(story: Sequence[AnyEvent], window_told: TellWindow) -> None:
    begun = [event for event in until_round(story, 1) if not isinstance(event, events.HeldOutMeasured)]
    score = events.HeldOutScore(round=0, at=begun[-1].at, right=48, total=200, by_specialty={"Their riddles": (48, 200)})
    counts = Surfaces(window_told([*begun, events.HeldOutMeasured(score=score, at=begun[-1].at)])).counts()
    assert not counts["new questions solved of 100"].keys() - {"Progress"}, "its curve shows every exam, with a break"


def test_energy_is_what_the_daily_budget_counts_also_after_the_power_was_changed(
    story: Sequence[AnyEvent], window_told: TellWindow
) -> None:
    day = Day(date="2026-03-09", rounds=1, answers=8, seconds=3600.0)
    at = 1_773_057_600.0  # noon of that day
    days = DailyTotals(days=(day,), all=day, utc_offset=0, at=at)
    counted = events.EnergyCounted(date=day.date, kwh=0.042, at=at)
    surfaces = Surfaces(window_told([*until_round(story, 1), days, counted]))
    assert surfaces.contribution()["Wh today"] == {"Home": 42, "You": 42, "waggle status --json": 42}


@pytest.mark.parametrize("end", [events.EngineStopped(round=9), events.EngineFailed(title="No room.", advice="")])
def test_nobody_trains_with_an_engine_that_ended(story: Sequence[AnyEvent], window_told: TellWindow, end: AnyEvent) -> None:
    peopled = with_peers(until_round(story, 5))
    window = window_told([*peopled, replace(end, at=peopled[-1].at)])
    state = window._store.state
    assert state.peers
    assert (state.members, state.connected, state.takers) == ((), (), ())
    assert apply(state, events.Preparing(part="Looking for the model", done=0, parts=5)).members == ()
