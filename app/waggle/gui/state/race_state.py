"""The state of a race of two practice swarms: a pure fold over its messages, and its description in words. No Qt."""

from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec
from msgspec.structs import replace

from waggle.core.confidence_interval import interval_of
from waggle.gui.i18n.formatting import duration, figure, percent, plural, tr, visible
from waggle.gui.state import chart_series
from waggle.protocol.events_race import Examined, FirstSolved, Lane, RaceBegan, RaceEvent, RaceFailed, RoundRaced

Phase = Literal["idle", "preparing", "running", "ended", "stopped", "failed"]
LATELY = 8  # rounds in the means that are the trend
MOST_ROUNDS = 10_000
USUAL_ROUNDS = 80  # of a race, before it says how many there are
FEW = 3  # rounds in which nothing can be said yet


class LaneProgress(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two swarms.

    `right`: share of right answers by round. `solved`: (racer, specialty) -> the racer it learned from, or None.
    """

    right: tuple[float, ...] = ()
    solved: Mapping[tuple[int, int], int | None] = {}

    @property
    def trend(self) -> list[float]:
        """The trend of `right`, which is drawn."""
        return chart_series.trend(self.right, LATELY)

    @property
    def recent_share(self) -> float | None:
        """The end of the trend."""
        return self.trend[-1] if self.right else None

    @property
    def learned_count(self) -> int:
        """How many first right answers came after learning from another node."""
        return sum(teacher is not None for teacher in self.solved.values())


class Race(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase = "idle"
    rounds: int = USUAL_ROUNDS
    racers: int = 0
    specialties: tuple[str, ...] = ()
    alone: LaneProgress = LaneProgress()
    sharing: LaneProgress = LaneProgress()
    latest: FirstSolved | None = None
    exam: Examined | None = None
    seconds: float = 0.0
    failure: str = ""  # why it failed, in a sentence, if that is known
    problem: str = ""

    def progress_of(self, lane: Lane) -> LaneProgress:
        return self.alone if lane == "alone" else self.sharing

    @property
    def rounds_played(self) -> int:
        return len(self.alone.right)


def fold(race: Race, message: RaceEvent) -> Race:
    """The race after a message. Pure and total."""
    match message:
        case RaceBegan():
            return Race(phase="running", rounds=message.rounds, racers=message.racers, specialties=message.specialties)
        case RoundRaced():
            if race.rounds_played >= min(race.rounds, MOST_ROUNDS):
                return race
            alone = replace(race.alone, right=(*race.alone.right, message.alone))
            sharing = replace(race.sharing, right=(*race.sharing.right, message.sharing))
            return replace(race, alone=alone, sharing=sharing, seconds=message.seconds)
        case FirstSolved():
            places = (message.racer, message.learned_from or 0)
            if max(places) >= race.racers or message.specialty >= len(race.specialties):
                return race
            run = race.progress_of(message.lane)
            grown = replace(run, solved={**run.solved, (message.racer, message.specialty): message.learned_from})
            moved = replace(race, alone=grown) if message.lane == "alone" else replace(race, sharing=grown)
            return replace(moved, latest=message) if message.learned_from is not None else moved
        case Examined():
            return replace(race, exam=message, phase="ended")
        case RaceFailed():
            return replace(race, phase="failed", failure=message.title, problem=message.advice)
        case _:
            assert_never(message)


def recent_scores(race: Race) -> dict[Lane, str]:
    """The ends of both trends in percent."""
    return _share_texts({"sharing": race.sharing.recent_share, "alone": race.alone.recent_share})


def exam_scores(exam: Examined) -> dict[Lane, str]:
    """The shares of the new questions that the swarms answered correctly."""
    total = max(1, exam.total)
    return _share_texts({"sharing": exam.sharing / total, "alone": exam.alone / total})


def _share_texts(shares: Mapping[Lane, float | None]) -> dict[Lane, str]:
    """Both with a decimal if one is small, because at first the swarms differ by less than one percent."""
    digits = int(any(0 < round(share or 0.0, 3) < 0.1 for share in shares.values()))
    return {lane: "–" if share is None else percent(share, digits) for lane, share in shares.items()}


def headline(race: Race) -> str:
    """The current standing in one sentence."""
    match race.phase:
        case "idle":
            return tr("Does sharing help? See it in about two minutes")
        case "preparing":
            return tr("Getting both swarms ready; a few seconds")
        case "running" if race.rounds_played < FEW:
            return tr("The race has begun")
        case "running":
            return standing(race)
        case "ended":
            return verdict(race.exam) if race.exam else ""
        case "stopped":
            return plural(race.rounds_played, "Stopped after %n round; a verdict needs a whole race",
                          "Stopped after %n rounds; a verdict needs a whole race")  # fmt: skip
        case "failed":
            return visible(tr(race.failure)).removesuffix(".") if race.failure else tr("The race stopped by itself")
        case _:
            assert_never(race.phase)


def standing(race: Race) -> str:
    """Which swarm was better in the last rounds."""
    scores = recent_scores(race)
    sharing, alone = scores["sharing"], scores["alone"]
    if sharing == alone:
        return tr("Level so far, at %1").replace("%1", alone)
    leads = (race.sharing.recent_share or 0.0) > (race.alone.recent_share or 0.0)
    words = tr("Sharing leads, %1 to %2") if leads else tr("Alone leads, %1 to %2")
    return _scores(words, *((sharing, alone) if leads else (alone, sharing)))


def verdict(exam: Examined) -> str:
    """Who won on the held-out questions; the 95% intervals must not overlap."""
    (alone_low, alone_high), (low, high) = interval_of(exam.alone, exam.total), interval_of(exam.sharing, exam.total)
    scores = exam_scores(exam)
    sharing, alone = scores["sharing"], scores["alone"]
    if low > alone_high:
        return _scores(tr("Sharing won, %1 to %2"), sharing, alone)
    if alone_low > high:
        return _scores(tr("This time alone won, %1 to %2"), alone, sharing)
    return tr("Too close to call: sharing %1, alone %2").replace("%1", sharing).replace("%2", alone)


def _scores(words: str, better: str, other: str) -> str:
    return words.replace("%1", better).replace("%2", other)


def detail(race: Race) -> str:
    """The text below the headline, in a sentence or two."""
    match race.phase:
        case "idle":
            return tr(
                "Two swarms of four copies begin with the same small model. In one, each copy learns only from its own answers; "
                "in the other, they share them. Nothing leaves this computer, and your own model is not touched."
            )
        case "preparing":
            return tr("It uses one core at low priority; your training continues.")
        case "running" if race.rounds_played >= race.rounds:
            return tr("Last test: both swarms answer new questions")
        case "running":
            return f"{_time_words(race)} {tr('You can leave this page: Waggle tells you how it ends.')}"
        case "ended":
            return _figures(race.exam, race.sharing.learned_count) if race.exam else ""
        case "stopped":
            return tr("What was seen so far stays here until the next race.")
        case "failed":
            return " ".join(filter(None, (visible(tr(race.problem)), _played_words(race), tr("Your own model is not affected."))))
        case _:
            assert_never(race.phase)


def _played_words(race: Race) -> str:
    """How far a race came that stopped by itself; empty if it had not begun."""
    if not race.rounds_played:
        return ""
    return tr("It had played %1 of %2 rounds.").replace("%2", figure(race.rounds)).replace("%1", figure(race.rounds_played))


def _time_words(race: Race) -> str:
    words = tr("Round %1 of %2").replace("%2", figure(race.rounds)).replace("%1", figure(race.rounds_played))
    if race.rounds_played < FEW:
        return f"{words}."
    seconds_left = race.seconds / race.rounds_played * (race.rounds - race.rounds_played)
    return words + tr(", about %1 left").replace("%1", duration(seconds_left)) + "."


def _figures(exam: Examined, learned: int) -> str:
    words = tr("Of %1 new questions, sharing got %2 right and alone %3.")
    words = words.replace("%1", figure(exam.total)).replace("%2", figure(exam.sharing)).replace("%3", figure(exam.alone))
    jumped = plural(
        learned,
        "%n first right answer came after learning from another copy.",
        "%n first right answers came after learning from another copy.",
    )
    return f"{words} {jumped} {tr('Results vary from race to race.')}"


def transfer_words(race: Race) -> str:
    """The latest first success after learning from a peer, in words; empty before the first, and once the race is over."""
    if race.latest is None or race.latest.learned_from is None or race.phase != "running":
        return ""
    words = tr("Copy %1 learned from copy %2: %3").replace("%1", str(race.latest.racer + 1))
    title = tr(visible(race.specialties[race.latest.specialty]))
    return words.replace("%2", str(race.latest.learned_from + 1)).replace("%3", title)


def solved_words(race: Race, lane: Lane) -> str:
    """A lane's grid as text."""
    run, cells = race.progress_of(lane), race.racers * len(race.specialties)
    words = tr("%1 of %2 first right answers").replace("%1", figure(len(run.solved))).replace("%2", figure(cells))
    if run.learned_count:
        words += plural(run.learned_count, ", %n after sharing", ", %n after sharing")
    return words
