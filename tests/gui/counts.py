"""What each surface says of a count at one State: pages, status bar, tray, `waggle status`, `waggle top`, status page, metrics.

A surface that says nothing of a count now is left out.
"""

import re

from PySide6.QtWidgets import QApplication

from waggle.cli.control import status as status_command
from waggle.cli.watch.view import panels
from waggle.cli.watch.words import round_line
from waggle.engine.services.training_figures import training_status
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.tray import tooltip
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.pages.progress.page import ProgressPage
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.swarms.swarm_card import SwarmCard
from waggle.gui.pages.you.page import YouPage
from waggle.gui.pages.you.share_card import share_card_figures
from waggle.network.web import training_metrics, training_page
from waggle.protocol.events import TrainingHistory
from waggle.protocol.figures.current import newest_score
from waggle.protocol.state import State

TOP = (panels.loop_title, panels.score_title, panels.reward_title, panels.peers_title, panels.figures)  # panels with counts
Counts = dict[str, dict[str, float]]  # by count, then by surface
TRAINING = r"^(\d+) (?:of [\d,]+ )?computers? train"
WORDS = {"one": 1, "nobody": 0, "only": 1}


def number_in(words: str, pattern: str) -> float | None:
    """The number, or the word for one, that the pattern's first group finds."""
    match = re.search(pattern, words)
    return None if match is None else float(WORDS.get(match[1], match[1].replace(",", "").replace("\u202f", "")))


class Surfaces:
    """The texts of all surfaces at the State of a window."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.state: State = window._store.state
        ready = self.state.ready
        assert ready is not None
        self.now = self.state.at
        for page in ("home", "peers", "progress", "swarms", "you"):
            window.show_page(page)
            for _ in range(4):
                QApplication.processEvents()
        pages = window.pages
        home, self.you = pages.of(HomePage), pages.of(YouPage)
        self.home, self.score, self.energy = home.sharing._here.text(), home.score.says.accessibleName(), home.cost.energy.words()
        self.peers, self.progress = pages.of(PeersPage)._line.words(), pages.of(ProgressPage)._line.words()
        cards = pages.of(SwarmsPage).findChildren(SwarmCard)
        self.swarm = next((card._members.words() for card in cards if card._swarm.active), "")
        self.bar = window.status._figures.words()
        self.tray = tooltip(self.state)
        self.status = status_command.describe(self.state, self.now)
        self.facts = status_command.facts(self.state)
        self.top = "\n".join(words(self.state).plain for words in TOP)
        score, members = newest_score(self.state), len(self.state.members)
        self.line = "".join(round_line(last, score, members) for last in self.state.rounds[-1:])
        training = training_status(self.state, ready, TrainingHistory(rounds=(), held_out=()))
        self.page, self.metrics = training_page.html(training), "\n".join(training_metrics.lines(training))

    def metric(self, name: str) -> float | None:
        return number_in(self.metrics, rf"(?m)^{name} (\S+)$")

    def counts(self) -> Counts:
        """Every count, from every surface that says it."""
        facts = self.facts
        score = facts["held_out"]
        by_count: dict[str, dict[str, float | None]] = {
            "peers": {
                "Home": number_in(self.home, TRAINING),
                "Peers": number_in(self.peers, TRAINING),
                "Swarms": _less_one(number_in(self.swarm, r"(\d+|only)(?: members, you included| you)")),
                "status bar": number_in(self.bar, r"(\d+) peers?"),
                "tray": number_in(self.tray, r"with (\d+) peers?"),
                "waggle status": number_in(self.status, r"with (\d+) peers?"),
                "weather": number_in(self.status, r"(\d+) peers?(?: online|,)"),
                "waggle status --json": float(facts["peers"]),
                "waggle top": number_in(self.top, r"Peers: (\d+) train"),
                "status page": number_in(self.page, r'<div class="figure">(\d+)</div><h2>peers? trains? with it'),
                "metrics": self.metric("waggle_node_training_peers"),
            },
            "round": {
                "status sentence": number_in(self.status, r"Training in .*, round (\d+)"),
                "tray": number_in(self.tray, r"round (\d+)"),
                "waggle top": number_in(self.top, r"Round (\d+)"),
                "status page": number_in(self.page, r'<div class="figure">(\d+)</div><h2>round<'),
            },
            "rounds that are finished": {
                "waggle status --json": float(facts["round"]),
                "chart of waggle top": number_in(self.top, r"of ([\d,]+) round"),
                "metrics": self.metric("waggle_node_round"),
            },
            "tokens a second": {
                "status bar": number_in(self.bar, r"([\d,]+) tokens/s"),
                "waggle status --json": _rounded(facts["tokens_per_second"]),
                "waggle top": number_in(self.top, r"([\d,]+)\s+tokens/s"),
                "status page": number_in(self.page, r'Tokens per second</td><td class="number">(\d+)'),
                "metrics": _rounded(self.metric("waggle_node_tokens_per_second")),
            },
            "new questions solved of 100": {
                "Home": number_in(self.score, r"solves (\d+) of 100"),
                "Progress": number_in(self.progress, r"gets (\d+) of 100"),
                "waggle status": _share(self.status, r"score: (\d+) of (?:a first )?(\d+)"),
                "waggle status --json": _rounded(100 * score.right / score.total if score else None),
                "waggle top": _share(self.top, r"Held-out score (\d+) of (\d+)"),
                "line of a round": _rounded(number_in(self.line, r"held-out +([\d.]+)%")),
                "status page": _share(self.page, r'<div class="note">(\d+) of (\d+), after'),
                "metrics": _rounded(_hundred(self.metric("waggle_node_held_out_ratio"))),
            },
        }
        return {count: {where: value for where, value in by.items() if value is not None} for count, by in by_count.items()}

    def contribution(self) -> Counts:
        """Answers, right ones and others since the first day, and the energy of today in Wh."""
        answers, right, learned, used = (card._value.text() for card in self.you._figures)
        shared = [figure for figure, _words in share_card_figures(self.state)]
        rounds = number_in(self.you._figures[0]._line.words(), r"in ([\d,]+) round")
        energy = self.facts["energy"]
        by: dict[str, dict[str, float | None]] = {
            "answers": {"You": _number(answers), "share card": _number(shared[0])},
            "right answers": {"You": _number(right), "share card": _number(shared[1])},
            "groups learned from": {"You": _number(learned)},
            "peers that fetched, ever": {"You": _number(used), "share card": _number(shared[2])},
            "rounds ever": {"You": rounds},
            "Wh today": {
                "Home": _watt_hours(self.energy), "You": _watt_hours(self.you._energy._lines[0].text()),
                "waggle status --json": None if energy is None else round(1000 * energy.kwh),
            },
        }  # fmt: skip
        return {count: {where: value for where, value in of.items() if value is not None} for count, of in by.items()}


def differences(counts: Counts) -> list[str]:
    """Each count on which two surfaces differ, with what each says."""
    return [f"{count}: {by}" for count, by in counts.items() if len(set(by.values())) > 1]


def _number(words: str) -> float | None:
    return number_in(words, r"^([\d,]+)$")


def _less_one(value: float | None) -> float | None:
    return None if value is None else value - 1


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(round(value))


def _share(words: str, pattern: str) -> float | None:
    match = re.search(pattern, words)
    return None if match is None else float(round(100 * int(match[1]) / int(match[2])))


def _watt_hours(words: str) -> float | None:
    """The first energy in a text; kWh have two places, so they are exact to 10 Wh."""
    match = re.search(r"([\d.]+) (k?)Wh", words)
    return None if match is None else round(float(match[1]) * (1000 if match[2] else 1))
