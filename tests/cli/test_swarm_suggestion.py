"""A suggested swarm in a terminal: `waggle ctl status` and `waggle model choose` name it and the command that goes there."""

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.cli.control.status import describe
from waggle.cli.main import main
from waggle.core import paths, settings
from waggle.core.settings import Settings, WindowSettings
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarms
from waggle.protocol.events import SwarmSuggestion
from waggle.protocol.state import State
from waggle.protocol.text.swarm_suggestion import suggestion
from waggle.tasks.shipped_swarms import first_steps, first_swarm

BETTER = SwarmSuggestion(charter=first_steps().digest.hex(), name="First steps")
SENTENCE = (
    "Small language models learn more in First steps, a swarm with easier questions that comes with Waggle: "
    '`waggle swarm join "First steps"`.'
)
DISMISSED = Settings(window=WindowSettings(suggest_swarm=False))


def test_the_status_names_the_swarm_and_the_command_in_one_sentence() -> None:
    state = State(phase="contributing", ready=replace(READY, better_swarm=BETTER))
    assert SENTENCE in describe(state, 0.0).splitlines()


@pytest.mark.parametrize(
    "state", [State(), State(ready=READY), State(ready=replace(READY, better_swarm=BETTER), settings=DISMISSED)]
)
def test_there_is_no_suggestion_before_a_model_is_open_where_the_swarm_suits_it_and_once_dismissed(state: State) -> None:
    enabled = state.settings is None or state.settings.window.suggest_swarm
    assert suggestion(state, enabled=enabled) is None
    assert "First steps" not in describe(state, 0.0)


def test_the_command_that_it_names_chooses_first_steps(tmp_path: Path) -> None:
    words = shlex.split(SENTENCE.split("`")[1])
    assert main(["--home", str(tmp_path), *words[1:], "--yes"]) == 0
    assert joined_swarms.read(paths.Home(tmp_path).swarms).active == first_steps().digest.hex()


@pytest.mark.parametrize(
    ("model", "active", "dismissed", "suggested"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "", False, True),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "", True, False),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", first_steps().digest.hex(), False, False),
        ("starter", "", False, False),
    ],
)
def test_choosing_a_real_model_without_an_engine_says_so_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, active: str, dismissed: bool, suggested: bool
) -> None:
    home = paths.Home(tmp_path).prepare()
    joined_swarms.write(home.swarms, JoinedSwarms(active=active))
    settings.change(home.settings, {"window.suggest_swarm": not dismissed})
    assert main(["--home", str(tmp_path), "model", "choose", model]) == 0
    assert (SENTENCE in capsys.readouterr().out.splitlines()) == suggested


def test_the_list_of_swarms_names_both_shipped_ones_with_their_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path), "swarm", "list"]) == 0
    light, steps = capsys.readouterr().out.split("\n\n")
    assert light.splitlines()[0] == "First light"
    assert light.endswith(f"\n  {first_swarm().digest.hex()}")
    assert steps.splitlines()[:2] == ["First steps", "  Alice's family: easy"]
    assert steps.endswith(f"\n  {first_steps().digest.hex()}\n")
