"""What is being opened is written down first: a death in the middle counts as failure, an orderly end and an error do not."""

import json
import shutil

import pytest

from waggle.core import paths
from waggle.core.errors import ModelMissing
from waggle.core.settings import ModelSettings
from waggle.engine.system import opening_note
from waggle.engine.system.opening_note import OpeningNote

UNFINISHED = []
A, B = ModelSettings(name="bees/a"), ModelSettings(folder="/bees/b")


@pytest.fixture
def home(tmp_path):
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(paths.starter(), tmp_path / "model")


def die_while_opening(home, model, folder) -> None:
    """As if the engine were killed in the middle: nothing after this point of it runs."""
    opening = OpeningNote(home).opening(model, folder)
    opening.__enter__()
    UNFINISHED.append(opening)  # or Python would end it


def test_a_model_that_was_opened_or_refused_leaves_no_note(home, folder):
    with OpeningNote(home).opening(A, folder):
        assert (home.root / "opening.json").exists()
    assert not (home.root / "opening.json").exists()
    with pytest.raises(RuntimeError), OpeningNote(home).opening(A, folder):
        raise RuntimeError
    assert not (home.root / "opening.json").exists()


def test_a_death_counts_as_failure_until_the_files_change_or_a_person_chooses(home, folder):
    die_while_opening(home, A, folder)
    OpeningNote(home).start(retry=False)
    for _ in range(2):
        assert OpeningNote(home).has_failed(A)
        with (
            pytest.raises(ModelMissing, match="The engine ended while it opened"),
            OpeningNote(home).opening(A, folder),
        ):
            pass
        OpeningNote(home).start(retry=False)
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with OpeningNote(home).opening(A, folder):
        pass
    assert not OpeningNote(home).has_failed(A)

    die_while_opening(home, A, folder)
    OpeningNote(home).start(retry=False)
    OpeningNote(home).forget_failure()
    with OpeningNote(home).opening(A, folder):
        pass


def test_another_model_is_opened_meanwhile_and_the_failure_is_remembered(home, folder):
    die_while_opening(home, A, folder)
    OpeningNote(home).start(retry=False)
    with OpeningNote(home).opening(B, folder):
        assert OpeningNote(home).has_failed(A)
    assert OpeningNote(home).has_failed(A)
    assert not OpeningNote(home).has_failed(B)


def test_a_kill_for_memory_leads_to_another_try_in_smaller_parts_first(home, folder):
    die_while_opening(home, A, folder)
    OpeningNote(home).start(retry=True)
    assert not OpeningNote(home).has_failed(A)


def test_an_engine_that_was_asked_to_end_and_is_killed_as_that_takes_long_blames_no_model(home, folder):
    die_while_opening(home, A, folder)
    OpeningNote(home).end()
    OpeningNote(home).start(retry=False)
    assert not OpeningNote(home).has_failed(A)


def test_after_a_power_cut_a_model_is_opened_once_more_and_fails_the_second_time(home, folder, monkeypatch):
    for boot, has_failed in (("second", False), ("third", True)):
        die_while_opening(home, A, folder)
        monkeypatch.setattr(opening_note, "boot_id", lambda boot=boot: boot)
        OpeningNote(home).start(retry=False)
        assert OpeningNote(home).has_failed(A) == has_failed, "twice is no chance"


def test_after_a_power_cut_a_death_counts(home, folder, monkeypatch):
    monkeypatch.setattr(opening_note, "boot_id", lambda: "first")
    die_while_opening(home, A, folder)
    monkeypatch.setattr(opening_note, "boot_id", lambda: "second")
    OpeningNote(home).start(retry=False)
    die_while_opening(home, A, folder)
    OpeningNote(home).start(retry=False)
    assert OpeningNote(home).has_failed(A)


def test_a_power_cut_is_forgotten_once_the_model_was_opened(home, folder, monkeypatch):
    for boot in ("first", "second", "third"):
        monkeypatch.setattr(opening_note, "boot_id", lambda boot=boot: boot)
        OpeningNote(home).start(retry=False)
        assert not OpeningNote(home).has_failed(A)
        with OpeningNote(home).opening(A, folder):
            pass
        die_while_opening(home, A, folder)


def test_the_present_start_of_the_computer_stays_the_same():
    assert opening_note.boot_id() == opening_note.boot_id() != ""


def test_a_note_of_an_earlier_version_counts_as_failure(home, folder):
    die_while_opening(home, A, folder)
    path = home.root / "opening.json"
    path.write_text(json.dumps({"opening": json.loads(path.read_bytes())["opening"]}))
    OpeningNote(home).start(retry=False)
    assert OpeningNote(home).has_failed(A)


def test_a_damaged_note_says_nothing(home, folder):
    (home.root / "opening.json").write_bytes(b"{")
    OpeningNote(home).start(retry=False)
    assert not OpeningNote(home).has_failed(A)
