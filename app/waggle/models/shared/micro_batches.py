"""Micro-batches: which groups run together, and into which pieces a group falls that is too large for the memory there is.

A piece is the prompt with some of the completions. Each token brings its own weight along, so the gradients of pieces add up to
that of the whole; only the prompt runs once for each of them.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from waggle.rl.batch import TokenizedGroup

Text = TypeVar("Text", bound=TokenizedGroup)


def micro_batches(texts: Sequence[Text], room: int) -> Iterator[list[tuple[int, Text]]]:
    """Pieces that together have at most `room` tokens, in order, each with the number of its group.

    A prompt with one completion is never divided, however long it is.
    """
    together: list[tuple[int, Text]] = []
    used = 0
    for number, text in enumerate(texts):
        for piece in pieces(text, room):
            if together and used + piece.tokens > room:
                yield together
                together, used = [], 0
            together.append((number, piece))
            used += piece.tokens
    if together:
        yield together


def pieces(text: Text, room: int) -> Iterator[Text]:
    """The group itself where it fits, else as few pieces as possible."""
    if text.tokens <= room:
        yield text
        return
    first, used = 0, len(text.prompt)
    for position, completion in enumerate(text.completions):
        if position > first and used + len(completion) > room:
            yield text.part(first, position)
            first, used = position, len(text.prompt)
        used += len(completion)
    yield text.part(first, len(text.completions))


def halved(texts: Sequence[TokenizedGroup], room: int) -> int | None:
    """Half the room, for texts that did not fit; None where they cannot be divided further."""
    smaller = max(1, min(room, sum(text.tokens for text in texts)) // 2)
    parts = [[piece.tokens for _, piece in some] for some in micro_batches(texts, smaller)]
    return smaller if max(map(sum, parts)) < sum(text.tokens for text in texts) else None
