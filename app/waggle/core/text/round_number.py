"""How people count rounds."""


def round_number(index: int) -> int:
    """The number by which people know a round: the first is round 1, while events and files count from 0."""
    return index + 1
