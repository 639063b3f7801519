"""The one suggestion on Home: what a person may do next. A pure function of the State."""

import msgspec

from waggle.gui.i18n.formatting import one_line, percent, tr
from waggle.gui.i18n.placeholders import RESTING
from waggle.gui.state import chart_series
from waggle.gui.state.story.learning_story import skills
from waggle.gui.state.story.namesakes import namesakes, short_name
from waggle.protocol.events import UNTAGGED, Aha
from waggle.protocol.state import ROUNDS, State

LEARNED = 0.1  # a mean reward, and a share of right answers, that an untrained model does not reach
CAPABLE = 0.2  # a share of right held-out answers from which a model is worth keeping
FRESH = 600.0  # seconds for which a first right answer is news, unless a test has counted the specialty since


class NextStep(msgspec.Struct, frozen=True):
    """A headline, a sentence about it, and a button that shows a page of the window, and a part of it.

    `explains`: it says what a person sees, and suggests nothing.
    """

    title: str
    says: str
    button: str
    page: str
    part: str = ""
    explains: bool = False


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
    if newest is not None and now - newest.at < FRESH and learned and not _is_tested_since(newest, state):
        return _solved(newest, state)
    if not learned:
        return _first_climb(state)
    if state.reach in ("alone", "connected") and not state.members:
        words = tr("Sharing needs two. An invite is a link or a QR code, and costs nothing.")
        return NextStep(tr("Invite a friend"), words, tr("Invite someone"), "swarms", "invite")
    if state.tried is None:
        words = " ".join((tr("You answer a puzzle, then your model does."), *_best(state)))
        return NextStep(tr("Try your model"), words, tr("Try it"), "playground", "question")
    if state.exported is None and _share(state) > CAPABLE:
        words = tr("What it has learned fits in a folder that other programs can open.")
        return NextStep(tr("Keep your model"), words, tr("Export it"), "models")
    words = tr("Two small swarms on this computer: one shares, one does not. It takes two minutes.")
    return NextStep(tr("See what sharing does"), words, tr("Start a race"), "playground", "race")


def _solved(aha: Aha, state: State) -> NextStep:
    """A first right answer, and what to expect of the next ones."""
    teacher = short_name(aha.name, aha.origin, namesakes(state.peers.values(), state.ahas)) if aha.origin else ""
    words = tr("%1 was right first.").replace("%1", teacher) if teacher else tr("It got there by itself.")
    title = tr("Its first right answer in %1").replace("%1", tr(one_line(aha.specialty)))
    return NextStep(
        title, f"{words} {tr('Expect it to be wrong more often than right.')}", tr("Try it"), "playground", "question"
    )


def _is_tested_since(aha: Aha, state: State) -> bool:
    """Whether a test shows how often the model is right there now."""
    return any(score.round > aha.round and aha.specialty in score.by_specialty for score in chart_series.scores(state))


def _best(state: State) -> list[str]:
    """A sentence about what the model does best, if it does that well."""
    best = max(skills(state), key=lambda skill: skill.share, default=None)
    if best is None or best.share < CAPABLE:
        return []
    words = tr("It is best at %1 (%2 right).")
    return [words.replace("%1", tr(one_line(best.title))).replace("%2", percent(best.share))]


def _first_climb(state: State) -> NextStep:
    """What a beginner's flat curve means."""
    assert state.ready is not None
    button = tr("Watch it try")
    if state.test is not None and not chart_series.scores(state):
        words = tr("It shows where your model begins, so that you see what training adds.")
        return NextStep(tr("Why a test first"), words, tr("See the steps of a round"), "live", explains=True)
    if state.ready.prompt_form.why == "starter" or any(
        answer.reason == UNTAGGED for card in state.cards if card.mine for answer in card.completions
    ):
        words = tr("Only a marked answer counts. Otherwise, a model could list guesses until one is right.")
        return NextStep(tr("Why it begins so low"), words, button, "live", explains=True)
    note = tr(state.ready.model_note)
    words = note or tr("It learns from the few answers that are right. Until there are some, its score stays low.")
    return NextStep(tr("The first climb takes a while"), words, button, "live", explains=True)
