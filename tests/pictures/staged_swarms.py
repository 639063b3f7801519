"""Screenshots of the two swarms that come with Waggle: Welcome, Swarms, an invite, and the suggestion on Home and Models.

PYTHONPATH=app:tests python -m pictures.staged_swarms FOLDER [LANGUAGE ...] [NAME ...]
"""

import asyncio
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import shiboken6
from msgspec.structs import replace

from gui.answers import answer
from pictures.event_loop import application_with_coroutines
from pictures.matrix import example
from pictures.screenshots import window_of
from pictures.staged_models import FRESH
from waggle.core import paths
from waggle.core.settings import Settings
from waggle.engine.services.swarms import invites
from waggle.engine.services.swarms.better_swarm import swarm_to_begin_in
from waggle.engine.services.swarms.swarms import CurrentSwarm, SwarmService
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.welcome.page import INVITED, SWARM, WelcomePage
from waggle.gui.state.measured_curves import all_measured
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.network.messages import invite
from waggle.protocol import commands, events
from waggle.protocol.events_models import ModelDetails, ModelList
from waggle.protocol.events_swarms import InviteWritten, KnownSwarms
from waggle.protocol.state import AnyEvent, Snapshot
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_steps, first_swarm

SIZES = ((1024, 600), (1440, 900))
ADDRESS = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEgvd5bMHRHbb7DZDqQx8xF4CJN4gL5j1xHgCX3MZYwvk"
THEMES: tuple[ThemeName, ...] = ("light", "dark")
STEPS = first_steps().digest.hex()
SMOLLM2 = ModelDetails(kind="hub", name="HuggingFaceTB/SmolLM2-135M-Instruct", bytes=273_000_000, active=True, rounds=12)
MODELS = ModelList(
    models=(SMOLLM2, replace(FRESH.models[0], active=False)), cache="/cache", free=62_800_000_000, suggested=FRESH.suggested
)
OFFER = replace(FRESH.suggested[0], swarm=swarm_to_begin_in(FRESH.suggested[0].weights))


def listed(here: Charter) -> KnownSwarms:
    """What an engine in this swarm lists on a new home."""

    async def addresses() -> list[str]:
        return []

    with tempfile.TemporaryDirectory() as folder:
        service = SwarmService(
            paths.Home(Path(folder)).prepare(), Settings(), restart=lambda reason, back: None, change=lambda values: lambda: None,
            current=lambda: CurrentSwarm(here, addresses),
        )  # fmt: skip
        with ThreadPoolExecutor(1) as pool:  # this thread may have the loop of a window
            (known,) = pool.submit(asyncio.run, service.obey(commands.ListSwarms(id="1"))).result()
    assert isinstance(known, KnownSwarms)
    return known


def real_model(here: Charter) -> list[AnyEvent]:
    """The example, with a real model in one of the shipped swarms."""

    def in_it(ready: events.Ready) -> events.Ready:
        return replace(
            ready, swarm=here.name, charter=here.digest.hex(), model="SmolLM2 135M", model_note="",
            better_swarm=swarm_to_begin_in(SMOLLM2_WEIGHTS) if here == first_swarm() else None,
            specialties=tuple(
                events.SpecialtyInfo(dataset=specialty.dataset, title=specialty.title) for specialty in here.specialties
            ),
        )  # fmt: skip

    story: list[AnyEvent] = []
    for event in example():
        if isinstance(event, events.Ready):
            event = in_it(event)
        elif isinstance(event, Snapshot) and event.state.ready is not None:
            event = replace(event, state=replace(event.state, ready=in_it(event.state.ready)))
        story.append(event)
    at = story[-1].at
    return [*story, replace(MODELS, at=at), replace(listed(here), at=at)]


SMOLLM2_WEIGHTS = FRESH.suggested[0].weights


def _welcome(window: MainWindow, theme: Theme, *, real: bool, place: int | None = None) -> None:
    window.cover(welcome := WelcomePage(theme))
    if real:
        welcome.offer_model(OFFER)
        welcome.train_real.click()
    if place is not None:
        welcome._choose(place)
    welcome._go(SWARM)


def _swarms(window: MainWindow, part: str) -> None:
    window.show_page("swarms", part)
    window._store.flush()


def _invite(window: MainWindow) -> None:
    """Show a finished invite, as the engine writes it, with an address of nobody."""
    window.show_page("swarms", "invite")
    window._store.flush()
    link = invite.write(invite.Invite(charter=first_swarm().digest, seeds=(ADDRESS,)))
    answer(window, InviteWritten(charter=first_swarm().digest.hex(), link=link, reach=invites._reach((ADDRESS,))))


def climbing() -> list[AnyEvent]:
    """A real model in First steps from its first round on, a little above the curve of models alone."""
    (curves,) = all_measured()
    ready = next(event for event in real_model(first_steps()) if isinstance(event, events.Ready))
    specialties = tuple(
        events.SpecialtyInfo(dataset=each.dataset, title=each.title, levels=each.levels) for each in first_steps().specialties
    )
    story: list[AnyEvent] = [
        replace(ready, model="SmolLM2-135M-Instruct 134.5M", parameters=curves.weights, specialties=specialties, round=0),
        events.PhaseChanged(phase="contributing", round=0, at=1.0),
    ]
    for number in range(72):
        share = float(np.interp(number, curves.rounds, curves.alone)) * 1.08 + 0.03 * math.sin(number)
        summary = events.RoundSummary(
            round=number, at=60.0 * number, reward=max(0.0, share), solved=max(0.0, share), seconds=50.0, completions=64
        )
        story.append(events.RoundCompleted(summary=summary, at=60.0 * number))
        if number % 10 == 0:
            right = round(80 * max(0.03, share))
            score = events.HeldOutScore(round=number, at=60.0 * number, right=right, total=80)
            story.append(events.HeldOutMeasured(score=score, at=60.0 * number))
    return story


Staging = tuple[Callable[[], Sequence[AnyEvent]], Callable[[MainWindow, Theme], None]]
STAGED: Mapping[str, Staging] = {
    "welcome-starter": (list, lambda window, theme: _welcome(window, theme, real=False)),
    "welcome-real": (list, lambda window, theme: _welcome(window, theme, real=True)),
    "welcome-invited": (list, lambda window, theme: _welcome(window, theme, real=True, place=INVITED)),
    "swarms": (lambda: real_model(first_swarm()), lambda window, theme: _swarms(window, "list")),
    "swarms-steps": (lambda: real_model(first_steps()), lambda window, theme: _swarms(window, "list")),
    "preview": (lambda: real_model(first_swarm()), lambda window, theme: _swarms(window, STEPS)),
    "invite": (lambda: real_model(first_swarm()), lambda window, theme: _invite(window)),
    "progress": (climbing, lambda window, theme: window.show_page("progress")),
    "home": (lambda: real_model(first_swarm()), lambda window, theme: window.show_page("home")),
    "models": (lambda: real_model(first_swarm()), lambda window, theme: window.show_page("models")),
}


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    application_with_coroutines()
    languages: Sequence[Language] = [name for name in ("en", "de") if name in arguments[1:]] or ["en"]  # type: ignore[list-item]
    only = [name for name in arguments[1:] if name in STAGED]
    for language in languages:
        translator.use(language)
        theme = Theme("light")
        for name, (story, show) in STAGED.items():
            if only and name not in only:
                continue
            for theme_name in THEMES:
                theme.use(theme_name)
                for size in SIZES:
                    window = window_of(theme, story(), replay=False)
                    window.resize(*size)
                    show(window, theme)
                    path = folder / f"{name}-{language}-{theme_name}-{size[0]}x{size[1]}.png"
                    screenshot_when_still(window).save(str(path))
                    sys.stdout.write(f"{path}\n")
                    shiboken6.delete(window)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
