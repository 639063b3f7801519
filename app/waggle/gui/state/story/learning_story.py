"""What Home says about learning: the held-out score, whether sharing helps, and the skills. Pure functions of the State."""

from collections.abc import Sequence

import msgspec

from waggle.core.confidence_interval import interval_of
from waggle.gui.i18n.formatting import decimal, figure, plural, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.state import chart_series
from waggle.gui.state.measured_curves import clipped, first_round, measured_curves
from waggle.gui.state.story.namesakes import namesakes, short_name
from waggle.protocol.events import HeldOutScore, PeerInfo, Phase
from waggle.protocol.figures.current import newest_score
from waggle.protocol.state import HALTED_PHASES, State

TRAINING_PHASES: tuple[Phase, ...] = ("contributing", "finishing")
FEW = 2  # scores that make a curve
UNBROKEN = "\u00a0"  # a space at which no line ends


class ScoreText(msgspec.Struct, frozen=True):
    """A sentence whose span from `start` is what a person looks for, and a second one with the figures behind it."""

    says: str
    start: int = 0
    length: int = 0
    detail: str = ""


def exams(state: State) -> list[list[HeldOutScore]]:
    """The scores of each set of questions, in order."""
    return chart_series.by_question_set([score for score in chart_series.scores(state) if score.total])


def of_hundred(score: HeldOutScore) -> str:
    return decimal(100 * score.right / score.total, 0)


def score_text(state: State, *, brief: bool = False) -> ScoreText:
    """How many new questions the model solves now, and how many it solved at first; `brief`: that stands in the detail."""
    groups = exams(state)
    if not groups or (state.ready is not None and newest_score(state) is None):  # or none on questions of this swarm
        if state.phase == "preparing" and not state.waits_for_choice:
            return ScoreText(tr("Your model is getting ready."))
        if waits := why_unavailable(state):
            return ScoreText(waits)
        return ScoreText(tr("Your model is taking its first test."), detail=test_words(state) or tr("It takes a few seconds."))
    first, last = groups[-1][0], groups[-1][-1]
    if last.early:
        words, count = tr("Your model solves %1 questions of a short test."), _count(last)
        began, detail = figure(first.right), _early_detail(last)
    else:
        words, count = tr("Your model solves %1 new questions."), tr("%1 of 100").replace("%1", of_hundred(last))
        began, detail = of_hundred(first), _detail(last, _next_test(state, last), brief=brief)
    beginning = ""
    if short := _short_test_before(groups):
        beginning = tr("It began at about %2.").replace("%2", of_hundred(short))
    elif first is not last:
        beginning = tr("It began at %2.").replace("%2", began)
    if brief:
        return _with_span(words, count, detail=f"{beginning} {detail}".strip())
    return _with_span(f"{words} {beginning.replace(' ', UNBROKEN)}".strip(), count, detail=detail)


def _short_test_before(groups: Sequence[Sequence[HeldOutScore]]) -> HeldOutScore | None:
    """The first score of the short tests that came before the full ones, if these ask about the same specialties."""
    *_, before, last = ((), *groups)
    if not before or not before[0].early or last[0].early:
        return None
    return before[0] if before[0].by_specialty.keys() == last[0].by_specialty.keys() else None


def test_words(state: State) -> str:
    """How far the test under way is; empty before its first answer."""
    if state.test is None:
        return ""
    words = tr("%1 of %2 questions answered.")
    return words.replace("%1", figure(state.test.done)).replace("%2", figure(state.test.total))


def _with_span(words: str, span: str, *, detail: str) -> ScoreText:
    start = words.index("%1")
    return ScoreText(words.replace("%1", span), start, len(span), detail)


def _count(score: HeldOutScore) -> str:
    return tr("%1 of %2").replace("%1", figure(score.right)).replace("%2", figure(score.total))


def _next_test(state: State, last: HeldOutScore) -> int | None:
    """The rounds after which the next test comes; None while nothing trains, if tests come by time, or if it is not known."""
    if state.ready is None or not state.ready.test_every or state.phase not in TRAINING_PHASES:
        return None
    number = (last.round // state.ready.test_every + 1) * state.ready.test_every
    return number if number >= state.round else None


def _detail(score: HeldOutScore, after: int | None, *, brief: bool) -> str:
    """The figures of a test, and when the next one comes."""
    words = plural(score.round, "%1 right in the test after %n round", "%1 right in the test after %n rounds")
    if not score.round:
        words = tr("%1 right in the test before its first round")
    soon = f" {tr('(next after %1)').replace('%1', figure(after))}" if after is not None else ""
    return f"{words.replace('%1', _count(score))}{soon}." + ("" if brief else f" {tr('It never trains on these questions.')}")


def _early_detail(score: HeldOutScore) -> str:
    low, high = (decimal(100 * share, 0) for share in interval_of(score.right, score.total))
    return (
        tr("With so few questions, it may really be %1 to %2 of 100. A full test follows.").replace("%1", low).replace("%2", high)
    )


def has_curve(state: State) -> bool:
    """Whether there are enough scores for a curve."""
    return sum(map(len, exams(state))) >= FEW


def company(state: State) -> tuple[PeerInfo, ...]:
    """The peers that the brief `company_words` count."""
    return state.members or state.connected


def company_words(state: State, *, brief: bool = False) -> str:
    """How many train with this node; else how many are connected; empty for nobody.

    Unless it is `brief`, also how many are connected but do not train, and how many took examples.
    """
    here, training, took = len(state.connected), len(state.members), len(state.takers)
    if not here:
        return ""
    halts = state.phase in HALTED_PHASES
    if training and halts and brief:
        words = plural(training, "%n computer trained with you", "%n computers trained with you")
    elif not training or halts:
        words = plural(here, "%n computer is connected", "%n computers are connected")
    elif brief or training == here:
        words = plural(training, "%n computer trains with you", "%n computers train with you")
    else:
        words = plural(training, "%n of %1 computers trains with you", "%n of %1 computers train with you")
        words = words.replace("%1", figure(here))
    return words + (plural(took, "; %n took your examples", "; %n took your examples") if took and not brief else "")


class Sharing(msgspec.Struct, frozen=True):
    """The answer to "Does sharing help?". `tone`: that of a label. `offers`: a page of the window and its part."""

    says: str
    detail: str
    tone: str = "text"
    offers: tuple[str, str] = ("", "")


INVITE, RACE = ("swarms", "invite"), ("playground", "race")


def sharing_text(state: State) -> Sharing:
    """Whether sharing helps, as far as that was measured."""
    if state.ready is None:
        return Sharing(tr("Too early to say"), why_unavailable(state))
    if state.reach == "solo":
        detail = tr("Your model trains on this computer only, by your choice.")
        return Sharing(tr("You train alone"), detail, offers=RACE)
    taught = [aha for aha in state.ahas if aha.origin]
    learned = any(summary.external for summary in chart_series.rounds(state))
    if not (taught or learned):
        lonely = state.reach in ("alone", "connected") and not state.members
        if lonely:
            return Sharing(tr("Too early to say"), tr("Nobody shares with you yet. Invite someone to find out."), offers=INVITE)
        return Sharing(tr("Too early to say"), tr("Nothing was learned from peers yet."))
    compared = _beside_alone(state)
    if compared is not None:
        return compared
    if not taught:
        return Sharing(tr("Not measured yet"), tr("It learned from examples of peers."), offers=RACE)
    specialties = max(len(state.ready.specialties), len(state.ahas))
    words = tr("In %1 of %2 specialties, a peer was right first. Your model might have got there alone, too.")
    words = words.replace("%1", figure(len(taught))).replace("%2", figure(specialties))
    return Sharing(tr("Not measured yet"), words, offers=RACE)


def _beside_alone(state: State) -> Sharing | None:
    """The score beside that of the same model after as many rounds alone, which was measured elsewhere; None without one."""
    curves, groups = measured_curves(state), exams(state)
    if curves is None or not groups or groups[-1][-1].early:
        return None
    last = groups[-1][-1]
    played = last.round - first_round(groups)
    if not 0 < played <= curves.rounds[-1]:
        return None
    _, shares = clipped(curves.rounds, curves.alone, played)
    alone, mine = shares[-1], last.right / last.total
    low, high = interval_of(last.right, last.total)
    if low <= alone <= high:
        words = tr("%1 of 100 with peers, %2 alone after as many rounds. The difference may be chance.")
        words = words.replace("%1", of_hundred(last)).replace("%2", decimal(100 * alone, 0))
        return Sharing(tr("Too early to say"), words, offers=RACE)
    points = decimal(abs(100 * (mine - alone)), 0)
    says = tr("%1 of 100 more than alone") if mine > alone else tr("%1 of 100 fewer than alone")
    words = tr("The same model alone solved %1 of 100 after as many rounds, in the mean of %2 measured runs.")
    words = words.replace("%1", decimal(100 * alone, 0)).replace("%2", figure(curves.runs))
    return Sharing(says.replace("%1", points), words, "good" if mine > alone else "text", RACE)


class Skill(msgspec.Struct, frozen=True):
    """A specialty: right held-out answers of how many, and who taught it. `total` 0: not tested; `teacher` None: nobody yet."""

    title: str
    right: int
    total: int
    teacher: str | None = None  # by its `short_name`; empty: found by itself
    solved_in: int = 0  # the round of the first right answer

    @property
    def share(self) -> float:
        return self.right / self.total if self.total else 0.0


def skills(state: State) -> tuple[Skill, ...]:
    """The specialties of the swarm in its order, by the newest test that counted them; without an engine, those of that test."""
    groups = exams(state)
    tested = next((score.by_specialty for score in reversed(groups[-1] if groups else []) if score.by_specialty), {})
    several = namesakes(state.peers.values(), state.ahas)
    ahas = {aha.specialty: (short_name(aha.name, aha.origin, several) if aha.origin else "", aha.round) for aha in state.ahas}
    titles = [specialty.title for specialty in state.ready.specialties] if state.ready is not None else list(tested)
    return tuple(Skill(title, *tested.get(title, (0, 0)), *ahas.get(title, ())) for title in titles)
