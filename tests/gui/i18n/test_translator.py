"""Complete translations: every word of the window and every sentence from below it; pseudo shows what was missed."""

import datetime
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from gui.recorded import Run
from protocol.text.test_status_text import TABLE
from waggle.core.errors import CharterError
from waggle.core.message import Figure, Message, counted, in_turn
from waggle.core.settings import ScheduleSettings
from waggle.gui.application.controller import Controller
from waggle.gui.application.main_window import MainWindow
from waggle.gui.charts.plotted.axis import axis_ticks
from waggle.gui.charts.plotted.chart import LineChart
from waggle.gui.engine_client.replay import Replay
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import (
    ago,
    day,
    decimal,
    figure,
    percent,
    plural,
    reward,
    short_ago,
    size,
    tr,
    whole_day,
)
from waggle.gui.i18n.translator import Language
from waggle.gui.pages import PAGES
from waggle.gui.pages.live import question_card
from waggle.gui.pages.live.round_stepper import RoundStepper
from waggle.gui.pages.peers.peer_table import COLUMNS, STANDING_CHIPS, STANDING_COLUMN, WIDTHS
from waggle.gui.pages.progress.page import score_headline
from waggle.gui.pages.settings.rows import SECTIONS, make_control
from waggle.gui.state import shortcuts
from waggle.gui.state.settings_store import SettingsStore
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox, NumberField, Range
from waggle.gui.widgets.painted_widgets import StageProgress
from waggle.models.memory_fit import MemoryFit, TrainingMode
from waggle.network.messages import handshake
from waggle.network.messages.faults import Fault
from waggle.network.messages.handshake import Handshake
from waggle.protocol.events import CheckpointSetAside, HeldOutScore, PeerInfo, RoundSummary, ShownCompletion
from waggle.protocol.schedule import Readings, Wishes, decide, moment
from waggle.protocol.state import AnyEvent, Card, State, apply
from waggle.protocol.text.peer_text import standing_text
from waggle.protocol.text.status_text import sentence
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms
from waggle.tasks.catalogue import catalogue_entries
from waggle.tasks.charter import PROTOCOL
from waggle.tasks.specialties import waggle_datasets

ROOT = Path(__file__).resolve().parents[3]
TellWindow = Callable[..., MainWindow]
TUESDAY = time.mktime((2026, 1, 6, 6, 15, 0, 0, 0, -1))
AS_IT_IS = (
    "No room.",
    "Make some.",
    "There is no model in /media/usb/mine.",
    "Check its path.",
)  # the table's own words for a failure


def test_no_word_of_the_window_lacks_a_translation() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "packaging/translations.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("row", TABLE)
def test_every_sentence_is_told_in_german(row: tuple[State, str, str, str]) -> None:
    translator.use("de")
    status = sentence(row[0])
    for words in (status.word, status.says, status.detail):
        assert words in AS_IT_IS or tr(words) != words or words == "Problem"
    assert "Nothing was lost" not in tr(status.detail)


def test_every_specialty_that_is_offered_has_a_title_in_german() -> None:
    translator.use("de")
    assert [
        offer.title for offer in catalogue_entries() if offer.dataset not in waggle_datasets() and tr(offer.title) == offer.title
    ] == [
        "Kakurasu",
        "Sudoku",
        "Survo",
    ]


@pytest.mark.parametrize(
    "readings",
    [
        Readings(),
        Readings(
            idle_seconds=1,
            on_power=False,
            programs=frozenset({"steam"}),
            full_screen=True,
            metered=True,
            celsius=99,
            kwh_today=2.0,
        ),
        Readings(
            idle_seconds=999, on_power=True, programs=frozenset(), full_screen=False, metered=False, celsius=30, kwh_today=0.2
        ),
    ],
)
def test_every_rule_is_told_in_german(readings: Readings) -> None:
    translator.use("de")
    rules = ScheduleSettings(idle_minutes=3, not_while=("steam",), week=("." * 24,) * 6 + ("#" * 24,), kwh_a_day=1.0)
    for wishes in (Wishes(), Wishes(paused=True), Wishes(paused=True, until=2e9), Wishes(paused=True, until_away=True)):
        for tick in decide(rules, readings, wishes, 1_790_000_000.0).why:
            assert tr(tick.says) != tick.says
            assert not tick.ends or tr(tick.ends) != tick.ends


def test_a_pause_until_one_is_away_ends_after_a_while_without_anybody_in_german_too() -> None:
    translator.use("de")
    wishes = Wishes(paused=True, until_away=True)
    decision = decide(ScheduleSettings(idle_minutes=3), Readings(idle_seconds=1), wishes, 1_790_000_000.0)
    assert tr(decision.ends) == "Geht weiter, sobald du den Computer 3 min nicht benutzt hast."
    paused = State(phase="paused", round=7, decision=decision)
    assert tr(sentence(paused).detail) == f"Nichts ging verloren. {tr(decision.ends)}"


def test_one_address_is_one_in_german_too() -> None:
    translator.use("de")
    assert "(1 Adresse versucht)" in tr(sentence(State(phase="contributing", reach="connecting", seeds_tried=1)).detail)


@pytest.mark.skipif(sys.platform != "linux", reason="the system is told by its environment")
@pytest.mark.parametrize(
    ("locale", "read", "spoken"),
    [
        ("de_DE.UTF-8", "", "de"),
        ("de_AT.UTF-8", "en:de", "en"),
        ("fr_FR.UTF-8", "fr:de:en", "de"),
        ("fr_FR.UTF-8", "", "en"),
        ("C.UTF-8", "", "en"),
    ],
)
def test_the_systems_language_is_the_first_of_those_its_menus_are_read_in_that_is_spoken(
    locale: str, read: str, spoken: str
) -> None:
    code = "from waggle.gui.i18n import translator; print(*map(translator.language_of_setting, ('system', 'en', 'de', 'tlh')))"
    without = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    environment = without | {"LANG": locale, "PYTHONPATH": str(ROOT / "app")} | ({"LANGUAGE": read} if read else {})
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [spoken, "en", "de", "en"]


def test_the_page_of_settings_has_one_name_in_german() -> None:
    translator.use("de")
    name = tr("Settings")
    assert name in tr("Settings offers to use your NVIDIA card")
    assert name in tr("Change them on the page Settings.")


@pytest.mark.parametrize(("act", "other"), [("Mute", "Muted"), ("Block", "Blocked"), ("Pause list", "Resume list")])
def test_what_a_button_does_is_no_state_and_a_frozen_feed_no_stopped_engine_in_german(act: str, other: str) -> None:
    translator.use("de")
    assert tr(act).lower() not in (tr(other).lower(), tr(other.lower()).lower())


def test_it_is_the_person_who_joins_and_specialties_that_are_trained() -> None:
    translator.use("de")
    assert tr("Nothing has been joined yet.") == "Du bist noch nicht beigetreten."
    assert tr("The preview does not join yet. It shows:") == "Mit der Vorschau trittst du noch nicht bei. Sie zeigt:"
    assert tr("It trains on") == "Trainiert wird"


@pytest.mark.parametrize("word", [word for _, word, _ in STANDING_CHIPS.values()])
def test_how_a_peer_stands_is_not_cut_in_the_table_in_german(theme: Theme, word: str) -> None:
    translator.use("de")
    room = theme.px(WIDTHS[STANDING_COLUMN]) - theme.size["icon_small"] - 30  # beside the icon and between the edges
    assert QFontMetrics(theme.font("small")).horizontalAdvance(tr(word)) <= room


def test_names_inside_a_sentence_stay_as_they_are() -> None:
    translator.use("de")
    assert tr(Message("Training in %1, round %2.", "First light", 812)) == "Training in First light, Runde 812."
    peers = counted(3, "%n peer", "%n peers")
    assert tr(Message("Your model is %1, with %2.", Message("answering"), peers)) == "Dein Modell antwortet, mit 3 Peers."
    assert tr(Message("A sentence nobody translated.")) == "A sentence nobody translated."
    words = tr(Message("The engine speaks protocol %1, this window %2.", 9, 8))
    assert words == "Die Engine spricht Protokoll 9, dieses Fenster 8."


@pytest.mark.parametrize(("title", "width"), list(zip(COLUMNS[1:], WIDTHS[1:], strict=True)))
def test_the_heads_of_the_table_of_peers_are_not_cut_in_german(theme: Theme, title: str, width: int) -> None:
    translator.use("de")
    assert QFontMetrics(theme.font("small")).horizontalAdvance(tr(title)) <= theme.px(width) - 16


def test_what_was_used_and_taken_and_peers_who_use_in_german() -> None:
    translator.use("de")
    assert (tr("You used"), tr("You gave")) == ("Genutzt", "Gegeben")
    assert plural(6, "", " and shared with %n peers") == " und mit 6 Peers geteilt"
    assert {tr("Standing"), tr("Preview")} == {"Ruf", "Ansehen"}, "which is what one does with an invite"


def test_hundredths_are_written_as_is_the_custom(theme: Theme, qtbot: QtBot) -> None:
    all_words = [form for language in ("de", "pl") for forms in translator.read(language).values() for form in forms]  # type: ignore[arg-type]
    signs = [words[max(0, match.start() - 1)] for words in all_words for match in re.finditer(r"%(?![\dn])", words)]
    assert set(signs) == {"\u202f", "-"}
    rows = [row for part in SECTIONS for row in part.rows if row.key in ("window.text_percent", "computer.cpu_percent")]
    for spoken, gap in (("en", ""), ("de", "\u202f")):
        translator.use(spoken)  # type: ignore[arg-type]
        assert (percent(0.256), percent(0.256, 1)) == (f"26{gap}%", f"25{'.' if spoken == 'en' else ','}6{gap}%")
        for row in rows:
            widget = make_control(theme, row)
            qtbot.addWidget(widget)
            widget.show_value(90)
            assert (widget.currentText() if isinstance(widget, ComboBox) else widget.text()) == f"90{gap}%"


@pytest.mark.parametrize("answer", ["Monday", "3 days", "1,234", "5. Home", "It is plugged in.", "%1 or %2", "it is running."])
def test_what_a_model_answered_stays_as_it_is(answer: str) -> None:
    for spoken, wrong in (("en", "wrong"), ("de", "falsch")):
        translator.use(spoken)  # type: ignore[arg-type]
        assert tr(Message("wrong: %1", answer)) == f"{wrong}: {answer}"


@pytest.mark.parametrize("name", ["Home", "Calendar", "3 days", "Maths. Fun", "A. B. Calm", "First %2", "the swarms"])
def test_what_people_named_stays_as_it_is(name: str) -> None:
    translator.use("de")
    assert tr(Message("Training in %1, round %2.", name, 3)) == f"Training in {name}, Runde 3."
    assert tr(Message("%1 is running.", name)) == f"{name} läuft."


@pytest.mark.parametrize(
    "reason",
    [
        "A part of the journal is damaged, or another version of Waggle wrote it.", "It is incomplete.",
        "The rounds that it follows are lost.",
    ],
)  # fmt: skip
def test_what_was_set_aside_is_told_with_its_reason(reason: str) -> None:
    translator.use("de")
    (warned,) = apply(State(), CheckpointSetAside(folder="damaged", reason=Message(reason))).warnings
    assert tr(warned.title) == f"Ein gespeicherter Stand war nicht lesbar: {tr(reason)}"
    assert tr(reason) != reason
    assert tr(warned.advice) == "Der davor wurde benutzt."


def test_figures_are_written_as_is_the_custom() -> None:
    translator.use("de")
    assert figure(12_480) == "12\u202f480"
    card = Card(key="k", specialty="Logic", question="q", completions=(), round=12_479, at=0.0)
    assert "12\u202f480" in question_card._time_text(card, State(), 12.0)
    assert decimal(0.256, 2) == "0,26"
    assert decimal(-0.24, 2) == "\u22120,24"
    assert size(1_200_000) == "1,2 MB"
    short = Message("Needs at least %1 GB of memory; Waggle may use %2 GB", Figure(1234.5, 1), Figure(6.8, 1))
    assert "1\u202f234,5 GB" in tr(short)
    assert reward(ShownCompletion(text="", judged=True, reward=0.25)) == "0,25"
    assert plural(1, "%n peer", "%n peers") == "1 Peer"
    assert short_ago(0.0, 12.0) == "12 s"


def test_thousands_in_what_is_told_are_no_decimals_and_what_is_no_figure_stays() -> None:
    peer = PeerInfo(id="x", name="Brisk Otter", trusted=True, received=1_234_567, used=1248, rejected=2001)
    translator.use("de")
    words = tr(standing_text(peer, 0.0))
    assert words == "Bewährt. 1\u202f248 seiner 1\u202f234\u202f567 Beispiele genutzt. 2\u202f001 mit Regelverstoß."
    for name in ("a1,248", "1,24", "1,248", "1248,", "1.5"):
        assert tr(Message("%1 is running.", name)) == f"{name} läuft."


@pytest.mark.parametrize("reason", [*Fault])
def test_why_something_was_refused_is_told_in_german(reason: str) -> None:
    translator.use("de")
    peer = PeerInfo(id="x", name="Brisk Otter", reason=Message(reason), doubted_until=60.0)
    words = tr(standing_text(peer, 0.0))
    assert words.startswith("Er brach eine Regel (")
    assert reason not in words


def test_what_stands_behind_the_sentence_of_another_is_told_in_german() -> None:
    translator.use("de")
    back = in_turn(Message("%1 is trained instead.", "Qwen/Tiny"), Message("Choose another on the page Models."))
    assert tr(back) == "Stattdessen wird Qwen/Tiny trainiert. Wähle ein anderes auf der Seite Modelle."
    assert tr(in_turn("", Message("Try again later."), "")) == "Versuche es später noch einmal."


def test_the_amount_decides_the_words() -> None:
    for spoken, single, many in (("en", "1 peer", "1,234 peers"), ("de", "1 Peer", "1\u202f234 Peers")):
        translator.use(spoken)  # type: ignore[arg-type]
        assert [tr(counted(amount, "%n peer", "%n peers")) for amount in (1, 1234)] == [single, many]


@pytest.mark.parametrize(
    ("amount", "polish"),
    [(1, "1 peer"), (2, "2 peery"), (5, "5 peerów"), (12, "12 peerów"), (22, "22 peery"), (25, "25 peerów"), (0, "0 peerów")],
)
def test_polish_has_three_forms_of_a_plural(amount: int, polish: str) -> None:
    translator.use("pl")
    assert plural(amount, "%n peer", "%n peers") == polish
    assert tr(counted(amount, "%n peer", "%n peers")) == polish


def test_a_day_is_named_in_the_windows_language_whatever_the_systems() -> None:
    at = time.mktime((2026, 5, 4, 18, 40, 0, 0, 0, -1))
    assert (whole_day(datetime.date(2026, 5, 4)), day(datetime.date(2026, 5, 4))) == ("4 May 2026", "4 May")
    assert ago(at, at + 90_000) == "4 May, 18:40"
    assert axis_ticks("clock", (at, at + 4 * 86_400))[0][1].startswith("5 May")
    translator.use("de")
    assert whole_day(datetime.date(2026, 5, 4)) == "4. Mai 2026"
    assert ago(at, at + 90_000) == "4. Mai, 18:40"
    assert axis_ticks("clock", (at, at + 9 * 86_400))[0][1] == "5. Mai"


def test_the_verdict_on_progress_is_german() -> None:
    translator.use("de")
    scores = (HeldOutScore(round=0, at=0, right=1, total=100), HeldOutScore(round=216, at=0, right=24, total=100))
    played = RoundSummary(round=216, at=0.0, reward=0.4, solved=0.3, seconds=2.0)
    words = "Nach 216 Runden beantwortet dein Modell 24 von 100 neuen Fragen richtig"
    assert score_headline(State(rounds=(played,), held_out=scores)) == f"{words}; am Anfang waren es 1"
    assert score_headline(State(rounds=(played,), held_out=scores[1:])) == words
    assert "verdient dein Modell eine Belohnung von 0,40;" in score_headline(State(rounds=(played,)))


@pytest.mark.parametrize(("spoken", "text"), [("en", "0.35 kWh"), ("de", "0,35 kWh")])
def test_point_and_comma_both_stand_before_decimals(theme: Theme, qtbot: QtBot, spoken: Language, text: str) -> None:
    translator.use(spoken)
    for typed in ("0.35", "0,35"):
        number = NumberField(theme, "Energy", Range(minimum=0, maximum=1000, unit="kWh", whole=False))
        qtbot.addWidget(number)
        number.selectAll()
        qtbot.keyClicks(number, typed)
        number.interpretText()
        assert (number.value(), number.text()) == (0.35, text), "and never 35"


def test_what_is_on_screen_was_given_to_a_translator(window_told: TellWindow, written: list[AnyEvent]) -> None:
    translator.use("pseudo")
    window = window_told(list(Run(rounds=2).all_events()))
    for page in PAGES:
        window.show_page(page)
        widgets = [each for kind in (QLabel, QAbstractButton) for each in window.findChildren(kind) if each.isVisible()]
        plain = {each.text() for each in widgets if each.text().isascii() and any(letter.isalpha() for letter in each.text())}
        assert {words for words in plain if "Ctrl" not in words} <= {"Waggle", "F1"}, page


def test_the_mirrored_language_swaps_the_sides(qapp: QApplication, window_told: TellWindow, written: list[AnyEvent]) -> None:
    translator.use("mirrored")
    window = window_told(written)
    assert qapp.layoutDirection() == Qt.LayoutDirection.RightToLeft
    assert window.rail.x() > window.width() / 2
    window.show_page("progress")
    for _ in range(3):
        qapp.processEvents()
    assert window.rail.property("side") == "right"
    chart = window.findChildren(LineChart)[0]
    axes = [chart.getAxis("left").sceneBoundingRect().left(), chart.getViewBox().sceneBoundingRect().left()]
    assert axes == sorted(axes), "time runs from left to right all the same"


def inked(widget: QWidget, colour: QColor) -> list[int]:
    """The x positions of a widget's picture at which a pixel has this colour."""
    picture = widget.grab().toImage()
    return [x for x in range(picture.width()) if any(picture.pixelColor(x, y) == colour for y in range(picture.height()))]


@pytest.mark.parametrize("spoken", ["en", "mirrored"])
def test_what_is_painted_by_hand_begins_where_lines_begin(qapp: QApplication, theme: Theme, spoken: Language) -> None:
    translator.use(spoken)
    stepper, stages = RoundStepper(theme), StageProgress(theme)
    stepper.resize(800, 40)
    stepper.show_state(State(phase="contributing", stage="draw"))
    stages.show_stage(1, 6)
    for widget in (stepper, stages):
        places = inked(widget, theme.colour("accent"))
        assert places
        first = max(places) < widget.width() / 2 if spoken == "en" else min(places) > widget.width() / 2
        assert first, widget
    button = Button(theme, "Pause", join="left")
    assert button.property("join") == ("left" if spoken == "en" else "right")


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", "does not support")  # the platform without a screen says so
def test_language_theme_and_size_are_switched_live_and_nothing_is_lost(theme: Theme, recording: Path, qtbot: QtBot) -> None:
    choices = SettingsStore(None)
    shell = Controller(theme, StateStore(), Replay(recording), choices)
    shell.begin("settings")
    choices.set({"window.language": "de"})
    assert shell.window.page == "settings"
    assert shell.window.isVisible()
    assert shell.window.rail._buttons["settings"].text() == "Optionen"
    choices.set({"window.theme": "dark", "window.text_percent": 150})
    assert theme.mode == "dark"
    assert theme.font("body").pixelSize() == 21
    choices.set({"window.language": "en", "window.text_percent": 100, "window.theme": "light"})
    assert tr("Settings") == "Settings"
    window = shell.window
    shiboken6.delete(shell)
    shiboken6.delete(window)


@pytest.mark.parametrize(
    ("message", "german"),
    [
        (
            Message("This computer's clock is %1 fast.", Message("%1 days", Figure(2))),
            "Die Uhr dieses Computers geht 2 Tage vor.",
        ),
        (Message("Paused until %1.", moment(TUESDAY, TUESDAY - 86_400)), "Pausiert bis Dienstag 06:15."),
        (Message("Paused until %1.", moment(TUESDAY, 0.0)), "Pausiert bis 6. Jan 2026 06:15."),
        (Message("Another engine is running for this folder."), "Für diesen Ordner läuft schon eine Engine."),
        (
            MemoryFit(TrainingMode("lora", "bfloat16", recompute=True, parts=4), 3_100_000_000, 3_000_000_000, 40).sentence,
            "Passt vielleicht nicht: etwa 40 Antworten je Stunde oder mehr, 3,1 von 2,5 GB Arbeitsspeicher. Adapter (LoRA) "
            "werden in bfloat16 trainiert. Der Speicher ist knapp: Was sonst zusammen läuft, wird in 4 Teile geteilt.",
        ),
    ],
)
def test_errors_warnings_and_fits_are_told_in_german(message: Message, german: str) -> None:
    translator.use("de")
    assert tr(message) == german


@pytest.mark.parametrize("version", ["9.0.1", ""])
@pytest.mark.parametrize(
    ("protocol", "german"),
    [
        (PROTOCOL + 1, "das neuer ist: Aktualisiere dieses Waggle, um mit ihm zu trainieren."),
        (PROTOCOL - 1, "das älter ist: Er muss aktualisiert werden, um mit diesem hier zu trainieren."),
        (PROTOCOL, "Er trainiert unter einer anderen Charta (01010101): Einer von beiden muss mit der Einladung des anderen "
         "beitreten."),
    ],
)  # fmt: skip
def test_why_a_peer_cannot_be_trained_with_is_told_in_german(protocol: int, version: str, german: str) -> None:
    translator.use("de")
    refusal = handshake.refusal(Handshake(protocol, version, b"\x01" * 32), bytes(32))
    words = tr(standing_text(PeerInfo(id="x", name="Brisk Otter", refusal=refusal), 0.0))
    runs = f"Bei ihm läuft {f'Waggle {version}' if version else 'ein anderes Waggle'}, "
    assert words == (german if protocol == PROTOCOL else runs + german)


@pytest.mark.parametrize(
    ("ours", "german"),
    [
        (PROTOCOL - 1, "Dieser Schwarm braucht ein neueres Waggle: Aktualisiere dieses hier."),
        (
            PROTOCOL + 1,
            "Zu seinen Fragen gehörten falsche Antworten, und Mitglieder einigen sich jetzt auf geprüfte Stufen. "
            "Lege ihn neu an und schicke seinen Mitgliedern eine neue Einladung.",
        ),
    ],
)
def test_a_charter_of_another_protocol_is_refused_in_german(monkeypatch: pytest.MonkeyPatch, ours: int, german: str) -> None:
    translator.use("de")
    document = charters.encode(shipped_swarms.first_swarm())
    monkeypatch.setattr(charters, "PROTOCOL", ours)
    with pytest.raises(CharterError) as refused:
        charters.decode(document)
    assert tr(refused.value.advice) == german


def test_keys_are_written_as_the_keyboard_has_them() -> None:
    assert shortcuts.native_text(shortcuts.PAUSE, shortcuts.BLOCK) == "Ctrl+P, Ctrl+B"
    translator.use("de")
    assert shortcuts.native_text(shortcuts.PAUSE, shortcuts.BLOCK) == "Strg+P, Strg+B"
