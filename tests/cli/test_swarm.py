"""`waggle swarm` without an engine: creates a swarm from a file, previews one, and refuses in words."""

from pathlib import Path

import pytest

from tasks.question_file.questions import sums
from waggle.cli.main import main
from waggle.core import paths
from waggle.tasks import charter as charters
from waggle.tasks.graders import graders
from waggle.tasks.piece_store import PieceStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_bytes(sums(60))
    return path


def test_a_swarm_is_created_from_a_file_and_specialties(tmp_path, file, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = paths.Home(tmp_path / "home")
    words = ["swarm", "create", "--home", str(home.root), "--name", "Ours", "--questions", file.name, "--private"]
    assert main([*words, "--specialty", "bf:easy,gcd:hard", "--grader", "number", "--tolerance", "0.5"]) == 0
    printed = capsys.readouterr()
    charter = charters.read(home.charters / f"{printed.out.strip()}.json", expected=bytes.fromhex(printed.out.strip()))
    assert [specialty.title for specialty in charter.specialties][2:] == ["sums"]
    assert (charter.specialties[2].file.grader, charter.specialties[2].file.tolerance) == ("number", 0.5)
    assert charter.is_private
    assert PieceStore(home.questions, charter).missing() == ()
    assert "60 own questions, Number" in printed.err


def test_a_file_is_previewed_in_words(tmp_path, file, capsys):
    assert main(["swarm", "preview", str(file), "--home", str(tmp_path / "home")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("60 questions")
    assert "Graded as: number" in printed
    assert "What is 1 + 1?\n-> 2\n" in printed


def test_help_and_docs_name_the_graders(capsys):
    with pytest.raises(SystemExit):
        main(["swarm", "create", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert f"how answers are graded: {', '.join(graders())} " in words
    assert words.count("Counts for every --questions.") == 2
    docs = (Path(__file__).parents[2] / "docs/questions.md").read_text(encoding="utf-8")
    for name, grader in graders().items():
        assert f"| {grader.title} | `{name}` |" in docs


def test_a_slip_is_named_in_a_preview_and_where_a_tolerance_is_set(tmp_path, file, capsys):
    file.write_bytes(sums(60) + b'\n{"question": "What is 1 / 0?", "answer": "undefined"}')
    words = ["swarm", "preview", str(file), "--home", str(tmp_path / "home")]
    assert main(words) == 0
    assert '60 of 61 answers are numbers; line 61 is not: "undefined".' in capsys.readouterr().out
    assert main([*words, "--tolerance", "0.5"]) != 0
    printed = capsys.readouterr().err
    assert 'sums.jsonl, line 61: the answer "undefined" is not a number' in printed
    assert "leave the tolerance out" in printed


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["preview", "nobody.csv"], "nobody.csv cannot be read"),
        (["preview", "few.jsonl"], "at least 20"),
        (["preview", "few.jsonl", "--try-model"], "No engine is running"),
        (["create", "--name", "Ours", "--questions", "few.jsonl"], "at least 20"),
        (["create", "--name", "Ours"], "needs questions"),
        (["create", "--name", "Ours", "--specialty", "bf:simple"], "is no specialty"),
        (["create", "--name", " ", "--specialty", "bf:easy"], "needs a name"),
        (["join", "waggle:nothing"], "not an invite link"),
        (["join", "nobody.waggle"], "is no invite, and no file with one: No such file"),
        (["join", "few.jsonl"], "There is no invite in that file."),
        (["join", "ab" * 32], "This swarm is not known here."),
        (["join", "First steps"], "Add --yes if you want it."),
        (["forget", "ab" * 32], "This swarm is not known here."),
        (["invite"], "No engine is running"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(tmp_path, capsys, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.jsonl").write_bytes(sums(10))
    assert main(["--home", str(tmp_path / "home"), "swarm", *words]) != 0
    assert reason in capsys.readouterr().err
