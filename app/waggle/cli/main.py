"""The doors: `waggle` (the window), and all that `waggle --help` lists, from `engine` to `race`.

Heavy imports come after the arguments are understood.
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from waggle import __version__
from waggle.cli import race
from waggle.cli.outcome import exit_code, open_streams, stderr_is_read
from waggle.core import paths
from waggle.core.errors import WaggleError
from waggle.core.hide_arguments import hide

CTL = ("status", "pause", "resume", "set", "stop", "peers", "mute", "block", "welcome")


def main(argv: list[str] | None = None) -> int:
    """Parse, then run one command; returns the exit code."""
    open_streams()
    arguments = parsed(sys.argv[1:] if argv is None else argv)
    return exit_code(
        lambda: arguments.door(arguments),
        home=lambda: paths.home_in(arguments.home).root,
        show=_show_refused if arguments.door is _window else None,
    )


def _show_refused(error: WaggleError) -> None:
    """Show in a window what a window could not be opened for, unless somebody reads stderr."""
    if _has_screen() and not stderr_is_read():
        from waggle.gui.application import main as app

        app.show_refused(error)


def parsed(words: list[str]) -> argparse.Namespace:
    """What was asked for. A `--set` before the door holds behind it, and yields to one that stands there."""
    root = parser()
    if any(word.startswith("waggle:") for word in words[:-1]):  # what launches links may take words of theirs for more of ours
        root.error("nothing may stand behind a link")
    arguments = root.parse_args(_with_invite(words))
    if arguments.set_before and arguments.door not in (_window, _engine, _seed, _export, _fit, _selftest):
        root.error("--set would do nothing there")
    arguments.set = arguments.set_before + arguments.set
    return arguments


def _with_invite(words: list[str]) -> list[str]:
    """A link or a file that stands where a door could, as the operating system hands it over, is the window's `--invite`."""
    at = 0
    while at < len(words) and words[at].startswith("--"):  # an option of the window, and its value
        at += 1 if "=" in words[at] else 2
    stands = at < len(words) and _is_invite(words[at])
    return [*words[:at], "--invite", *words[at:]] if stands else words


def _is_invite(argument: str) -> bool:
    return argument.startswith("waggle:") or argument.lower().endswith(".waggle")


def _from_here(invite: str) -> str:
    """A link as it is; a file by its whole path, because a window that is open already stands in another folder."""
    is_file = bool(invite) and not invite.startswith(("waggle:", "file:"))
    return _text(str(Path(invite).absolute()) if is_file else invite)


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="waggle", description="Let your computer learn with others.")
    root.set_defaults(home=None, set=[], set_before=[])
    root.add_argument("--version", action="version", version=f"waggle {__version__}")
    _shared(root, "set_before")
    root.add_argument(
        "--replay", type=Path, nargs="?", const=paths.example(), metavar="FILE",
        help="show a recorded run instead of an engine; without a file, one that ships with Waggle",
    )  # fmt: skip
    root.add_argument(
        "--on", default="", metavar="HOST", help="drive the engine of another computer, Linux or a Mac, through ssh"
    )
    root.add_argument(
        "--invite", default="", type=_from_here, metavar="LINK", help="show where a link, or a file with one, would lead"
    )
    root.add_argument("--speed", type=float, default=1.0, help="of the replay (default: as recorded)")
    root.add_argument("--theme", choices=("system", "light", "dark", "high_contrast"))
    root.add_argument("--page", choices=("home", "live", "progress", "peers", "swarms", "you", "settings", "help"))
    root.add_argument(
        "--screenshot", type=Path, metavar="FILE", help="with --replay: save the page as it looks at the end, then leave"
    )
    root.set_defaults(door=_window)
    doors = root.add_subparsers(title="other doors", metavar="DOOR")

    engine = doors.add_parser("engine", help="contribute without a window; events are JSON lines on stdout")
    _shared(engine)
    engine.add_argument("--stdio", action="store_true", help="take commands from stdin; its end means leave")
    engine.set_defaults(door=_engine)

    seed = doors.add_parser("seed", help="a node that others find the swarm through; it trains nothing")
    _shared(seed)
    seed.set_defaults(door=_seed)

    ctl = doors.add_parser("ctl", help="ask the engine of a folder")
    _homed(ctl)
    ctl.add_argument("verb", choices=CTL)
    ctl.add_argument(
        "what", nargs="*", type=_text,
        help="mute, block, welcome: the peer's id; set: SECTION.NAME=VALUE, nothing for the default",
    )  # fmt: skip
    ctl.add_argument("--for", dest="span", metavar="SPAN", help="with pause: resume by itself after 90m, 1h or 2d")
    ctl.add_argument("--until-away", action="store_true", help="with pause: resume once nobody uses this computer")
    ctl.add_argument("--after-round", action="store_true", help="with pause: finish this round first")
    ctl.set_defaults(door=_ctl)

    _with_models(doors)
    _looking(doors)
    _about_the_program(doors)

    racing = doors.add_parser("race", help="two small practice swarms on this computer, one alone and one sharing, as JSON lines")
    race.add_arguments(racing)
    racing.set_defaults(door=race.run)
    return root


def _with_models(doors: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The doors that are about models."""
    export = doors.add_parser("export", help="write what was trained as a plain transformers folder, or push it to the hub")
    _shared(export)
    export.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="a new or empty one")
    export.add_argument("--push", metavar="OWNER/NAME", help="upload it to the model hub, with the token of `waggle token`")
    export.set_defaults(door=_export)

    token = doors.add_parser("token", help="keep your token of the model hub in the keychain of this computer")
    token.add_argument("--forget", action="store_true", help="remove it from there")
    token.set_defaults(door=_token)

    fit = doors.add_parser("fit", help="say whether a model can be trained on this computer, how, and how fast")
    _shared(fit)
    fit.add_argument("model", nargs="?", metavar="MODEL", help="a folder, or owner/name on the hub (default: the starter)")
    fit.set_defaults(door=_fit)


def _looking(doors: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The doors through which one looks whether all is well."""
    selftest = doors.add_parser("selftest", help="three rounds alone with the starter: can this computer take part?")
    _shared(selftest)
    selftest.set_defaults(door=_selftest)

    doctor = doors.add_parser("doctor", help="look at everything and print a report that names no person, key or address")
    _homed(doctor)
    doctor.set_defaults(door=_doctor)

    log = doors.add_parser("log", help="what was logged, oldest first")
    _homed(log)
    log.add_argument("word", nargs="?", help="only lines with it")
    log.add_argument("--level", choices=("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO", help="from this one on")
    log.set_defaults(door=_log)


def _about_the_program(doors: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The doors that are about Waggle as it was installed."""
    update = doors.add_parser("update", help="ask whether there is a newer version; nothing is ever installed by itself")
    update.set_defaults(door=_update)

    cuda = doors.add_parser("cuda", help="use an NVIDIA graphics card: what that takes, and to get or remove it")
    cuda.add_argument("--get", action="store_true", help="download it; goes on where an interrupted one was")
    cuda.add_argument("--remove", action="store_true", help="remove it")
    cuda.add_argument("--stdio", action="store_true", help="with --get: say how far it is as JSON lines")
    cuda.set_defaults(door=_cuda)

    goodbye = doors.add_parser("goodbye", help="list what Waggle keeps on this computer, and remove what you choose of it")
    _homed(goodbye)
    goodbye.add_argument(
        "--remove",
        type=_kinds,
        metavar="KINDS",
        help="names of the list, with commas between; all: all but who you are, and with --home but what homes share",
    )
    goodbye.add_argument("--json", action="store_true", help="with --remove: say what was done as JSON")
    goodbye.set_defaults(door=_goodbye)


def _text(word: str) -> str:
    """What others are told; raises argparse's own error for bytes that are no text, as the name of a file may have."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{word!a} is not written in UTF-8") from None
    return word


def _homed(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--home", type=Path, metavar="FOLDER", default=argparse.SUPPRESS,
        help="where this node keeps everything (default: per user)",
    )  # fmt: skip


def _shared(made: argparse.ArgumentParser, settings: str = "set") -> None:
    _homed(made)
    made.add_argument(
        "--set", dest=settings, action="append", type=_text, default=argparse.SUPPRESS, metavar="SECTION.NAME=VALUE",
        help="a setting, for this run only",
    )  # fmt: skip


def _window(arguments: argparse.Namespace) -> int:
    hide(arguments.invite)
    if not _has_screen():
        raise WaggleError(
            "There is no screen here, so the window cannot open.",
            "Waggle also works without one: start `waggle engine`, and ask it with `waggle ctl status`.",
        )
    from waggle.gui.application import main as app

    return app.run(
        app.Arguments(
            home=arguments.home, on=arguments.on, overrides=tuple(arguments.set), invite=arguments.invite,
            replay=arguments.replay, speed=arguments.speed, theme=arguments.theme, page=arguments.page,
            screenshot=arguments.screenshot,
        )
    )  # fmt: skip


def _has_screen() -> bool:
    """Windows and Macs have one; on other systems a display server or Qt's own choice says so."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def _engine(arguments: argparse.Namespace) -> int:
    from waggle.core import log
    from waggle.engine import main as engine

    log.start(folder=_logs(arguments))
    return engine.run(arguments)


def _logs(arguments: argparse.Namespace) -> Path:
    """Where to log, in a home that is its owner's alone."""
    home = paths.home_in(arguments.home)
    with contextlib.suppress(OSError):  # the engine says so in its own words
        home.prepare()
    return home.logs


def _seed(arguments: argparse.Namespace) -> int:
    from waggle.cli import seed
    from waggle.core import log

    log.start(folder=_logs(arguments))
    return seed.run(arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from waggle.cli import doctor

    return doctor.run(arguments)


def _log(arguments: argparse.Namespace) -> int:
    from waggle.core import log

    for line in log.lines(paths.home_in(arguments.home).logs, level=arguments.level, word=arguments.word or ""):
        sys.stdout.write(line + "\n")
    return 0


def _ctl(arguments: argparse.Namespace) -> int:
    from waggle.cli import ctl

    return ctl.run(arguments)


def _export(arguments: argparse.Namespace) -> int:
    from waggle.engine.services import export

    return export.run(arguments)


def _fit(arguments: argparse.Namespace) -> int:
    from waggle.engine.runtime import model_fit

    return model_fit.run(arguments)


def _token(arguments: argparse.Namespace) -> int:
    from waggle.core import hub_token

    return hub_token.run(arguments)


def _selftest(arguments: argparse.Namespace) -> int:
    from waggle.cli import selftest

    return selftest.run(arguments)


def _kinds(words: str) -> "frozenset[str]":
    from waggle.cli import remove_data

    return remove_data.chosen(words)


def _goodbye(arguments: argparse.Namespace) -> int:
    from waggle.cli import remove_data

    return remove_data.run(arguments)


def _update(arguments: argparse.Namespace) -> int:
    from waggle.cli import update

    return update.run(arguments)


def _cuda(arguments: argparse.Namespace) -> int:
    from waggle.cli import cuda

    return cuda.run(arguments)
