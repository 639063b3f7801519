"""When this computer contributes: `decide`, a pure function of the rules, sensor readings, a person's wishes and the clock."""

import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from waggle.core.message import NOTHING, Figure, Message
from waggle.core.settings import ScheduleSettings
from waggle.protocol.zone import Local, utc_offset_of

Rule = Literal["pause", "idle", "power", "week", "program", "full_screen", "metered", "temperature", "energy", "disk"]
Standing = Literal["contributing", "waiting", "paused"]
Clock = Callable[[float], str]
Moment = Annotated[float, msgspec.Meta(ge=0, le=32_503_680_000)]  # unix seconds, to the year 3000: what every system can print
Length = Annotated[float, msgspec.Meta(gt=0, le=10 * 365 * 86_400)]  # seconds

AWAY_MINUTES = 3  # without input, after which a person is away if no rule says how many
COOLING = 5.0  # degrees below the limit at which contribution continues, so that it does not flap
SAME_NAME = 6 * 86_400.0  # seconds within which the name of a weekday is unambiguous
DAYS = (
    Message("Monday"), Message("Tuesday"), Message("Wednesday"), Message("Thursday"), Message("Friday"), Message("Saturday"),
    Message("Sunday"),
)  # fmt: skip
MONTHS = (
    Message("Jan"), Message("Feb"), Message("Mar"), Message("Apr"), Message("May"), Message("Jun"), Message("Jul"),
    Message("Aug"), Message("Sep"), Message("Oct"), Message("Nov"), Message("Dec"),
)  # fmt: skip


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """What the sensors say now; None: this computer does not tell, or no rule asks."""

    idle_seconds: float | None = None
    on_power: bool | None = None
    programs: frozenset[str] | None = None  # running, by `plain_name`
    full_screen: bool | None = None
    metered: bool | None = None
    celsius: float | None = None
    kwh_today: float | None = None  # used by contributing, estimated
    # a change back that has not lasted yet: the rules that hold back only for that, programs closed, the highest celsius lately
    settling: frozenset[Rule] = frozenset()
    closed: frozenset[str] = frozenset()
    warmest: float | None = None


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for, which overrides every rule. Times are unix seconds."""

    paused: bool = False
    until: Moment | None = None  # of the pause
    until_away: bool = False  # of the pause
    after_round: bool = False  # the pause begins once the round has ended
    anyway_until: Moment | None = None  # the rules are suspended until then
    asked_at: Moment | None = None


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one active rule: whether it allows contribution (None: unknown, so yes), why, and what ends it."""

    rule: Rule
    passes: bool | None
    says: Message
    ends: Message = NOTHING


class ScheduleDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, why, and what ends it. `why` has every active rule, those that hold back first.

    Times of day in it are of the zone that is `utc_offset` seconds ahead of UTC; None: from an earlier version.
    """

    standing: Standing
    reason: Message = NOTHING
    ends: Message = NOTHING
    why: tuple[Tick, ...] = ()
    anyway_until: float | None = None  # the person suspended the rules until then
    utc_offset: Annotated[int, msgspec.Meta(ge=-86_400, le=86_400)] | None = None


def time_of_day(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))


def moment(at: float, now: float, clock: Clock = time_of_day, local: Local = time.localtime) -> Message:
    """A time in words: "06:15" today, "Tuesday 06:15" within six days, else "24 Dec 2026 06:15"."""
    then, today = local(at), local(now)
    if (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday):
        return Message("%1", clock(at))
    if abs(at - now) < SAME_NAME:
        return Message("%1 %2", DAYS[then.tm_wday], clock(at))
    return Message("%1 %2 %3 %4", then.tm_mday, MONTHS[then.tm_mon - 1], then.tm_year, clock(at))


def in_step(wishes: Wishes, now: float) -> Wishes:
    """Wishes with corrected times, if the clock was ahead when they were made: a pause of an hour must not last for years."""
    if wishes.asked_at is None or wishes.asked_at <= now:
        return wishes
    ahead = wishes.asked_at - now
    until, anyway_until = (at if at is None else max(0.0, at - ahead) for at in (wishes.until, wishes.anyway_until))
    return msgspec.structs.replace(wishes, until=until, anyway_until=anyway_until, asked_at=now)


def decide(
    rules: ScheduleSettings,
    readings: Readings,
    wishes: Wishes,
    now: float,
    *,
    before: Standing = "contributing",
    blocker: Tick | None = None,
    clock: Clock = time_of_day,
    local: Local = time.localtime,
) -> ScheduleDecision:
    """Decide what to do at unix time `now`. `before` is the decision so far: a warm computer has to cool down first.

    A `blocker` is not a rule: it stops everything, whatever a person wishes.
    """
    decision = _decision(rules, readings, wishes, now, before, blocker, clock, local)
    return msgspec.structs.replace(decision, utc_offset=utc_offset_of(local, now))


def _decision(
    rules: ScheduleSettings,
    readings: Readings,
    wishes: Wishes,
    now: float,
    before: Standing,
    blocker: Tick | None,
    clock: Clock,
    local: Local,
) -> ScheduleDecision:
    checks = (
        _idle_tick(rules, readings),
        _power_tick(rules, readings),
        _week_tick(rules, now, local, clock),
        *_programs_tick(rules, readings),
        _full_screen_tick(rules, readings),
        _metered_tick(rules, readings),
        _temperature_tick(rules, readings, before),
        _energy_tick(rules, readings),
    )
    checks = tuple(_settling_tick(tick, readings) for tick in checks)
    why = tuple(sorted((tick for tick in checks if tick is not None), key=lambda tick: tick.passes is not False))
    if pause := _pause_tick(rules, readings, wishes, now, lambda at: moment(at, now, clock, local)):
        return ScheduleDecision(standing="paused", reason=pause.says, ends=pause.ends, why=(pause, *why))
    anyway = wishes.anyway_until if wishes.anyway_until is not None and now < wishes.anyway_until else None
    if blocker is not None:
        says, ends = blocker.says, blocker.ends
        return ScheduleDecision(standing="waiting", reason=says, ends=ends, why=(blocker, *why), anyway_until=anyway)
    if anyway is not None:
        return ScheduleDecision(standing="contributing", why=why, anyway_until=anyway)
    if why and why[0].passes is False:
        return ScheduleDecision(standing="waiting", reason=why[0].says, ends=why[0].ends, why=why)
    return ScheduleDecision(standing="contributing", why=why)


SETTLING: dict[Rule, str] = {
    "power": Message("It was plugged in just now."), "full_screen": Message("No program fills the screen any more."),
    "metered": Message("The network is not metered any more."),
}  # fmt: skip
SETTLES = Message("Starts within a minute, if it stays so.")


def _settling_tick(tick: Tick | None, readings: Readings) -> Tick | None:
    """A tick that holds back only because the change back has not lasted yet says that."""
    if tick is None or tick.passes is not False or tick.rule not in readings.settling:
        return tick
    return msgspec.structs.replace(tick, says=SETTLING[tick.rule], ends=SETTLES)


def _pause_tick(rules: ScheduleSettings, readings: Readings, wishes: Wishes, now: float, words: Clock) -> Tick | None:
    """The pause in force; None if there is none, if it waits for the end of a round, or if it is over."""
    if not wishes.paused or wishes.after_round:
        return None
    if wishes.until is not None:
        says, ends = Message("Paused until %1.", words(wishes.until)), Message("Continues then, or when you resume.")
        return Tick(rule="pause", passes=False, says=says, ends=ends) if now < wishes.until else None
    if wishes.until_away:
        minutes = rules.idle_minutes or AWAY_MINUTES
        if readings.idle_seconds is not None and readings.idle_seconds >= 60 * minutes:
            return None
        ends = Message("Continues %1 min after you stop using the computer.", minutes)
        if readings.idle_seconds is None:
            ends = Message("Continues when you resume: this computer does not tell whether you are using it.")
        return Tick(rule="pause", passes=False, says=Message("Paused until you are away."), ends=ends)
    return Tick(rule="pause", passes=False, says=Message("Paused."), ends=Message("Continues when you resume."))


def _idle_tick(rules: ScheduleSettings, readings: Readings) -> Tick | None:
    if not rules.idle_minutes:
        return None
    if readings.idle_seconds is None:
        return Tick(rule="idle", passes=None, says=Message("This computer does not tell whether you are using it."))
    if readings.idle_seconds < 60 * rules.idle_minutes:
        ends = Message("Starts %1 min after you stop.", rules.idle_minutes)
        return Tick(rule="idle", passes=False, says=Message("You are using the computer."), ends=ends)
    return Tick(rule="idle", passes=True, says=Message("You are away."))


def _power_tick(rules: ScheduleSettings, readings: Readings) -> Tick | None:
    if not rules.only_on_power:
        return None
    if readings.on_power is None:
        return Tick(rule="power", passes=None, says=Message("No battery found."))
    if not readings.on_power:
        return Tick(
            rule="power", passes=False, says=Message("The computer runs on battery."), ends=Message("Starts when you plug it in.")
        )
    return Tick(rule="power", passes=True, says=Message("It is plugged in."))


def _week_tick(rules: ScheduleSettings, now: float, local: Local, clock: Clock) -> Tick | None:
    if not rules.week:
        return None
    then = local(now)
    if _is_marked(rules, then):
        return Tick(rule="week", passes=True, says=Message("Your week says so."))
    hour = now - 60 * then.tm_min - then.tm_sec
    later = next((hour + 3600 * i for i in range(1, 24 * 7 + 2) if _is_marked(rules, local(hour + 3600 * i))), None)
    if later is None:
        return Tick(
            rule="week",
            passes=False,
            says=Message("Your week has no hour for it."),
            ends=Message("Mark hours in the week to start."),
        )
    opens = local(later)
    is_today = opens.tm_yday == then.tm_yday
    starts = (
        Message("Starts at %1.", clock(later)) if is_today else Message("Starts %1 at %2.", DAYS[opens.tm_wday], clock(later))
    )
    return Tick(rule="week", passes=False, says=Message("Your week leaves this hour out."), ends=starts)


def _is_marked(rules: ScheduleSettings, then: time.struct_time) -> bool:
    return rules.week[then.tm_wday][then.tm_hour] == "#"


def _programs_tick(rules: ScheduleSettings, readings: Readings) -> tuple[Tick, ...]:
    if not rules.not_while:
        return ()
    if readings.programs is None:
        return (Tick(rule="program", passes=None, says=Message("This computer does not tell which programs run.")),)
    running = [name for name in rules.not_while if plain_name(name) in readings.programs]
    if not running:
        return (Tick(rule="program", passes=True, says=Message("None of your chosen programs runs.")),)
    return tuple(
        Tick(rule="program", passes=False, says=Message("%1 was closed just now.", name), ends=SETTLES)
        if plain_name(name) in readings.closed
        else Tick(rule="program", passes=False, says=Message("%1 is running.", name), ends=Message("Starts when it is closed."))
        for name in running
    )


def plain_name(program: str) -> str:
    """A program's name for comparison: without folders, `.exe`, `.app` and capitals."""
    return program.replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe").removesuffix(".app")


def _full_screen_tick(rules: ScheduleSettings, readings: Readings) -> Tick | None:
    if not rules.not_full_screen:
        return None
    if readings.full_screen is None:
        return Tick(
            rule="full_screen", passes=None, says=Message("This computer does not tell whether a program fills the screen.")
        )
    if readings.full_screen:
        return Tick(
            rule="full_screen",
            passes=False,
            says=Message("A program fills the screen."),
            ends=Message("Starts when it does not any more."),
        )
    return Tick(rule="full_screen", passes=True, says=Message("No program fills the screen."))


def _metered_tick(rules: ScheduleSettings, readings: Readings) -> Tick | None:
    if not rules.not_metered:
        return None
    if readings.metered is None:
        return Tick(rule="metered", passes=None, says=Message("This computer does not tell whether its network is metered."))
    if readings.metered:
        return Tick(
            rule="metered",
            passes=False,
            says=Message("The network is metered."),
            ends=Message("Starts on a network that is not."),
        )
    return Tick(rule="metered", passes=True, says=Message("The network is not metered."))


def _temperature_tick(rules: ScheduleSettings, readings: Readings, before: Standing) -> Tick | None:
    if not rules.below_celsius:
        return None
    if readings.celsius is None:
        return Tick(rule="temperature", passes=None, says=Message("This computer does not tell its temperature."))
    limit = rules.below_celsius - (0.0 if before == "contributing" else COOLING)
    if readings.celsius < limit and before != "contributing" and (readings.warmest or 0.0) >= limit:
        return Tick(rule="temperature", passes=False, says=Message("The processor has just cooled down."), ends=SETTLES)
    if readings.celsius < limit:
        return Tick(rule="temperature", passes=True, says=Message("The processor is cool enough."))
    ends = Message("Starts below %1 °C.", Figure(rules.below_celsius - COOLING))
    return Tick(
        rule="temperature", passes=False, says=Message("The processor is too warm: %1 °C.", Figure(readings.celsius)), ends=ends
    )


def _energy_tick(rules: ScheduleSettings, readings: Readings) -> Tick | None:
    if not rules.kwh_a_day:
        return None
    if readings.kwh_today is None:
        return Tick(rule="energy", passes=None, says=Message("This computer does not tell yet how much energy today took."))
    used, allowed = Figure(min(readings.kwh_today, 999.0), 2), Figure(rules.kwh_a_day, 2)
    if readings.kwh_today < rules.kwh_a_day:
        return Tick(rule="energy", passes=True, says=Message("Today's energy lasts: %1 of %2 kWh, estimated.", used, allowed))
    says = Message("Today's energy is used up: %1 of %2 kWh, estimated.", used, allowed)
    return Tick(rule="energy", passes=False, says=says, ends=Message("Starts after midnight."))
