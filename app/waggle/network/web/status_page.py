"""The status page: a SwarmStatus as one HTML page without scripts and external files, and as Prometheus metrics.

The page of a node that trains begins with how its own model learns; that of a seed is about the others only. Names of swarms,
models and specialties come from strangers, so every one of them is escaped.
"""

from html import escape

from waggle import __version__
from waggle.core.text.round_number import round_number
from waggle.network.web import leaderboard_page, training_metrics, training_page
from waggle.network.web.page_frame import framed
from waggle.network.web.prometheus import metric
from waggle.network.web.statistics import MemberStatus, ModelStatus, SpecialtyStatus, SwarmStatus
from waggle.network.web.training_page import bar

MAX_ROWS = 50  # members in the table
UNNAMED = "not named here"
WIDTH, HEIGHT = 720, 120  # of the chart, in its own units


def html(status: SwarmStatus) -> str:
    """The page, which reloads itself every 15 seconds."""
    chip = '<span class="chip">private</span>' if status.private else ""
    body = (
        f"<main><h1>{escape(status.swarm)}{chip}</h1>"
        f"{training_page.html(status.training) if status.training is not None else ''}"
        f"{_swarm(status)}{_join(status)}"
        f'<footer>Waggle {escape(__version__)} · up {_span(status.at - status.since)} · <a href="/metrics">metrics</a> · '
        '<a href="/status.json">the same as JSON</a></footer></main>'
    )
    return framed(status.swarm, body, sheet="status.css", refresh_s=15)


def _swarm(status: SwarmStatus) -> str:
    """What came from others. Where a node trains and nothing came, one sentence says so."""
    sentence = _sentence(status)
    if status.training is not None:
        if not (status.members or any(status.minutes) or status.comparison.entrants):
            return f'<section class="below"><h2>The others</h2><p class="note">{sentence}</p></section>'
        sentence = f'<span class="others">The others.</span> {sentence}'
    return (
        f"<p>{sentence}</p>"
        f'<div class="figures">{"".join(_figures(status))}</div>'
        f"{_minutes(status)}"
        f'<div class="two">{_specialties(status.specialties)}{_models(status.models)}</div>'
        f"{_members(status)}{leaderboard_page.html(status.comparison)}"
    )


def metrics(status: SwarmStatus) -> str:
    """The figures in Prometheus' text format, version 0.0.4."""
    lines = [
        *metric("waggle_info", "gauge", "This node's version", [({"version": __version__, "charter": status.charter}, 1)]),
        *metric("waggle_members", "gauge", "Nodes whose groups came here lately", [({}, len(status.members))]),
        *metric(
            "waggle_members_by_model", "gauge", "The same, by what they say they train",
            [({"model": model.name}, model.members) for model in status.models],
        ),
        *metric("waggle_groups_total", "counter", "Groups judged here since the start", [({}, status.groups)]),
        *metric("waggle_groups_per_minute", "gauge", "Groups judged here lately", [({}, status.groups_per_minute)]),
        *metric("waggle_dropped_total", "counter", "Records that broke a rule since the start", [({}, status.dropped)]),
        *metric(
            "waggle_reward_mean", "gauge", "Mean reward of the last hour, as judged here",
            [({"specialty": kind.dataset}, kind.reward) for kind in status.specialties if kind.reward is not None],
        ),
        *metric("waggle_uptime_seconds", "gauge", "Since the start", [({}, round(status.at - status.since))]),
        *(training_metrics.lines(status.training) if status.training is not None else ()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _sentence(status: SwarmStatus) -> str:
    if not status.members and status.training is not None:
        here = "This node trains alone by choice." if status.training.company == "solo" else "This node trains all the same."
        return f"Nobody else has shared anything lately. {here}"
    if not status.members:
        return "Nobody has shared anything lately. Members appear here as soon as their first groups have been judged."
    count = len(status.members)
    if status.training is not None:
        who = "One other computer shares" if count == 1 else f"{count} other computers share"
        return f"{who} what was tried there, as text, and every answer is judged again here."
    who = "One computer trains" if count == 1 else f"{count} computers train"
    return f"{who} together: each shares what its model tried, as text, and every answer is judged again here."


def _figures(status: SwarmStatus) -> list[str]:
    figures = (
        (str(len(status.members)), "member" if len(status.members) == 1 else "members", "seen in the last ten minutes"),
        (f"{status.groups_per_minute:.0f}", "groups per minute", "over the last five minutes"),
        (f"{sum(status.minutes):,}".replace(",", " "), "groups this hour", f"{status.groups:,} in all".replace(",", " ")),
        (str(len(status.models)), "model" if len(status.models) == 1 else "models", f"{status.dropped} records refused"),
    )
    return [
        f'<section><div class="figure">{figure}</div><h2>{words}</h2><div class="note">{note}</div></section>'
        for figure, words, note in figures
    ]


def _minutes(status: SwarmStatus) -> str:
    top = max(*status.minutes, 1)
    step = WIDTH / len(status.minutes)
    tallest = f"; the tallest is {top}" if any(status.minutes) else ""
    bars = "".join(
        f'<rect x="{i * step + 1:.1f}" y="{HEIGHT * (1 - count / top):.1f}" width="{step - 2:.1f}" '
        f'height="{HEIGHT * count / top:.1f}" rx="2"><title>{count} groups</title></rect>'
        for i, count in enumerate(status.minutes)
        if count
    )
    return (
        f'<section><h2>Groups per minute</h2><p class="note">Each bar is one minute of the last hour{tallest}.</p>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 20}" role="img" aria-label="Groups per minute over the last hour">{bars}'
        f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}"/><text class="across" x="0" y="{HEIGHT + 16}">an hour ago</text>'
        f'<text class="across" x="{WIDTH}" y="{HEIGHT + 16}" text-anchor="end">now</text></svg></section>'
    )


def _specialties(specialties: tuple[SpecialtyStatus, ...]) -> str:
    rows = "".join(
        f"<tr><td>{escape(kind.title)}</td><td>{bar(kind.reward)}</td>"
        f'<td class="number">{"-" if kind.reward is None else f"{kind.reward:.2f}"}</td>'
        f'<td class="number">{kind.groups}</td></tr>'
        for kind in specialties
    )
    return (
        '<section><h2>Rewards by specialty</h2><p class="note">Mean of the last hour, between 0 and 1.</p><table>'
        '<tr><th>Specialty</th><th></th><th class="number">Reward</th><th class="number">Groups</th></tr>'
        f"{rows}</table></section>"
    )


def _models(models: tuple[ModelStatus, ...]) -> str:
    rows = "".join(
        f'<tr><td>{escape(model.name) or UNNAMED}</td><td class="number">{model.members}</td>'
        f'<td class="number">{model.reward:.2f}</td></tr>'
        for model in models[:MAX_ROWS]
    )
    return (
        '<section><h2>Models</h2><p class="note">As members name them; a name appears once a trusted member uses it.</p><table>'
        '<tr><th>Model</th><th class="number">Members</th><th class="number">Reward</th></tr>'
        f"{rows}</table>{_nothing(rows)}</section>"
    )


def _members(status: SwarmStatus) -> str:
    rows = "".join(_member(member, status.at) for member in status.members[:MAX_ROWS])
    more = len(status.members) - MAX_ROWS
    note = f"Those with the most groups; {more} more are not shown." if more > 0 else "Names and fingerprints are of their keys."
    return (
        f'<section class="wide"><h2>Members</h2><p class="note">{note}</p><table><tr><th>Name</th><th>Model</th>'
        '<th class="number">Round</th><th class="number">Groups</th><th class="number">Reward</th>'
        '<th class="number">Seen</th></tr>'
        f"{rows}</table>{_nothing(rows)}</section>"
    )


def _member(member: MemberStatus, now: float) -> str:
    return (
        f'<tr><td>{escape(member.name)} <span class="key">{escape(member.fingerprint)}</span></td>'
        f'<td>{escape(member.model) or UNNAMED}</td><td class="number">{round_number(member.round)}</td>'
        f'<td class="number">{member.groups}</td><td class="number">{member.reward:.2f}</td>'
        f'<td class="number">{_span(now - member.seen_at)} ago</td></tr>'
    )


def _join(status: SwarmStatus) -> str:
    addresses = "".join(f"<code>{escape(address)}</code>" for address in status.addresses)
    note = "Only whoever has an invite can take part." if status.private else "Put one of these addresses into Waggle."
    if status.training is not None and not addresses:
        note = "Nobody can call this node."
    return (
        f'<section class="below"><h2>Where to find this swarm</h2><p class="note">{note}</p>{addresses}'
        f"<code>charter {escape(status.charter)}</code></section>"
    )


def _nothing(rows: str) -> str:
    return "" if rows else '<p class="note below">Nobody yet.</p>'


def _span(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
