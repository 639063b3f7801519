"""An engine leaves a swarm in which no round can be played for the swarm before, at once or at the next start."""

import pytest

from end_to_end.programs import Engine, running
from waggle.core import paths
from waggle.engine.services.swarms.swarms import BACK_MESSAGE
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import StartedAgain
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter, Specialty
from waggle.tasks.shipped_swarms import first_swarm

SETTINGS = ("swarm.host=127.0.0.1", "learning.questions=1", "learning.local=1")
ENDLESS = Specialty(dataset="modulo_grid", title="Endless", levels=("standard",))  # 400 emoji: about 1,360 tokens of the starter
DIGEST = "75c5336c49afce01209719660c449635d7ad3d7659b9810bd3732c23ec7d130c"
TOO_LONG = Charter(name="Long questions", specialties=(ENDLESS,), questions_digest=DIGEST)


@pytest.fixture
def home(tmp_path):
    own_home = paths.Home(tmp_path / "home").prepare()
    (own_home.charters / f"{TOO_LONG.digest.hex()}.json").write_bytes(charters.encode(TOO_LONG))
    joined_swarms.write(own_home.swarms, JoinedSwarms(entries=(JoinedSwarm(charter=TOO_LONG.digest.hex()),)))
    return own_home


def went_back(engine: Engine, says: str, start: int = 0) -> events.Warned:
    """The reason, once rounds are played in the first swarm again."""
    warned = engine.wait(events.Warned, 120, lambda event: event.advice.endswith(says), start)
    ready = engine.wait(events.Ready, 120, lambda event: event.charter == first_swarm().digest.hex(), start)
    engine.wait(events.RoundCompleted, 60, lambda event: event.summary.round >= ready.round, start)
    return warned


def test_a_swarm_whose_questions_the_model_cannot_read_is_left_in_its_first_round_and_at_a_start_on_the_way_there(home):
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(events.RoundCompleted, 120)
        start = choose(engine)
        assert "the questions are longer" in went_back(engine, "All is as it was before.", start).title
        assert joined_swarms.read(home.swarms).active == ""
        start = choose(engine)
        engine.wait(StartedAgain, 60, lambda event: event.reason == "Going to Long questions.", start)
        engine.kill()
    assert joined_swarms.read(home.swarms).active == TOO_LONG.digest.hex()
    with running(Engine(home.root, *SETTINGS)) as engine:
        went_back(engine, BACK_MESSAGE)
        assert engine.end() == 0
    assert joined_swarms.read(home.swarms).active == ""


def choose(engine: Engine) -> int:
    """Choose a swarm; returns the number of lines before that."""
    start = len(engine.lines)
    assert isinstance(engine.command(commands.ChooseSwarm, charter=TOO_LONG.digest.hex()), events.CommandDone)
    return start
