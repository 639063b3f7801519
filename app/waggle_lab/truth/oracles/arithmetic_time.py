"""Oracles for the datasets of topic arithmetic that ask about dates and times."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

from waggle_lab.truth.interface import Oracle, UnreadableQuestion

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FIXED_WORDS = {  # how to answer
    "weekday": (
        "Answer with the weekday's name (e.g., Monday, Tuesday, etc.).",
        "Provide the full name of the weekday.",
        "State the weekday (Monday through Sunday).",
        "Give the weekday name in full.",
        "Reply with just the weekday name.",
        "Write out the full weekday name.",
        "Respond with the weekday (Monday-Sunday).",
        "Answer using the complete weekday name.",
        "Name the day of the week in full.",
    ),
    "number": (
        "Answer with a number.",
        "Provide the count as a number.",
        "Respond with just the number.",
        "Write the total number.",
        "Give the count numerically.",
        "State the amount as a number.",
        "Reply with the numerical value.",
        "Express your answer as a number.",
    ),
}
PARTS = {
    "weekday": "|".join(WEEKDAYS),
    "month": "|".join(MONTHS),
    "ordinal": "first|second|third|fourth|last",
    "number": r"\d+",
}
DATE = "<weekday>, <month> <number>, <number>"
UNDATED = "<weekday>, <month> <number>"


def _pattern(template: str, ending: str) -> re.Pattern[str]:
    """A pattern for a template: `<part>` is a group, the rest is literal; the ending is one of the fixed words, or literal."""
    pieces = re.split(r"<(\w+)>", template)
    pattern = "".join(f"({PARTS[piece]})" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces))
    endings = "|".join(map(re.escape, FIXED_WORDS.get(ending, (ending,))))
    return re.compile(f"{pattern} (?:{endings})")


def day(*parts: str) -> date | None:
    """The date of a weekday, month, day and year; None if the calendar has no such date, or it falls on another weekday."""
    weekday, month, number, year = parts
    try:
        moment = date(int(year), MONTHS.index(month) + 1, int(number))
    except ValueError:
        return None
    return moment if WEEKDAYS[moment.weekday()] == weekday else None


def _weekday_after(*parts: str, sign: int = 1) -> str | None:
    """The weekday so many days after a date; the last part is their number."""
    *moment, offset = parts
    start = day(*moment)
    return WEEKDAYS[(start + timedelta(days=sign * int(offset))).weekday()] if start else None


def _weekday_before(*parts: str) -> str | None:
    return _weekday_after(*parts, sign=-1)


def _weekday_of(month: str, number: str, year: str) -> str:
    return WEEKDAYS[date(int(year), MONTHS.index(month) + 1, int(number)).weekday()]


def _weekday_by_first(first: str, month: str, number: str) -> str | None:
    """None if the weekday depends on whether the year is a leap year, which the question does not say."""
    if MONTHS.index(month) > 1:
        return None
    days = sum(MONTH_DAYS[: MONTHS.index(month)]) + int(number) - 1
    return WEEKDAYS[(WEEKDAYS.index(first) + days) % 7]


def _recurring(ordinal: str, weekday: str, month: str, year: str) -> str:
    in_month = [date(int(year), MONTHS.index(month) + 1, 1) + timedelta(days=number) for number in range(31)]
    days = [each.day for each in in_month if each.month == MONTHS.index(month) + 1 and WEEKDAYS[each.weekday()] == weekday]
    place = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}[ordinal]
    return str(days[place])


def _count(first: date | None, last: date | None, counts: Callable[[str], bool]) -> str | None:
    """None if one of the dates does not exist, or they are in the wrong order."""
    if first is None or last is None or last < first:
        return None
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return str(sum(counts(WEEKDAYS[each.weekday()]) for each in days))


def _is_business_day(weekday: str) -> bool:
    return weekday not in ("Saturday", "Sunday")


def _is_leap(year: str) -> str:
    return "Yes" if int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0) else "No"


def _month_of(number: str) -> str:
    return MONTHS[int(number) - 1]


RECURRING_ENDING = " Answer with -1 if the ordinal does not exist in the month."
FORMS: tuple[tuple[str, str, Callable[..., str | None]], ...] = (  # template, how to answer, the truth from the parts
    (
        f"If today is {DATE}, what day of the week will it be in <number> days?",
        "weekday",
        _weekday_after,
    ),
    (
        f"Starting from {DATE}, which weekday falls after a <number>-day jump?",
        "weekday",
        _weekday_after,
    ),
    (f"Count forward <number> days from {DATE} - what's the weekday?", "weekday", lambda *p: _weekday_after(*p[1:], p[0])),
    (
        f"If today is {DATE}, what day of the week was it <number> days ago?",
        "weekday",
        _weekday_before,
    ),
    (f"Starting from {DATE}, which weekday was it <number> days before?", "weekday", _weekday_before),
    (f"Count backward <number> days from {DATE} - what's the weekday?", "weekday", lambda *p: _weekday_before(*p[1:], p[0])),
    ("What day of the week was <month> <number>, <number>?", "weekday", _weekday_of),
    ("On which weekday did <month> <number>, <number> fall?", "weekday", _weekday_of),
    (
        "Name the day of the week for <number>/<number>/<number>.",
        "weekday",
        lambda month, number, year: _weekday_of(_month_of(month), number, year),
    ),
    (
        "If the first day of the year was a <weekday>, what day of the week will <month> <number> be?",
        "weekday",
        _weekday_by_first,
    ),
    ("Given that January 1 fell on a <weekday>, which weekday occurs on <month> <number>?", "weekday", _weekday_by_first),
    ("In a year where <weekday> is January 1st, name the weekday of <month> <number>.", "weekday", _weekday_by_first),
    (
        "If a meeting is scheduled on the <ordinal> <weekday> of <month> <number>, on which day of the month does it occur?",
        "number",
        _recurring,
    ),
    (
        "In <month> <number>, if an event recurs on the <ordinal> <weekday>, what is the date (day of the month) of the event?",
        "number",
        lambda month, year, ordinal, weekday: _recurring(ordinal, weekday, month, year),
    ),
    ("Determine the day of the month for the <ordinal> <weekday> in <month> <number>.", "number", _recurring),
    (
        f"How many <weekday>s are there from {DATE} to {DATE} (inclusive of both dates)?",
        "number",
        lambda *p: _count(day(*p[1:5]), day(*p[5:]), lambda weekday: weekday == p[0]),
    ),
    (
        f"Count the occurrences of <weekday> from {UNDATED} to {DATE} (including both start and end dates).",
        "number",
        lambda *p: _count(day(*p[1:4], p[7]), day(*p[4:]), lambda weekday: weekday == p[0]),
    ),
    (
        f"Between {DATE} and {DATE} (counting both dates), how many times does <weekday> occur?",
        "number",
        lambda *p: _count(day(*p[:4]), day(*p[4:8]), lambda weekday: weekday == p[8]),
    ),
    (
        f"How many business days (Monday-Friday) are there from {DATE} to {DATE} (inclusive of both dates)?",
        "number",
        lambda *p: _count(day(*p[:4]), day(*p[4:]), _is_business_day),
    ),
    (
        f"Count the weekdays (excluding weekends) from {UNDATED} to {DATE} (including both start and end dates).",
        "number",
        lambda *p: _count(day(*p[:3], p[6]), day(*p[3:]), _is_business_day),
    ),
    (
        f"Between {DATE} and {DATE} (counting both dates), what's the total count of business days (Monday through Friday)?",
        "number",
        lambda *p: _count(day(*p[:4]), day(*p[4:]), _is_business_day),
    ),
    ("Determine if the year <number> is a leap year.", "Answer with Yes or No.", _is_leap),
    ("Is <number> a leap year?", "Answer with Yes or No.", _is_leap),
    ("Tell me whether <number> is a leap year.", "Answer with Yes or No.", _is_leap),
)
CALENDAR = tuple((_pattern(template, ending), truth) for template, ending, truth in FORMS)


def calendar_arithmetic(question: str, key: str) -> bool:
    """A question without a true answer has no true key: dates on a wrong weekday, or a year that might be a leap year."""
    question = question.removesuffix(RECURRING_ENDING)
    for pattern, truth in CALENDAR:
        if match := pattern.fullmatch(question):
            return key == truth(*match.groups())
    raise UnreadableQuestion(f"not of a known form: {question[:80]!r}")


INTERVALS = tuple(
    re.compile(f"{start} (?P<start>.+) {middle} (?P<end>.+?){end} (?P<form>\\S+|D days(?:, HH:MM(?::SS)?)?)\\.")
    for start, middle, end in (
        ("What is the duration between", "and", r"\? Please answer in"),
        ("Calculate the time difference between", "and", r"\. Express the result in"),
        ("How much time elapsed from", "to", r"\? Give your answer in"),
        ("A meeting started at", "and ended at", r"\. How long was the meeting\? Answer in"),
        ("A system operation started at", "and completed at", r"\. What was the operation duration\? Answer in"),
        ("A database query started at", "and ended at", r"\. How long did the query take\? Answer in"),
        ("A flight departed at", "and arrived at", r"\. How long was the flight\? Answer in"),
        ("A video call started at", "and ended at", r"\. How long was the call\? Answer in"),
        ("A system backup started at", "and completed at", r"\. What was the total backup duration\? Answer in"),
        ("A conference call began at", "and ended at", r"\. How long was the conference\? Answer in"),
    )
)
MOMENT_FORMATS = (
    *("%H:%M", "%H:%M:%S", "%H:%M:%S.%f"),
    *("%Y-%m-%d", "%B %d, %Y", "%m/%d/%Y", "%A, %B %d, %Y", "%a %b %d %Y", "%d %B %Y", "%Y-%m-%d (%A)"),
    *("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M %z", "%Y-%m-%d %H:%M:%S %z", "%A, %B %d, %Y at %H:%M"),
    *("%a %b %d %Y %H:%M:%S", "%d %B %Y, %H:%M", "%d %B %Y, %H:%M %z", "%Y-%m-%d (%A) %H:%M:%S %z"),
)


def _moment(text: str) -> datetime:
    """A date or time in one of the formats, whose weekday is right if it has one."""
    for form in MOMENT_FORMATS:
        try:
            moment = datetime.strptime(text, form)  # noqa: DTZ007 - questions name an offset or mean the same place
        except ValueError:
            continue
        if moment.strftime(form) in (text, f"{text}000"):  # %f writes microseconds, and questions have milliseconds
            return moment
    raise UnreadableQuestion(f"no date or time: {text[:40]}")


def _written(duration: timedelta, form: str) -> str:
    """A duration in the form that a question asks for, without what is smaller than its last part."""
    milliseconds = duration // timedelta(milliseconds=1)
    seconds, millisecond = divmod(milliseconds, 1000)
    days, of_day = divmod(seconds, 86_400)
    if form == "D days":
        return f"{days} days"
    hours, of_hour = divmod(of_day if form.startswith("D days, ") else seconds, 3600)
    minutes, second = divmod(of_hour, 60)
    parts = {"HH": hours, "MM": minutes, "SS": second}
    text = form.replace("D days", f"{days} days")
    for name, value in parts.items():
        text = text.replace(name, f"{value:02d}")
    return text.replace("mmm", f"{millisecond:03d}")


def time_intervals(question: str, key: str) -> bool:
    """What ends before it starts has no duration, so that no key is true."""
    for pattern in INTERVALS:
        if match := pattern.fullmatch(question):
            duration = _moment(match["end"]) - _moment(match["start"])
            return duration >= timedelta(0) and key == _written(duration, match["form"])
    raise UnreadableQuestion(f"not of a known form: {question[:80]!r}")


ORACLES: dict[str, Oracle] = {"calendar_arithmetic": calendar_arithmetic, "time_intervals": time_intervals}
