"""`waggle chat`: the model of now and an earlier snapshot of it answer your messages. Nothing of it is stored or shared."""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from waggle.cli.shared.engine import ask
from waggle.cli.shared.options import add_home, text
from waggle.cli.shared.printing import add_json, say, say_json
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.message import plain
from waggle.protocol import commands
from waggle.protocol.events_chat import LONGEST, SENT, TURNS, ChatOffer, Turn, TurnProgress

REPLY_SECONDS = 1800.0  # two replies of a large model on the CPU


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)
    parser.add_argument("message", nargs="?", type=text, help="one message; without it, every line of stdin is one")
    parser.add_argument(
        "--before", type=int, metavar="ROUNDS", help="compare with the model after so many rounds (default: the earliest here)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Send messages, and print the replies. Raises EngineError if no engine runs, or its model is not open yet."""
    home = paths.home_in(arguments.home)
    answers = ask(home, commands.OfferChat(id=commands.new_id()), REPLY_SECONDS)
    offer = next(answer for answer in answers if isinstance(answer, ChatOffer))
    before = min(offer.moments, default=0) if arguments.before is None else arguments.before
    if before not in offer.moments:
        moments = ", ".join(map(str, offer.moments))
        raise EngineError(f"The model after {before} rounds is not kept.", f"There are those after {moments} rounds.")
    turns: list[Turn] = []
    try:
        for words in [arguments.message] if arguments.message else _messages(taught=offer.taught):
            turn = _reply(home, words[:LONGEST], turns, before)
            turns = [*turns, turn][-TURNS + 1 :]
            if arguments.json:
                say_json(turn)
            else:
                say(*_lines(turn))
    finally:
        ask(home, commands.ClearChat(id=commands.new_id()))
    return 0


def _messages(*, taught: bool) -> Iterator[str]:
    """Lines of stdin; a terminal shows a prompt."""
    shows = sys.stdin.isatty()
    if shows and not taught:
        sys.stderr.write("This model was never trained to chat: it gets each message alone.\n")
    while True:
        if shows:
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _reply(home: paths.Home, words: str, turns: list[Turn], before: int) -> Turn:
    """Send a message, and wait for both replies. Ctrl+C stops them; their text so far counts."""
    message = commands.SendMessage(
        id=commands.new_id(), words=words, number=len(turns), before=before, earlier=tuple(turns[-SENT:])
    )
    with ThreadPoolExecutor(1, thread_name_prefix="chat") as executor:
        answering = None
        try:
            answering = executor.submit(ask, home, message, REPLY_SECONDS)
            answers = answering.result()
        except KeyboardInterrupt:
            ask(home, commands.StopReplies(id=commands.new_id()))
            if answering is None:
                raise  # so early that there is nothing to show
            answers = answering.result()
    return next(answer.turn for answer in answers if isinstance(answer, TurnProgress))


def _lines(turn: Turn) -> list[str]:
    lines: list[str] = []
    for reply in dict.fromkeys(turn.replies):
        lines += [f"After {reply.rounds} rounds:", *(f"  {plain(line)}" for line in reply.text.splitlines()), ""]
    return [*lines, *filter(None, [turn.not_now])]
