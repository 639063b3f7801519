"""Every home that an earlier version left, or that this one leaves, starts with the starter of today and with the next one.

If a test fails because you changed `resources/starter`, copy the starter of before to `resources/former_starters/VERSION`.
"""

import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from end_to_end.programs import Engine, running
from heritage.continuation import Person
from heritage.starter import RecordedStarter
from models.storage.test_ownership import change_configuration, retrain
from product_copy import copy_product
from waggle.models.storage import identity, starters
from waggle.protocol import events
from waggle.protocol.events_models import ModelChanged

HERE = Path(__file__).parent
VERSIONS = sorted(path.parent.name for path in HERE.glob("*/person.tar.xz"))


def same(_resources: Path) -> None:
    """The starter of today."""


def another_byte(resources: Path) -> None:
    """A version of transformers is noted in the starter's configuration, and nobody thinks of former starters."""
    change_configuration(resources / "starter")


def another_starter(resources: Path) -> None:
    """The starter is trained anew, and the one of before ships among the former ones."""
    former = resources / "former_starters" / "before"
    former.mkdir()
    for path in (resources / "starter").iterdir():
        (former / path.name).write_bytes(path.read_bytes())
    retrain(resources / "starter")


CHANGES = [same, another_byte, another_starter]


def play(home: Path, product: Path | None = None, **environment: str) -> events.Ready:
    """Start an engine with the starter, of a product where it is copied to, and let it play a round."""
    place = {"PYTHONPATH": str(product / "app")} if product else {}
    with running(Engine(home, "swarm.solo=true", environment={**environment, **place})) as engine:
        ready = engine.wait(events.Ready, 120)
        engine.wait_round(ready.round, 120)
        assert engine.end() == 0, engine.errors
        assert not [event for event in engine.all_events if isinstance(event, ModelChanged | events.EngineFailed)]
    return ready


@contextmanager
def coming(change: Callable[[Path], None], folder: Path) -> Iterator[Path]:
    """A copy of the product whose starter has changed."""
    copy_product(folder)
    change(folder / "resources")
    yield folder


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="the folders were made where homes are found by HOME")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_home_of_an_earlier_version_goes_on_with_the_coming_starter(
    version: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    with tarfile.open(HERE / version / "person.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    person, was = Person(tmp_path / "person"), _starter_of(version)
    (person.home / "asked.json").unlink()  # a pause
    saved = json.loads(max((person.home / "checkpoints").glob("r*/state.json")).read_bytes())
    with coming(change, tmp_path / "product") as product:
        ready = play(person.home, product, **person.environment)
    assert ready.round >= saved["round"]
    assert ready.base == saved["base"] == was.base


@pytest.mark.timeout(600)
@pytest.mark.parametrize("change", CHANGES)
def test_so_does_a_home_of_today(change: Callable[[Path], None], tmp_path: Path) -> None:
    first = play(tmp_path / "home")
    with coming(change, tmp_path / "product") as product:
        second = play(tmp_path / "home", product)
    assert (second.round > first.round, second.base) == (True, first.base)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("with_identity", [True, False])
def test_the_starter_of_every_version_is_still_here(version: str, with_identity: bool, tmp_path: Path) -> None:
    """Its numbers and words are, and so is each byte by which checkpoints without an identity know it."""
    starter = _starter_of(version)
    state: dict[str, Any] = {"round": 3, "step": 0, "epoch": 0, "charter": "", "base": starter.base}
    if with_identity:
        state |= {"base": "0" * 32, "identity": msgspec.to_builtins(starter.identity)}
    (tmp_path / "r00000003").mkdir()
    (tmp_path / "r00000003" / "state.json").write_text(json.dumps(state))
    assert identity.read(starters.starter_of(tmp_path)).is_same_model(starter.identity)


def _starter_of(version: str) -> RecordedStarter:
    return msgspec.json.decode((HERE / version / "starter.json").read_bytes(), type=RecordedStarter)
