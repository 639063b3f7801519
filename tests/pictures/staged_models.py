"""Invented events for screenshots of the page Models in every state, with the models that Waggle really suggests.

PYTHONPATH=app:tests python -m pictures.staged_models FOLDER [LANGUAGE ...]
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import shiboken6

from gui.answers import answer
from pictures.event_loop import application_with_coroutines
from pictures.matrix import example
from pictures.screenshots import window_of
from waggle.core.message import Figure, Message, in_turn
from waggle.core.settings import Settings
from waggle.engine.runtime import model_offers
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.models.model_words import FITS
from waggle.gui.pages.models.page import ModelsPage
from waggle.gui.theme.theme import Theme, ThemeName
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.storage.hub_search import HubModel
from waggle.protocol import events
from waggle.protocol.events_models import HubResults, ModelChoice, ModelDetails, ModelList
from waggle.protocol.state import AnyEvent

SIZES = ((1024, 600), (1440, 900), (2560, 1440))
THEMES: tuple[ThemeName, ...] = ("light", "dark")
LAPTOP = DeviceCapacity(free=int(9e9), speeds={"float32": 1.2e11, "bfloat16": 2.4e11})
SMOLLM, QWEN, GEMMA = "HuggingFaceTB/SmolLM2-360M-Instruct", "Qwen/Qwen3-0.6B", "google/gemma-3-270m-it"
IN_FLOAT32 = "All weights are trained in float32."
STARTER = ModelDetails(
    kind="starter",
    bytes=5_800_000,
    active=True,
    rounds=217,
    fit=in_turn(Message(FITS, Figure(380_000), Figure(0.7, 1), Figure(7.6, 1)), Message(IN_FLOAT32)),
)
SUGGESTED = model_offers.suggested(LAPTOP, Settings())
TRAINED = ModelDetails(
    kind="hub",
    name=SUGGESTED[0].name,
    bytes=273_000_000,
    rounds=41,
    fit=SUGGESTED[0].fit,
)
PARTIAL = ModelDetails(kind="hub", name="Qwen/Qwen2.5-0.5B-Instruct", bytes=412_000_000, finished=False)
LONG = "a rather long name of a model that Anna trained herself"
MINE = ModelDetails(kind="folder", folder=f"/home/anna/models/{LONG}", bytes=988_000_000)
FRESH = ModelList(models=(STARTER,), cache="/cache", free=212_000_000_000, suggested=SUGGESTED)
USED = ModelList(models=(STARTER, TRAINED, PARTIAL, MINE), cache="/cache", free=62_800_000_000, suggested=SUGGESTED)
RESULTS = HubResults(words="qwen3", models=model_offers.of_hub((
    HubModel(QWEN, "apache-2.0", weights=751_632_384, size=1_503_264_768, downloads=9_412_330),
    HubModel("Qwen/Qwen3-8B", "apache-2.0", weights=8_190_735_360, size=16_381_470_720, downloads=4_800_112),
    HubModel("somebody/Qwen3-4B-with-a-name-that-is-longer-than-its-card-is-wide", weights=4_022_468_096, size=8_044_936_192,
             gated=True, downloads=88),
    HubModel("mlx-community/Qwen3-0.6B-4bit", "apache-2.0", weights=93_000_000, quantised=True, downloads=1),
), LAPTOP, SUGGESTED))  # fmt: skip


def _failed(name: str, title: Message, advice: Message) -> ModelChoice:
    return ModelChoice(name=name, stage="failed", title=title, advice=advice)


AWAY = _failed(
    SMOLLM,
    Message("Hugging Face cannot be reached, and %1 is not fully downloaded.", SMOLLM),
    Message("What was downloaded is kept. Try again when you are online."),
)
GATED = _failed(
    GEMMA,
    Message("%1 is given only to those who accepted its licence.", GEMMA),
    Message("Accept it on https://huggingface.co/%1, then give Waggle a token of yours with `waggle token`.", GEMMA),
)
LARGE = _failed(
    "Qwen/Qwen3-8B",
    Message(
        "This model does not fit: it needs at least %1 GB of memory, and Waggle may use %2 GB.",
        Figure(18.9, 1),
        Figure(7.6, 1),
        Message("%1%", Figure(85)),
    ),
    Message("Choose a smaller model, close other programs, or let Waggle use more memory in Settings."),
)
UNKNOWN = _failed(
    "somebody/odd",
    Message("Waggle cannot train models of the type %1.", "odd"),
    Message("Choose another language model from Hugging Face."),
)


def _typed(words: str) -> Callable[[ModelsPage], None]:
    def type_in(page: ModelsPage) -> None:
        page._field.edit.setText(words)
        page._field._submit()

    return type_in


def _nothing(_page: ModelsPage) -> None:
    pass


STATES: Mapping[str, tuple[Sequence[AnyEvent], Callable[[ModelsPage], None], Sequence[AnyEvent]]] = {
    "loading": ((), _nothing, ()),
    "fresh": ((FRESH,), _nothing, ()),
    "used": ((USED,), _nothing, ()),
    "asking": ((FRESH, ModelChoice(name=SMOLLM, stage="downloading")), _nothing, ()),
    "downloading": (
        (USED, ModelChoice(name=SMOLLM, stage="downloading", done=212_000_000, total=727_000_000, seconds_left=190.0)),
        _nothing,
        (),
    ),
    "converting": (
        (
            USED,
            ModelChoice(
                folder="/home/anna/Downloads/SmolLM2-135M-Instruct.Q4_1.gguf",
                stage="converting",
                done=83_000_000,
                total=269_000_000,
            ),
        ),
        _nothing,
        (),
    ),
    "checking": ((FRESH, ModelChoice(name=SMOLLM, stage="checking")), _nothing, ()),
    "away": ((FRESH, AWAY), _nothing, ()),
    "gated": ((FRESH, GATED), _nothing, ()),
    "large": ((FRESH, LARGE), _nothing, ()),
    "unknown": ((FRESH, UNKNOWN), _nothing, ()),
    "searching": ((FRESH,), _typed("qwen3"), ()),
    "results": ((FRESH,), _typed("qwen3"), (RESULTS,)),
    "none": ((FRESH,), _typed("bumblebee"), (HubResults(words="bumblebee", models=()),)),
    "wrong": ((FRESH,), _typed("https://example.org/model"), ()),
    "gguf": ((FRESH,), _typed("~/Downloads/Qwen3-0.6B-Q4_K_M.gguf"), ()),
    "folder": ((FRESH,), lambda page: page.show_part("/home/anna/models/my model"), ()),
    "off": ((USED, events.EngineStopped(round=217)), _nothing, ()),
}


def show_models(window: MainWindow, state: str) -> None:
    """Show the page Models in this state."""
    before, act, after = STATES[state]
    window.show_page("models")
    for event in before:
        window._store.take(event)
    window._store.flush()
    act(window.pages.of(ModelsPage))
    for event in after:
        answer(window, event)


def main(arguments: Sequence[str]) -> int:
    folder, languages = Path(arguments[0]), arguments[1:] or ("en", "de")
    folder.mkdir(parents=True, exist_ok=True)
    application_with_coroutines()
    theme = Theme("light")
    for spoken in languages:
        language: Language = spoken  # type: ignore[assignment]
        translator.use(language)
        for state in STATES:
            theme.use("light")
            window = window_of(theme, example(), replay=False)
            show_models(window, state)
            for theme_name in THEMES:
                theme.use(theme_name)
                for width, height in SIZES:
                    window.resize(width, height)
                    path = folder / f"models-{state}-{theme_name}-{spoken}-{width}.png"
                    screenshot_when_still(window).save(str(path))
                    sys.stdout.write(f"{path}\n")
            shiboken6.delete(window)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
