"""What a library says of a stranger's model, in the length of a sentence."""


def first_line(error: Exception) -> str:
    """The first line of an error's text without its full stop, or the error's name if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
