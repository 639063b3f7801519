"""Test the status sentence for a table of States."""

import time

import pytest
from msgspec.structs import replace

from waggle.core.message import Message
from waggle.core.settings import ScheduleSettings
from waggle.protocol import events
from waggle.protocol.events_models import ModelChanged, ModelUnavailable
from waggle.protocol.schedule import Readings, Wishes, decide, moment
from waggle.protocol.state import State
from waggle.protocol.text.status_text import sentence
from waggle.protocol.zone import local_time, time_there

READY = events.Ready(
    protocol=1,
    version="0",
    node="n",
    name="Amber Finch",
    swarm="Maths swarm",
    charter="c",
    specialties=(),
    model="m",
    model_note="",
    backend="torch",
    device="cpu",
    device_reason="",
    threads=1,
    cores=2,
    round=0,
    completions=0,
    group_size=8,
    parameters=1,
)
PEER = events.PeerInfo(id="a", name="Brisk Otter", received=3)
SEED = events.PeerInfo(id="s", name="Still Marten")
OTHER = events.PeerInfo(id="o", name="O", connection="gone", refusal="runs Waggle 9.evil.example, which is newer: update it")
DOWNLOADING = events.Downloading(model="q", done=412_000_000, total=980_000_000, seconds_left=355.0)
LOADING = events.Preparing(part=Message("Loading the model"), done=1, parts=4)
CHANGED = ModelChanged(model="mine", rounds=120, fits=True, is_whole=True)
UNPLUGGED = ModelUnavailable(folder="/media/usb/mine", reason="There is no model in /media/usb/mine.", advice="Connect its disk.")
ANOTHER = "has changed since you trained it."
RELEARNING = events.Preparing(
    part=Message("Learning again what came after the last checkpoint: %1 of %2 rounds", 3, 40), done=3, parts=5, long=True
)
WAITING = decide(ScheduleSettings(), Readings(on_power=False), Wishes(), 0.0)
AWAY = decide(ScheduleSettings(), Readings(idle_seconds=0.0), Wishes(paused=True, until_away=True), 0.0)
PAUSED = decide(ScheduleSettings(), Readings(), Wishes(paused=True), 0.0)
FREE = decide(ScheduleSettings(), Readings(), Wishes(), 0.0)
TABLE = [
    (State(), "Getting ready", "Starting Waggle.", "none"),
    (State(preparing=LOADING), "Getting ready", "Loading the model.", "none"),
    (State(downloading=DOWNLOADING), "Getting ready", "Downloading the model: 412 of 980 MB, about 6 min left.", "pause"),
    (State(preparing=LOADING, decision=PAUSED), "Getting ready", "Loading the model.", "resume"),
    (
        State(downloading=DOWNLOADING, decision=PAUSED),
        "Getting ready",
        "Downloading the model: 412 of 980 MB, about 6 min left.",
        "resume",
    ),
    (State(preparing=LOADING, changed=CHANGED), "Waiting for you", f"mine {ANOTHER}", "choose_training"),
    (
        State(preparing=LOADING, changed=replace(CHANGED, model="The starter", rounds=1, is_whole=False)),
        "Waiting for you",
        f"The starter {ANOTHER}",
        "choose_training",
    ),
    (State(preparing=LOADING, changed=replace(CHANGED, fits=False)), "Waiting for you", f"mine {ANOTHER}", "choose_training"),
    (
        State(preparing=LOADING, unavailable=UNPLUGGED),
        "Waiting for you",
        "Your model is not available right now.",
        "choose_model",
    ),
    (
        State(preparing=RELEARNING),
        "Getting ready",
        "Learning again what came after the last checkpoint: 3 of 40 rounds.",
        "pause",
    ),
    (
        State(preparing=RELEARNING, decision=PAUSED),
        "Getting ready",
        "Learning again what came after the last checkpoint: 3 of 40 rounds.",
        "resume",
    ),
    (State(phase="paused", preparing=RELEARNING), "Paused by you", "Paused.", "resume"),
    (State(phase="paused", preparing=RELEARNING, decision=AWAY), "Paused by you", "Paused until you are away.", "resume"),
    (State(phase="paused", preparing=RELEARNING, until=100.0), "Paused by you", f"Paused until {moment(100.0, 0.0)}.", "resume"),
    (State(phase="paused", round=3), "Paused by you", "Paused.", "resume"),
    (State(phase="paused", until=100.0), "Paused by you", f"Paused until {moment(100.0, 0.0)}.", "resume"),
    (State(phase="finishing", round=8), "Finishing", "Finishing round 9, then pausing.", "pause_now"),
    (State(phase="contributing", decision=PAUSED), "Finishing", "Finishing this step, then pausing.", "resume"),
    (State(phase="finishing", round=8, decision=PAUSED), "Finishing", "Finishing this step, then pausing.", "resume"),
    (State(phase="contributing", decision=WAITING), "Finishing", "Finishing this step, then waiting.", "anyway"),
    (
        State(phase="contributing", decision=FREE, reach="solo"),
        "Training",
        "Training in the swarm begins in a moment.",
        "pause",
    ),
    (State(phase="waiting"), "Waiting", "Waiting for a better moment.", "anyway"),
    (State(phase="waiting", decision=WAITING), "Waiting", "The computer runs on battery.", "anyway"),
    (State(phase="paused", decision=AWAY), "Paused by you", "Paused until you are away.", "resume"),
    (State(phase="stopped"), "Stopped", "Not training.", "none"),
    (
        State(phase="problem", problem=events.EngineFailed(title="No room.", advice="Make some.")),
        "Problem",
        "No room.",
        "copy_report",
    ),
    (
        State(phase="problem", gone=events.EngineGone(code=-9, restarts=1)),
        "Restarting",
        "Your computer stopped the training, probably because memory ran short.",
        "copy_report",
    ),
    (
        State(phase="problem", gone=events.EngineGone(code=7, restarts=3)),
        "Restarting",
        "Training stopped unexpectedly.",
        "copy_report",
    ),
    (
        State(phase="problem", gone=events.EngineGone(code=255, restarts=3, host="me@box")),
        "Reconnecting",
        "The connection to me@box broke.",
        "copy_report",
    ),
    (
        State(phase="contributing", ready=READY, round=812, reach="connected", peers={"a": PEER}),
        "Training",
        "Training in Maths swarm, round 813.",
        "pause",
    ),
    (
        State(phase="contributing", ready=READY, reach="connected", peers={"s": SEED}),
        "Alone",
        "Training in Maths swarm begins in a moment.",
        "pause",
    ),
    (State(phase="contributing", ready=READY, reach="alone"), "Alone", "Training in Maths swarm begins in a moment.", "pause"),
    (
        State(phase="contributing", ready=READY, reach="alone", peers={"o": OTHER}),
        "Alone",
        "Training in Maths swarm begins in a moment.",
        "pause",
    ),
    (
        State(phase="contributing", reach="connecting", seeds_tried=3),
        "Connecting",
        "Training in the swarm begins in a moment.",
        "pause",
    ),
    (
        State(phase="contributing", reach="connecting", seeds_tried=1),
        "Connecting",
        "Training in the swarm begins in a moment.",
        "pause",
    ),
    (State(phase="contributing", reach="solo"), "Training", "Training in the swarm begins in a moment.", "pause"),
    (
        State(phase="contributing", reach="solo", test=events.HeldOutProgress(done=3, total=9)),
        "Testing",
        "Training in the swarm begins after a first test.",
        "pause",
    ),
    (
        State(phase="contributing", reach="connecting", test=events.HeldOutProgress(done=3, total=9)),
        "Testing",
        "Training in the swarm begins after a first test.",
        "pause",
    ),
    (State(phase="contributing", reach="solo", stage="draw"), "Training", "Training in the swarm, round 1.", "pause"),
]


@pytest.mark.parametrize(("state", "word", "says", "action"), TABLE)
def test_every_phase_has_a_sentence_a_reason_and_one_action(state, word, says, action):
    status = sentence(state)
    assert (status.word, status.says, status.action) == (word, says, action)
    assert status.detail.endswith(".")


@pytest.mark.parametrize(("tried", "words"), [(0, "Looking for peers."), (1, "(tried 1 address)"), (2, "(tried 2 addresses)")])
def test_how_many_addresses_were_tried_is_counted(tried, words):
    assert words in sentence(State(phase="contributing", reach="connecting", seeds_tried=tried)).detail


@pytest.mark.parametrize(
    ("decision", "starts"),
    [(FREE, "Training starts automatically."), (PAUSED, "Paused. Continues when you resume.")],
)
def test_what_is_paused_already_while_it_is_prepared_starts_when_the_pause_ends(decision, starts):
    assert sentence(State(preparing=LOADING, decision=decision)).detail == starts
    assert sentence(State(downloading=DOWNLOADING, decision=decision)).detail == f"The download resumes if interrupted. {starts}"


def test_a_moment_that_is_not_today_is_told_with_its_day():
    now, then = 1.7e9, 1.7e9 + 2 * 86_400
    assert moment(then, now).split()[0].endswith("day")
    assert sentence(State(at=now, phase="paused", until=then)).says == f"Paused until {moment(then, now)}."
    paused = decide(ScheduleSettings(), Readings(), Wishes(paused=True, until=then), now)
    status = sentence(State(at=now, phase="paused", until=then, decision=paused))
    assert status.says == f"Paused until {moment(then, now)}."
    assert status.detail == "Nothing was lost. Continues then, or when you resume."
    anyway = decide(ScheduleSettings(), Readings(on_power=False), Wishes(anyway_until=then), now)
    status = sentence(State(at=now, phase="contributing", decision=anyway))
    assert status.detail.endswith(f"Your rules wait until {moment(then, now)}.")


def test_all_times_are_those_of_the_engines_zone_also_where_the_reader_has_another():
    now, ends = 86_400.0, 90_000.0
    east = time.localtime(now).tm_gmtoff + 5 * 3600
    there = local_time(east, now)
    paused = decide(ScheduleSettings(), Readings(), Wishes(paused=True, until=ends), now, local=there)
    state = State(at=now, phase="paused", until=ends, decision=paused)
    words = f"Paused until {time.strftime('%H:%M', time.gmtime(ends + east))}."
    assert words != f"Paused until {time.strftime('%H:%M', time.localtime(ends))}."
    assert (sentence(state).says, sentence(state).why[0].says) == (words, words)
    assert time_there(state.utc_offset, now) == time.strftime("%H:%M", time.gmtime(now + east))
    assert time_there(time.localtime(now).tm_gmtoff, now) == time_there(None, now) == ""


def test_whoever_is_alone_is_promised_nobody():
    alone = sentence(State(phase="contributing", reach="alone")).detail
    assert alone == "You're the only one here. Invite someone."
    unanswered = sentence(State(phase="contributing", reach="alone", seeds_tried=2)).detail
    assert unanswered == "Nobody answers (tried 2 addresses): the others may be off, or a firewall is in the way."
    silent = sentence(State(phase="contributing", reach="connected", peers={"s": SEED})).detail
    assert silent == "Nobody else is sharing right now, so you train alone."


@pytest.mark.parametrize("reach", ["connecting", "alone", "connected"])
def test_where_all_who_answer_run_another_version_nobody_is_told_that_none_is_there(reach):
    status = sentence(State(phase="contributing", reach=reach, peers={"o": OTHER})).detail
    assert status == "Those who answer cannot train with this Waggle: the page Peers says why. You are training on your own."
    both = sentence(State(phase="contributing", reach="connected", peers={"a": PEER, "o": OTHER})).detail
    assert "with 1 peer." in both


def test_one_peer_is_not_called_peers():
    status = sentence(State(phase="contributing", reach="connected", peers={"a": PEER, "s": SEED}))
    assert "with 1 peer." in status.detail


@pytest.mark.parametrize(
    ("seconds_left", "ending"),
    [
        (None, "of 980 MB."),
        (4.0, "of 980 MB, less than a minute left."),
        (5300.0, "of 980 MB, about 89 min left."),
        (9000.0, "of 980 MB, about 2 h left."),
    ],
)
def test_a_download_says_how_long_it_takes_and_that_it_can_be_interrupted(seconds_left, ending):
    status = sentence(State(downloading=replace(DOWNLOADING, seconds_left=seconds_left)))
    assert status.says.endswith(ending)
    assert status.detail.startswith("The download resumes if interrupted.")


def test_what_is_learned_again_goes_on_when_resumed_and_is_no_round_of_its_own():
    assert sentence(State(phase="paused", preparing=RELEARNING)).detail == "Nothing was lost. Continues when you resume."


def test_a_download_that_is_paused_goes_on_when_resumed():
    assert "Continues when you resume." in sentence(State(phase="paused", downloading=DOWNLOADING)).detail


def test_the_sentence_carries_why_with_what_holds_back_first():
    status = sentence(State(phase="waiting", decision=WAITING))
    assert [tick.passes for tick in status.why] == [False, None, None, None]
    assert status.detail == "Starts when you plug it in. Nothing was lost."
    assert "Continues 3 min after" in sentence(State(phase="paused", decision=AWAY)).detail
