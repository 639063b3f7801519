"""Reads the invite in a text that a person pasted."""

from itertools import islice

from waggle.core.errors import SwarmError
from waggle.core.text import pasted_link
from waggle.network.messages import invite
from waggle.network.messages.invite import Invite

MOST_LINKS = 256  # that are tried: a text may be made to hold far more


def read(text: str) -> Invite:
    """The invite in a text, whatever mail or a chat did to it and put around it.

    Raises SwarmError with a text that repeats nothing of the link.
    """
    first: SwarmError | None = None
    try:
        return invite.read(text)
    except SwarmError as error:
        refused = error
    for link in islice(pasted_link.links_in(text), MOST_LINKS):
        try:
            return invite.read(link)
        except SwarmError as error:
            first = first or error
    raise first or refused
