"""What an oracle is: a second opinion on a dataset's answers that shares no code with the dataset."""

from collections.abc import Callable

Oracle = Callable[[str, str], bool]
"""`oracle(question, key)` says whether `key` answers the text `question` truly.

It reads only these two texts, never the dataset's metadata, and computes the truth by itself or with a well-kept library. Where a
question has several true answers it checks the key instead of comparing it. It raises UnreadableQuestion for a text that it does
not understand: such a question counts as unchecked, never as true.
"""


class UnreadableQuestion(Exception):
    """An oracle does not understand the text of a question."""
