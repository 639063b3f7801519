"""The one suggestion on Home: what a person may do next. A pure function of the State."""

import msgspec

from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.i18n.placeholders import RESTING
from waggle.gui.state import chart_series
from waggle.gui.state.story.namesakes import namesakes, short_name
from waggle.protocol.events import UNTAGGED, Aha
from waggle.protocol.state import ROUNDS, State

LEARNED = 0.1  # a mean reward, and a share of right answers, that an untrained model does not reach
CAPABLE = 0.2  # a share of right held-out answers from which a model is worth keeping
FRESH = 600.0  # seconds for which a first right answer is news


class NextStep(msgspec.Struct, frozen=True):
    """A headline, a sentence about it, and a button that shows a page of the window, and a part of it."""

    title: str
    says: str
    button: str
    page: str
    part: str = ""


def has_learned(state: State) -> bool:
    """Whether the model gives some right answers, so that what is said about an untrained one no longer applies."""
    known = chart_series.rounds(state)
    rewards = [summary.reward for summary in known if summary.round > known[-1].round - ROUNDS]
    earned = chart_series.trend(rewards, chart_series.trend_width(len(rewards)))[-1] if rewards else 0.0
    return max(_share(state), earned) > LEARNED


def _share(state: State) -> float:
    scores = chart_series.scores(state)
    return scores[-1].right / scores[-1].total if scores and scores[-1].total else 0.0


def next_step(state: State, now: float) -> NextStep | None:
    """What to do next; None while the engine cannot be asked."""
    if state.ready is None or state.phase in RESTING:
        return None
    learned = has_learned(state)
    newest = max(state.ahas, key=lambda aha: aha.at, default=None)
    if newest is not None and now - newest.at < FRESH and learned:
        return _solved(newest, state)
    if not learned:
        return _first_climb(state)
    if state.reach in ("alone", "connected") and not state.members:
        words = tr("Sharing needs two. An invite is a link or a QR code, and costs nothing.")
        return NextStep(tr("Invite a friend"), words, tr("Invite someone"), "swarms", "invite")
    if state.tried is None:
        words = tr("Answer a puzzle yourself, and see what your model says to the same one.")
        return NextStep(tr("Try your model"), words, tr("Try it"), "playground", "question")
    if state.exported is None and _share(state) > CAPABLE:
        words = tr("What it has learned fits in a folder that other programs can open.")
        return NextStep(tr("Keep your model"), words, tr("Export it"), "models")
    words = tr("Two small swarms on this computer: one shares, one does not. It takes two minutes.")
    return NextStep(tr("See what sharing does"), words, tr("Start a race"), "playground", "race")


def _solved(aha: Aha, state: State) -> NextStep:
    words = tr("%1 is new: it found its first right answer by itself.")
    if aha.origin:
        words = tr("%1 is new: it was right for the first time after learning from %2.")
    words = words.replace("%1", tr(one_line(aha.specialty)))
    words = words.replace("%2", short_name(aha.name, aha.origin, namesakes(state.peers.values(), state.ahas)))
    return NextStep(tr("Try its newest specialty"), words, tr("Try it"), "playground", "question")


def _first_climb(state: State) -> NextStep:
    """What a beginner's flat curve means."""
    assert state.ready is not None
    button = tr("Watch it try")
    if state.test is not None and not chart_series.scores(state):
        words = tr("It shows where your model begins, so that you see what training adds.")
        return NextStep(tr("What this test is for"), words, tr("See the steps of a round"), "live")
    if state.ready.prompt_form.why == "starter" or any(
        answer.reason == UNTAGGED for card in state.cards if card.mine for answer in card.completions
    ):
        words = tr("It often finds the answer but does not mark it as one, so it earns nothing. It learns that first.")
        return NextStep(tr("Why it begins so low"), words, button, "live")
    note = tr(state.ready.model_note)
    words = note or tr("It learns from the few answers that are right. Until there are some, its score stays low.")
    return NextStep(tr("The first climb takes a while"), words, button, "live")
