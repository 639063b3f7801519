"""What 0.1.0 left on a person's computer opens as before: see README.md for what is in it, and story.py for how it came to be.

The home was left by a kill, between two checkpoints, while contribution was paused.
"""

import hashlib
import json
import lzma
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from end_to_end.programs import ENVIRONMENT, Engine, Program, Seed, running
from heritage.comparing import holds
from heritage.continuation import (
    OFFSCREEN,
    PASSPHRASE,
    SOME_DAY,
    TINY,
    WAYS,
    Person,
    answer_ended_swarm,
    continued,
    fields_of,
    has_engine,
    settings_of,
    wait_until,
)  # fmt: skip
from waggle.core.errors import CharterError, IdentityError
from waggle.core.message import english
from waggle.core.paths import Home
from waggle.core.peer_id import text_of
from waggle.gui.application.window import window_state
from waggle.network import joined_swarms
from waggle.network.identity import backup, keys, membership
from waggle.network.leaderboard import scores_file
from waggle.network.limits import reputation_file
from waggle.network.messages import invite
from waggle.network.transport import peer_cache
from waggle.protocol import commands, events, json_lines
from waggle.protocol.events_identity import BackupRead, DailyTotals
from waggle.protocol.events_models import ModelList
from waggle.protocol.events_swarms import InviteWritten, KnownSwarms
from waggle.protocol.state import State, apply
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms
from waggle.tasks.shipped_swarms import first_steps

HERE = Path(__file__).parent / "0.1.0"
NAMES = {"public": "Heritage, open", "private": "Heritage, closed"}  # of the person's swarms
PUBLIC, PRIVATE = NAMES.values()
CLOSE = 0.02  # apart, of the length of an array: what another kind of processor may add up to

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the folders were made where homes are found by HOME")
BEGINS_ANEW = "First light begins anew: the answers to its questions are checked now."  # chosen, as the private swarm has ended


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What must be in the folders."""
    with lzma.open(HERE / "person.json.xz", "rt", encoding="utf-8") as file:
        facts: dict[str, Any] = json.load(file)
    return facts


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A copy of their folders."""
    with tarfile.open(HERE / "person.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return Person(tmp_path / "person")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", WAYS)
def test_an_engine_goes_on_where_it_was(model: str, person: Person, expected: dict[str, Any], tmp_path: Path) -> None:
    """The next round continues the same training, with questions of the shipped swarm, as the swarm of before has ended."""
    if model == "hub" and sys.platform != "linux":
        pytest.skip("models of the hub lie in another place here")
    then = expected["continued"][model]
    now = continued(person, tmp_path, *WAYS[model], clock=then["clock"])
    assert [(warned["title"], warned["page"]) for warned in now["warned"]] == [(BEGINS_ANEW, "swarms")]
    for key in ("round", "base", "completions", "model"):
        assert now[key] == then[key]
    state_now, state_then = dict(now["after"]), dict(then["after"])
    saved, saved_then = state_now.pop("state"), state_then.pop("state")
    assert saved_then.pop("charter") == expected["private"]["charter"]
    assert saved["charter"] == shipped_swarms.first_swarm().digest.hex()
    steps = saved_then.pop("step")
    assert saved["step"] in (steps - 1, steps), "a copy of a home draws with other randomness, and its round may teach nothing"
    assert holds(saved, saved_then)
    assert state_now.keys() == state_then.keys()
    for file, arrays in state_then.items():
        assert state_now[file]["norms"].keys() == arrays["norms"].keys()
        if file != "moments.safetensors":  # one step on other questions changes the moments, and the weights only a little
            assert state_now[file]["norms"] == pytest.approx(arrays["norms"], rel=CLOSE)
    tried = [json.loads(path.read_bytes()) for path in (tmp_path / "continued").rglob("prompt_form.json")]
    assert len(tried) == (model != "starter"), "found once"
    assert all(choice["form"] in ("plain", "example", "example_opened") for choice in tried)


@pytest.mark.timeout(600)
def test_a_pause_holds_and_all_that_was_known_is_known(person: Person, expected: dict[str, Any]) -> None:
    with running(Engine(person.home, environment=person.environment)) as engine:
        answer_ended_swarm(engine)
        paused = engine.wait(events.PhaseChanged, 120, lambda event: event.phase == "paused")
        assert paused.until == SOME_DAY
        engine.command(commands.Resume)
        ready = engine.wait(events.Ready, 120)
        assert (ready.node, ready.name, ready.round) == (expected["node"], expected["name"], expected["round"])
        assert ready.charter == shipped_swarms.first_swarm().digest.hex()
        engine.wait(events.RoundCompleted, 120)
        engine.command(commands.Pause)

        engine.command(commands.QueryHistory)
        history = fields_of(engine.wait(events.TrainingHistory))
        for kind in ("rounds", "held_out", "ahas"):
            was = expected["history"][kind]
            assert holds(history[kind][: len(was)], was)
        engine.command(commands.QueryDays)
        days = fields_of(engine.wait(DailyTotals))
        then = expected["days"]["all"]
        assert days["all"]["date"] == then["date"]
        assert days["all"]["rounds"] > then["rounds"]
        assert days["all"]["right"] >= then["right"] > 0
        assert (days["met"], days["taken"]) == (expected["days"]["met"], expected["days"]["taken"])

        engine.command(commands.ListSwarms)
        known = engine.wait(KnownSwarms)
        assert [(swarm.charter, swarm.active) for swarm in known.swarms] == [
            (ready.charter, True),
            (first_steps().digest.hex(), False),
        ]
        assert {swarm.charter: swarm.name for swarm in known.ended} == {
            expected["public"]["charter"]: PUBLIC, expected["private"]["charter"]: PRIVATE,
        }  # fmt: skip
        assert all("false answers" in swarm.why for swarm in known.ended)
        for kind in ("public", "private"):
            refused = engine.command(commands.ReadInvite, 60, link=expected[kind]["link"])
            assert isinstance(refused, events.CommandRefused)
            assert refused.advice == known.ended[0].why
        engine.command(commands.WriteInvite, 60)
        written = invite.read(engine.wait(InviteWritten).link)
        assert (written.charter.hex(), written.key) == (ready.charter, b"")

        engine.command(commands.ListModels)
        models = {(model.name, model.folder): model for model in engine.wait(ModelList).models}
        assert models["", ""].rounds >= expected["checkpoint"]
        if sys.platform == "linux":
            from_hub = models[TINY, ""]
            assert (from_hub.rounds, from_hub.finished) == (expected["continued"]["hub"]["round"], True)

        muted = engine.wait(events.PeerChanged, 10, lambda event: event.peer.id == expected["peer"]["id"]).peer
        assert (muted.name, muted.choice) == (expected["peer"]["name"], expected["peer"]["choice"])
        engine.command(commands.CheckBackup, 60, path=str(person.root / "me.identity"), passphrase=PASSPHRASE)
        assert engine.wait(BackupRead).mine
        warnings = [event for event in engine.all_events if isinstance(event, events.Warned | events.CheckpointSetAside)]
        assert [warning.title for warning in warnings] == [BEGINS_ANEW]
        assert engine.end() == 0


@pytest.mark.timeout(300)
def test_the_window_opens_where_it_stood(person: Person, expected: dict[str, Any]) -> None:
    """It writes down the same page when the system ends it; the frame that this platform draws moves it by a point or two."""
    path = person.home / window_state.NAME
    was = window_state.read(path)
    assert (was.geometry, was.page, was.tray_told) == (expected["window"]["geometry"], "peers", expected["window"]["tray_told"])
    assert was.geometry_bytes
    with running(Program("--home", str(person.home), environment={**person.environment, **OFFSCREEN})) as window:
        wait_until(lambda: has_engine(person.home), 120, "the engine of the window")
        window.process.send_signal(signal.SIGTERM)
        assert window.process.wait(120) == 0, window.errors
    assert window_state.read(path).page == was.page


def test_who_a_person_is_stays_the_same(person: Person, expected: dict[str, Any]) -> None:
    me = keys.load_or_create(person.home / "identity.key")
    assert (text_of(me.peer_id), keys.name_of(me.peer_id)) == (expected["node"], expected["name"])
    assert keys.verify(me.peer_id, b"domain", b"words", me.sign(b"domain", b"words"))
    earlier = sorted(person.home.glob("identity.*.key"))
    assert {keys.load_or_create(path).peer_id == me.peer_id for path in earlier} == {True, False}, "both keys of before"


def test_a_backup_opens_with_its_passphrase_alone(person: Person, expected: dict[str, Any]) -> None:
    path = person.root / "me.identity"
    opened = backup.read(path, PASSPHRASE)
    assert text_of(opened.peer_id) == expected["node"]
    assert opened.content == (person.home / "identity.key").read_bytes()
    with pytest.raises(IdentityError, match="passphrase"):
        backup.read(path, PASSPHRASE.upper())


def test_settings_say_what_they_said(person: Person, expected: dict[str, Any]) -> None:
    assert holds(settings_of(person), expected["settings"])


@pytest.mark.parametrize("kind", ["public", "private"])
def test_an_invite_leads_to_a_charter_that_has_ended(kind: str, person: Person, expected: dict[str, Any]) -> None:
    link, digest = expected[kind]["link"], expected[kind]["charter"]
    read = invite.read(link)
    assert invite.read((person.root / f"{kind}.waggle").read_text("utf-8")) == read
    assert invite.write(read) == link
    path = person.home / "charters" / f"{digest}.json"
    assert hashlib.sha256(path.read_bytes()).digest() == read.charter
    with pytest.raises(CharterError, match=f"^{NAMES[kind]} has ended"):
        charters.read(path, expected=read.charter)
    assert charters.ended_name(path) == NAMES[kind]
    assert membership.read_key(Home(person.home).swarm(digest).key) == read.key
    entry = joined_swarms.read(person.home / "swarms.json").entry(digest)
    assert entry is not None
    assert entry.seeds == (read.seeds if kind == "private" else ())


def test_what_was_learned_about_peers_and_models_is_kept(person: Person, expected: dict[str, Any]) -> None:
    home, digest = Home(person.home), expected["private"]["charter"]
    by_name = {peer.name: peer for peer in reputation_file.read(home.reputation) or ()}
    peer = by_name[expected["peer"]["name"]]
    assert (text_of(peer.id), peer.choice) == (expected["peer"]["id"], "muted")
    assert peer.used > 0
    assert peer.taken == expected["days"]["taken"]
    marks = scores_file.read(home.swarm(digest).scores, expected["continued"]["starter"]["clock"])
    assert {text_of(mark.origin) for mark in marks} == {expected["node"], expected["peer"]["id"]}
    assert any(address.endswith(expected["peer"]["id"]) for address in peer_cache.read(home.swarm(digest).known_peers))


def test_the_record_of_events_is_read_and_adds_up_to_the_same_state(person: Person, expected: dict[str, Any]) -> None:
    state, kinds = State(), set()
    for path in sorted((person.home / "events").glob("*.jsonl")):
        for event in json_lines.recording(path):
            assert event is not None, path.name
            kinds.add(type(event))
            state = apply(state, event)
    assert len(kinds) > 20
    assert holds(json.loads(msgspec.json.encode(state, enc_hook=english)), expected["state"])


@pytest.mark.parametrize("page", ["live", "progress"])
def test_the_window_shows_the_record(page: str, person: Person, tmp_path: Path) -> None:
    longest = max((person.home / "events").glob("*.jsonl"), key=lambda path: path.stat().st_size)
    picture = tmp_path / "page.png"
    _waggle(person, "--replay", str(longest), "--page", page, "--screenshot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_log_is_searched(person: Person) -> None:
    lines = _waggle(person, "log", "--home", str(person.home), "ready:").splitlines()
    assert lines
    assert all("Starter 0.8M" in line or "tiny" in line or "exported" in line for line in lines)


def test_a_goodbye_finds_every_file(person: Person) -> None:
    _waggle(person, "goodbye", "--home", str(person.home), "--remove", "all")
    rest = {path.name for path in person.home.rglob("*") if path.is_file()}
    assert rest == {path.name for path in person.home.glob("identity*.key")}, "all but who they are"


def test_a_seed_is_found_at_its_address(person: Person) -> None:
    home = person.root / "seed"
    port, who = (home / "seed_port").read_text("ascii"), keys.load_or_create(home / "identity.key")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", int(port))) == 0:
            pytest.skip(f"another program listens at port {port}")
    with running(Seed(home)) as seed:
        assert seed.address().endswith(f"/tcp/{port}/p2p/{text_of(who.peer_id)}")


def _waggle(person: Person, *arguments: str) -> str:
    """Run a command to its end; what it says."""
    command = [sys.executable, "-m", "waggle", *arguments]
    environment = {**ENVIRONMENT, **person.environment, **OFFSCREEN}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
