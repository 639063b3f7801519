"""How the report looks: Waggle's own colours and fonts from its tokens, and a line for every arm.

Honey is the default, greys train alone, blues mix one's own and others' answers: the deeper, the more of others'.
No arm is told by colour alone: each line has its own dash and its name at its end.
"""

import tomllib
from collections.abc import Iterable, Mapping

import msgspec

from waggle.core import paths
from waggle.lab.comparison import CONFIGURATIONS

HEATS = 8  # steps of tint in a table
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2", "12 4")
OTHERS = 6  # colours for configurations that the paper does not have


class Tokens(msgspec.Struct, frozen=True):
    """What the report uses of tokens.toml."""

    colour: dict[str, dict[str, str]]
    family: dict[str, list[str]]


def style_sheet() -> str:
    """All CSS of the page; nothing in it comes from a run."""
    folder = paths.resources() / "look"
    tokens = msgspec.convert(tomllib.loads((folder / "tokens.toml").read_text()), Tokens)
    light, dark = (_variables(tokens.colour[ground]) for ground in ("light", "dark"))
    families = "".join(f"--family-{name}:{_family(fonts, name)};" for name, fonts in tokens.family.items())
    lines = "".join(f".line-{name}{{--line:var(--line-{name});--dash:{dash}}}\n" for name, dash in _dashes().items())
    heats = "".join(f".heat-{step}{{background:var(--heat-{step})}}\n" for step in range(HEATS + 1))
    return (
        f":root{{color-scheme:light dark;{families}{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
        f"{lines}{heats}{(folder / 'report.css').read_text()}"
    )


def line_names(arms: Iterable[str]) -> dict[str, str]:
    """The name of each arm's line in the style sheet."""
    fixed = dict(zip(CONFIGURATIONS, _FIXED, strict=True))
    strangers = [arm for arm in arms if arm not in fixed]
    return fixed | {arm: f"other{number % (OTHERS * len(DASHES))}" for number, arm in enumerate(strangers)}


_FIXED = ("alone", "filtered", "mostly-own", "even", "mostly-others", "default")


def _dashes() -> dict[str, str]:
    fixed = dict(zip(_FIXED, ("2 3", "9 3 2 3", "none", "7 3", "4 2", "none"), strict=True))
    others = {f"other{number}": DASHES[(number + number // OTHERS) % len(DASHES)] for number in range(OTHERS * len(DASHES))}
    return fixed | others


def _variables(colour: Mapping[str, str]) -> str:
    named = {name.replace("_", "-"): value for name, value in colour.items()}
    named |= {f"line-{name}": value for name, value in _line_colours(colour).items()}
    for step in range(HEATS + 1):
        named[f"heat-{step}"] = _mix(colour["peer"], colour["surface"], 0.42 * step / HEATS)
    return "".join(f"--{name}:{value};" for name, value in named.items())


def _line_colours(colour: Mapping[str, str]) -> dict[str, str]:
    peer, ground, text = colour["peer"], colour["surface"], colour["text"]
    fixed = (
        colour["reference"],
        colour["text_soft"],
        _mix(peer, ground, 0.72),
        peer,
        _mix(peer, text, 0.5),
        colour["accent_line"],
    )
    plum, leaf = _mix(colour["bad"], peer, 0.5), colour["good"]
    others = (leaf, plum, peer, _mix(leaf, ground, 0.7), _mix(plum, text, 0.55), _mix(leaf, text, 0.5))
    return dict(zip(_FIXED, fixed, strict=True)) | {
        f"other{number}": others[number % OTHERS] for number in range(OTHERS * len(DASHES))
    }


def _mix(colour: str, other: str, share: float) -> str:
    """`share` of a colour in another, both as #RRGGBB."""
    pairs = ((int(colour[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02X}" for a, b in pairs)


def _family(fonts: Iterable[str], name: str) -> str:
    known = [f'"{font}"' for font in fonts if not font.startswith(".")]
    return ",".join([*known, *(["monospace"] if name == "mono" else ["system-ui", "sans-serif"])])
