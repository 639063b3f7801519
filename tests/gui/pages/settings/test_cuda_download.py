"""CUDA on the page Settings: offered with its size, downloading, installed, or failed with a reason."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gui.recorded import ready
from waggle.core import cuda_download
from waggle.core.cuda_download import CudaPack
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.settings.cuda_download import CudaCard
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme

PACK = cuda_download.shipped_pack()
HALF = "import sys, time; print('[1300000000, 2500000000]', flush=True); time.sleep(60)"
REFUSED = "import sys; sys.exit('waggle: The package index cannot be reached.')"
ARRIVED = f"import pathlib, sys; pathlib.Path(sys.argv[1]).mkdir(); print([9, 9])  # {PACK.torch}"


@pytest.fixture
def view(theme: Theme, qtbot: QtBot, tmp_path: Path) -> Callable[..., CudaCard]:
    def make(*words: str, pack: CudaPack = PACK) -> CudaCard:
        cuda = CudaCard(theme, pack, tmp_path, [sys.executable, "-c", *words] if words else ())
        qtbot.addWidget(cuda)
        return cuda

    return make


def test_it_says_what_it_takes_before_anything_comes(view: Callable[..., CudaCard]) -> None:
    cuda = view()
    assert cuda.act.text() == "Download 2.6 GB"
    assert cuda._more.text().startswith("4.1 GB on the disk.")
    assert cuda.is_offered == cuda_download.DRIVER.exists()


def test_it_shows_how_far_it_is_and_a_stop_keeps_what_has_come(
    view: Callable[..., CudaCard], qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / f".downloading-{PACK.torch}").mkdir()
    cuda = view(HALF)
    assert cuda.is_offered
    assert cuda.act.text() == "Go on"
    assert not cuda.remove.isHidden()
    cuda.act.click()
    qtbot.waitUntil(lambda: cuda._says.text().startswith("1.3 GB of 2.5 GB are here"), timeout=20_000)
    assert cuda._bar.value() == 520
    assert cuda.act.text() == "Stop"
    cuda.act.click()
    assert not cuda.program.is_running
    assert cuda.act.text() == "Go on"
    assert cuda._problem.isHidden(), "a stop is no failure"


def test_what_went_wrong_is_said(view: Callable[..., CudaCard], qtbot: QtBot) -> None:
    cuda = view(REFUSED)
    with qtbot.waitSignal(cuda.program.ended, timeout=20_000):
        cuda.act.click()
    assert cuda._problem.text() == "The package index cannot be reached."
    assert cuda.act.text() == "Download 2.6 GB"


def test_once_it_is_here_it_can_only_be_removed(view: Callable[..., CudaCard], qtbot: QtBot, tmp_path: Path) -> None:
    cuda = view(ARRIVED, str(tmp_path / PACK.torch))
    with qtbot.waitSignal(cuda.program.ended, timeout=20_000):
        cuda.act.click()
    assert cuda._says.text() == "CUDA is installed. Waggle uses it from its next start."
    assert cuda.act.isHidden()
    assert not cuda.remove.isHidden()


@pytest.mark.parametrize(
    ("far", "offer"),
    [(False, "Settings offers to use your NVIDIA card"), (True, "There, waggle cuda --get uses the NVIDIA card")],
)
def test_a_card_of_another_computer_is_not_offered_a_download_to_this_one(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, far: bool, offer: str
) -> None:
    monkeypatch.setattr(cuda_download, "fits", lambda _pack: True)
    current = StateStore()
    window = MainWindow(PageContext(theme, store=current, settings=SettingsStore(None, far=far)))
    qtbot.addWidget(window)
    current.take(ready(device_reason=cuda_download.OFFERED))
    window.show_page("settings")
    settings = window.pages["settings"]
    assert isinstance(settings, SettingsPage)
    assert (settings.cuda is None) == far
    window.pages.of(HomePage).show_state(current.state, 0.0)
    assert window.pages.of(HomePage).hero._fact.text() == offer
