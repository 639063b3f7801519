"""A run is repeated from its file: real engines play the same rounds, and end with the same weights."""

import json
from pathlib import Path

import pytest

import waggle
from waggle import node
from waggle.cli import main
from waggle.core import paths
from waggle.engine.storage import run_file
from waggle.network.identity import keys

ROUNDS = 4
CHOSEN = {
    "swarm.solo": True, "learning.seed": 11, "learning.form_pay": "on", "learning.held_out_every": 2,
    "learning.held_out_questions": 1, "computer.threads": 1, "computer.priority": "normal", **node.AT_ANY_TIME,
}  # fmt: skip


@pytest.fixture(scope="module")
def environment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(waggle.__file__).parents[1]))
        yield


@pytest.fixture(scope="module")
def played(tmp_path_factory, environment) -> paths.Home:
    home = tmp_path_factory.mktemp("played")
    with node.run(home, CHOSEN, until_round=ROUNDS) as running:
        assert len(list(running.rounds())) == ROUNDS
    return paths.Home(home)


@pytest.fixture
def written(played, tmp_path, capsys) -> Path:
    file = tmp_path / "run.json"
    assert main.main(["repeat", str(file), "--write", "--home", str(played.root)]) == 0
    assert f"{ROUNDS} rounds, and no key" in capsys.readouterr().out
    return file


def test_every_round_the_scores_and_the_weights_are_the_same(written, tmp_path, capsys):
    assert sum(summary.taught for summary in run_file.read(written).rounds) > 0, "something was learned"
    assert main.main(["repeat", str(written), "--home", str(tmp_path / "home"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["same"], facts["rounds"], facts["same_weights"], facts["same_held_out"]) == (True, ROUNDS, True, True)
    second = run_file.run_of(paths.Home(tmp_path / "home"))
    assert second == run_file.read(written), "a run that was repeated is written as the same file"
    assert main.main(["repeat", str(written), "--home", str(tmp_path / "home")]) == 1
    assert "has rounds already" in capsys.readouterr().err


def test_another_seed_is_another_run(written, capsys):
    run = json.loads(written.read_text())
    run["settings"]["learning.seed"] = 12
    written.write_text(json.dumps(run))
    assert main.main(["repeat", str(written)]) == 1
    assert "Round 1 differs:" in capsys.readouterr().out


def test_the_file_has_the_seed_and_no_key(written, played):
    key = keys.load_or_create(played.identity)
    content = written.read_bytes()
    assert b'"learning.seed": 11' in content
    secret = played.identity.read_bytes()[4:36]
    assert secret not in content
    assert secret.hex().encode() not in content
    assert key.peer_id.hex().encode() not in content


def test_a_run_without_a_seed_cannot_be_written(tmp_path, environment, capsys):
    with node.run(tmp_path, CHOSEN | {"learning.seed": 0}, until_round=1) as running:
        list(running.rounds())
    assert main.main(["repeat", str(tmp_path / "run.json"), "--write", "--home", str(tmp_path)]) == 1
    assert "This run cannot be repeated." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"web.port": 80}, "web.port, which decides no round"), ({"tracking.wandb": "/tmp"}, "tracking.wandb, which decides"),
        ({"swarm.solo": False}, "a run with peers"), ({"learning.seed": "x"}, "learning.seed"),
    ],
)  # fmt: skip
def test_what_a_file_of_a_stranger_may_not_set_is_refused(written, change, words, capsys):
    run = json.loads(written.read_text())
    run["settings"] |= change
    written.write_text(json.dumps(run))
    assert main.main(["repeat", str(written)]) == 1
    assert words in capsys.readouterr().err


def test_what_is_no_run_is_refused_in_words(tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"format": 1}')
    assert main.main(["repeat", str(tmp_path / "run.json")]) == 1
    assert "is no file of a run" in capsys.readouterr().err
    assert main.main(["repeat", str(tmp_path / "none.json")]) == 1
    assert "cannot be read" in capsys.readouterr().err
