"""Micro-batches: the groups that run together, and the pieces of a group that does not fit into memory.

A piece is the prompt with some of the completions. Weights belong to tokens, so the gradients of the pieces sum to that of the
group. The prompt runs once for each piece.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from waggle.rl.batch import TokenizedGroup

Text = TypeVar("Text", bound=TokenizedGroup)


def micro_batches(texts: Sequence[Text], room: int) -> Iterator[list[tuple[int, Text]]]:
    """Batches of (number of the group, piece), in order, of at most `room` tokens each.

    A prompt with one completion is never split, however long it is.
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
    """The group itself if it fits, else as few pieces as possible."""
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


def half_of(texts: Sequence[TokenizedGroup], room: int) -> int | None:
    """Half of the room, for texts that did not fit; None if they cannot be split further."""
    smaller = max(1, min(room, sum(text.tokens for text in texts)) // 2)
    parts = [[piece.tokens for _, piece in some] for some in micro_batches(texts, smaller)]
    return smaller if max(map(sum, parts)) < sum(text.tokens for text in texts) else None
