"""A link as the modules of a QR code, for the window, the terminal and the page of a class."""


def modules(words: str) -> tuple[tuple[bool, ...], ...]:
    """The modules of the code, row by row, True for dark; empty for empty words, and for words too long for a QR code."""
    if not words:
        return ()
    import segno  # only when a code is first shown

    try:
        code = segno.make(words, error="l", micro=False)
    except segno.DataOverflowError:  # a code holds 2,953 bytes; a link may be longer
        return ()
    return tuple(tuple(bool(dark) for dark in line) for line in code.matrix)
