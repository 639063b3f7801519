"""Screenshots of every page in every theme and size, and in every state.

    PYTHONPATH=app:tests python -m pictures.screenshots RECORDING FOLDER

Set QT_SCALE_FACTOR=2 for a dense screen. They show recorded events, events that a window creates itself, and invented peers
for their standings.
"""

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from pictures import staged
from pictures.event_loop import application_with_coroutines
from waggle.core import paths
from waggle.core.message import Message, counted, in_turn, unpacked_message
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.core.settings import ModelSettings, Settings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.state import chart_series
from waggle.gui.state.event_log import EventLog
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.protocol import events, json_lines
from waggle.protocol.events_models import ModelChanged, ModelUnavailable
from waggle.protocol.events_swarms import KnownSwarms, SwarmUndecided
from waggle.protocol.state import AnyEvent, State, apply
from waggle.protocol.text.status_text import SAFE

SIZES = ((1280, 800), (1024, 640))
THEMES: tuple[ThemeName, ...] = ("light", "dark", "high_contrast")
HERE = paths.Home(Path("/home/anna/.local/share/waggle"))  # which is on no computer that takes the pictures
Story = Sequence[AnyEvent]


def _until(story: Story, kind: type[AnyEvent], *, count: int = 1) -> Story:
    places = [i for i, event in enumerate(story) if isinstance(event, kind)]
    return story[: places[min(count, len(places)) - 1] + 1] if places else story


def starting(story: Story) -> Story:
    return _until(story, events.Preparing, count=3)


def _downloading(story: Story) -> Story:
    return [
        *starting(story),
        events.Downloading(model="Qwen/Qwen2.5-0.5B-Instruct", done=412_000_000, total=980_000_000, seconds_left=360.0),
    ]


def _asking(story: Story) -> Story:
    changed = ModelChanged(model="Qwen2.5 0.5B", rounds=120, fits=True, is_whole=False)
    return [*starting(story), changed]


def _model_away(story: Story) -> Story:
    folder = "/media/anna/usb/SmolLM2-360M"
    advice = Message("Check its path, and whether its disk is connected.")
    away = ModelUnavailable(folder=folder, reason=Message("There is no model in %1.", folder), advice=advice)
    known: State = functools.reduce(apply, story, State())
    history = events.TrainingHistory(rounds=known.rounds, held_out=tuple(chart_series.scores(known)), ahas=known.ahas)
    return [*starting(story), away, history]


def _undecided(story: Story) -> Story:
    lost = events.Warned(
        title=Message("The list of your swarms was damaged. Waggle found your swarms in other files."),
        advice=Message("The old one is kept beside it as %1.", "swarms.damaged"),
        page="swarms",
        at=story[-1].at,
    )
    known = next(event for event in story if isinstance(event, KnownSwarms))
    home = replace(known.swarms[0], charter="ab" * 32, name="Anna's home", shipped=False, private=True, known=True, active=False)
    unknown = replace(known, swarms=(*(replace(swarm, active=False) for swarm in known.swarms), home))
    return [*starting(story), lost, SwarmUndecided(why="unknown", known=("Anna's home (private)", "First light")), unknown]


def _begun(story: Story) -> Story:
    """While the first test is taken."""
    before = _until(story, events.PhaseChanged)
    return [*before, events.HeldOutProgress(done=96, total=270, at=before[-1].at)]


def _paused(story: Story) -> Story:
    last = story[-1]
    drawn = [event.round for event in story if isinstance(event, events.QuestionsDrawn)]
    return [*story, events.PhaseChanged(phase="paused", round=drawn[-1] if drawn else 0, until=last.at + 3600, at=last.at)]


def _gone(story: Story) -> Story:
    return [*story, events.EngineGone(code=9, restarts=3, wait=15.0, at=story[-1].at)]


def failed(story: Story) -> Story:
    """Of a model that is larger than the starter."""
    larger = Settings(model=ModelSettings(name="Qwen/Qwen2.5-0.5B-Instruct"))
    problem = events.EngineFailed(
        title=Message("Training stopped %1 times in a row.", 4),
        advice=in_turn(Message("This computer may have too little memory for this model."), SAFE),
        short_of_memory=True,
        at=story[-1].at + 90 if story else 90.0,  # after three more tries
    )
    return [*story, events.SettingsChanged(settings=larger, at=problem.at), problem]


def _warned(story: Story) -> Story:
    limit = counted(
        1,
        "Waggle removed a downloaded model to stay under your limit of %1 GB.",
        "Waggle removed %n downloaded models to stay under your limit of %1 GB.",
        "20",
    )
    remedy = counted(1, "You can download it again.", "You can download them again.")
    removed = in_turn(Message("Removed: %1.", "SmolLM2-360M-Instruct"), remedy)
    return [*story, events.Warned(title=limit, advice=removed, page="disk", at=story[-1].at)]


STANDINGS: dict[str, dict[str, object]] = {  # of invented peers, except for the sentence of each
    "Brisk Otter": {
        "model": "Qwen2.5 0.5B", "received": 1248, "useful": 396, "used": 341, "taken": 1301, "trusted": True,
    },
    "Clever Wren": {"connection": "lan", "delay_ms": 2.0, "received": 120, "useful": 101, "used": 5, "taken": 88},
    "Tall Juniper": {"connection": "relay", "delay_ms": 96.0, "received": 64, "used": 17, "choice": "muted"},
    "Rapid Vole": {"received": 31, "rejected": 3, "reason": "not the payload that was announced", "doubted_until": 240.0},
    "Mossy Badger": {"refusal": "runs Waggle 0.3.0, which is newer: update this Waggle to train with it"},
    "Patient Fern": {"refusal": "trains under another charter (5f0c21aa): one of the two must join by the other's invite"},
    "Silver Birch": {"received": 22, "used": 9, "taken": 40, "choice": "blocked"},
    "Humble Newt": {"connection": "gone", "received": 90, "useful": 41, "used": 22, "taken": 71, "trusted": True},
    "Immeasurably Thoughtful Hippopotamus": {"model": "a-very-long-name-of-a-model-7B-instruct", "taken": 3},
}  # fmt: skip


REFUSALS = {  # groups by peer and reason
    "Brisk Otter": {"teaches_nothing": 44, "too_long": 8, "unfamiliar": 3},
    "Clever Wren": {"teaches_nothing": 96},
}


def identity_of(name: str) -> str:
    """A peer id that looks like one of a real key, for an invented peer."""
    return text_of(PEER_ID_PREFIX + hashlib.sha256(name.encode()).digest())


def with_peers(story: Story) -> Story:
    now = story[-1].at
    plain = {"model": "Starter 0.8M", "round": 180, "mean_reward": 0.31, "delay_ms": 34.0, "seen_at": now}
    standings = [{**plain, **fields, "id": identity_of(name), "name": name} for name, fields in STANDINGS.items()]
    for fields in standings:
        if fields.get("connection") == "gone":
            fields["seen_at"] = now - 5400
    peers = [msgspec.convert(fields, events.PeerInfo, dec_hook=unpacked_message) for fields in standings]
    doubts = [replace(peer, doubted_until=peer.doubted_until and now + peer.doubted_until) for peer in peers]
    refused = {identity_of(name): by_reason for name, by_reason in REFUSALS.items()}
    gathered = events.GroupsGathered(round=180, local=4, external=4, waiting=12, refused_by_peer=refused, at=now)
    dropped = [
        events.RecordRejected(origin=identity_of("Rapid Vole"), reason=reason, count=count, at=now)
        for reason, count in (("not the payload that was announced", 1), ("reserved question", 2))
    ]
    return _agreeing([*story, gathered, *(events.PeerChanged(peer=peer, at=now) for peer in doubts), *dropped])


def _agreeing(story: Story) -> Story:
    """The story, and after it counts of the peers that really played and of the days that agree with the invented peers."""
    state = State()
    for event in story:
        state = apply(state, event)
    invented = {identity_of(name) for name in STANDINGS}
    real = [peer for peer in state.peers.values() if peer.id not in invented]
    if state.days is None or not any(peer.used for peer in real):
        return story
    used = state.days.all.learned - sum(peer.used for peer in state.peers.values() if peer.id in invented)
    before = sum(peer.used for peer in real)
    corrected = [replace(peer, used=peer.used * used // before) for peer in real if peer.used]
    corrected[0] = replace(corrected[0], used=corrected[0].used + used - sum(peer.used for peer in corrected))
    fetched = [peer.groups_pulled for peer in state.peers.values() if peer.groups_pulled]
    now = story[-1].at
    days = replace(state.days, used_by=len(fetched), groups_pulled=sum(fetched), at=now)
    return [*story, *(events.PeerChanged(peer=peer, at=now) for peer in corrected), days]


STATES: dict[str, tuple[Callable[[Story], Story], Sequence[str]]] = {
    "nothing": (lambda story: [], ("home",)),
    "starting": (starting, ("home", "live")),
    "downloading": (_downloading, ("home",)),
    "asking": (_asking, ("home",)),
    "undecided": (_undecided, ("home", "swarms")),
    "model-away": (_model_away, ("home", "models")),
    "begun": (_begun, tuple(PAGES)),
    "paused": (_paused, ("home",)),
    "gone": (_gone, ("home",)),
    "failed": (failed, ("home", "live")),
    "warned": (_warned, ("home",)),
}


def window_of(theme: Theme, story: Sequence[AnyEvent], *, replay: bool = True) -> MainWindow:
    """A window that has received these events, from a recording or as if from an engine on this computer."""
    current, journal = StateStore(), EventLog()
    current.tell_time_by_events()
    host = EngineHost(home=HERE, can_start=lambda: current.state.problem is not None)
    client = EngineClient(lambda _command: True)
    current.applied.connect(client.take)
    window = MainWindow(PageContext(theme, store=current, event_log=journal, engine=host, client=client))
    for event in story:
        current.take(event)
        journal.take(event)
    if replay:
        window.show_replay()
    window.show()
    return window


def pictures(theme: Theme, recording: Path, folder: Path) -> Iterator[Path]:
    """Take all screenshots; yields each file when it is written."""
    story = [
        event for event in json_lines.recording(recording) if event is not None and not isinstance(event, events.EngineStopped)
    ]
    window = window_of(theme, story)
    for theme_name in THEMES:
        theme.use(theme_name)
        for size in SIZES:
            window.resize(*size)
            for page in PAGES:
                yield _take(window, page, folder / f"{page}-{theme_name}-{size[0]}x{size[1]}.png")
    theme.use("light")
    for state, (edit, pages) in STATES.items():
        window.hide()
        window = window_of(theme, edit(story))
        for page in pages:
            yield _take(window, page, folder / f"state-{state}-{page}.png")
    window.hide()
    yield from _standings(theme, with_peers(story), folder)
    yield from _staged(theme, story, folder)


def _standings(theme: Theme, story: Story, folder: Path) -> Iterator[Path]:
    """Peers in every standing, one of them selected."""
    window = window_of(theme, story, replay=False)
    window.show_page("peers")
    for size in SIZES:
        window.resize(*size)
        for theme_name in THEMES:
            theme.use(theme_name)
            window.pages.of(PeersPage).choose(identity_of("Brisk Otter"))
            yield _take(window, "peers", folder / f"chosen-{theme_name}-{size[0]}x{size[1]}.png")
    theme.use("light")
    for name in STANDINGS:
        window.pages.of(PeersPage).choose(identity_of(name))
        yield _take(window, "peers", folder / f"chosen-{name.split()[1].lower()}.png")
    window.hide()


def _staged(theme: Theme, story: Story, folder: Path) -> Iterator[Path]:
    """Try it and the race, in every state."""
    shows = {"race": (staged.show_race, staged.RACES), "chat": (staged.show_talk, staged.TALKS)}
    for theme_name in THEMES[:2]:
        theme.use(theme_name)
        for size in SIZES:
            for kind, (show, states) in shows.items():
                for state in states:
                    window = window_of(theme, story, replay=False)
                    window.resize(*size)
                    show(window, state)
                    yield _grab(window, folder / f"{kind}-{state}-{theme_name}-{size[0]}x{size[1]}.png")
                    window.hide()


def _take(window: MainWindow, page: str, path: Path) -> Path:
    window.show_page(page)
    return _grab(window, path)


def _grab(window: MainWindow, path: Path) -> Path:
    for _ in range(4):  # layouts settle in the second pass
        QApplication.processEvents()
    scale = window.devicePixelRatio()
    if scale != 1:
        path = path.with_stem(f"{path.stem}@{scale:g}x")
    window.grab().save(str(path))
    return path


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    application_with_coroutines()
    theme = Theme("light")
    theme.apply()
    for path in pictures(theme, Path(arguments[0]), folder):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
