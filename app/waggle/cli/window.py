"""`waggle` without a command: open the window."""

import argparse
from pathlib import Path

from waggle.cli.shared.options import add_home, add_settings, add_verbose, text
from waggle.cli.shared.outcome import stderr_is_read
from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.core.system import screen
from waggle.core.system.hide_arguments import hide
from waggle.core.text import pasted_link
from waggle.gui.pages import PAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_settings(parser, "set_before")
    add_verbose(parser)
    parser.add_argument(
        "--replay", type=Path, nargs="?", const=paths.example(), metavar="FILE",
        help="show a recorded run instead of an engine; without a file, one that ships with Waggle",
    )  # fmt: skip
    parser.add_argument(
        "--on", default="", metavar="HOST", help="control the engine of another computer (Linux or a Mac) through ssh"
    )
    parser.add_argument(
        "--invite", default="", type=_absolute, metavar="LINK", help="show where a link, or a file with a link, leads"
    )
    parser.add_argument(
        "--speed", type=float, default=1.0, help="how fast the replay plays: 2 is twice as fast as recorded (default: 1)"
    )
    parser.add_argument("--theme", choices=("system", "light", "dark", "high_contrast"), help="the colours of the window")
    parser.add_argument("--page", choices=tuple(PAGES), help="the page to show first")
    parser.add_argument("--background", action="store_true", help="begin with the window small, as at a login")
    parser.add_argument(
        "--screenshot", type=Path, metavar="FILE", help="with --replay: save a picture of the page at the end, then leave"
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the window until it is closed. Returns the exit code. Raises WaggleError if there is no screen."""
    hide(arguments.invite)
    if fault := screen.fault():
        raise WaggleError(
            f"{fault}, so the window cannot open.",
            "Waggle works without one, too: `waggle engine` trains, `waggle join` takes an invite, `waggle status` tells more.",
        )
    from waggle.gui.application import main as app

    return app.run(
        app.Arguments(
            home=arguments.home, on=arguments.on, overrides=tuple(arguments.set), verbose=arguments.verbose,
            invite=arguments.invite, replay=arguments.replay, speed=arguments.speed, theme=arguments.theme, page=arguments.page,
            screenshot=arguments.screenshot, background=arguments.background,
        )
    )  # fmt: skip


def show_refused(error: WaggleError) -> None:
    """Show in a message box why the window could not open, unless a person reads stderr."""
    if not screen.fault() and not stderr_is_read():
        from waggle.gui.application import main as app

        app.show_refused(error)


def _absolute(invite: str) -> str:
    """A link unchanged, or the absolute path of a file: a window that is open already has another working directory."""
    is_file = bool(invite) and not invite.startswith("file:") and not pasted_link.has_link(invite)
    return text(str(Path(invite).absolute()) if is_file else invite)
