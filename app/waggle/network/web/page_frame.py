"""The frame of a page for browsers: its head, with the colours of the window, around a body. Without scripts or other files."""

import functools
import tomllib
from html import escape

from waggle.core import paths


def framed(title: str, body: str, *, sheet: str, refresh_s: int = 0) -> str:
    """The page with this title, which is escaped, and this body, which is HTML; `refresh_s`: it loads itself again so often."""
    refresh = f'<meta http-equiv="refresh" content="{refresh_s}">' if refresh_s else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"{refresh}<title>{escape(title)} - Waggle</title><style>{_style(sheet)}</style></head><body>{body}</body></html>"
    )


@functools.cache
def _style(sheet: str) -> str:
    """The window's colours, light or dark as the browser prefers, and the style sheet of this name that uses them."""
    look = paths.resources() / "look"
    tokens = tomllib.loads((look / "tokens.toml").read_text(encoding="utf-8"))["colour"]
    light, dark = (
        ";".join(f"--{name.replace('_', '-')}:{colour}" for name, colour in tokens[theme].items()) for theme in ("light", "dark")
    )
    rules = (look / sheet).read_text(encoding="utf-8")
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}"
