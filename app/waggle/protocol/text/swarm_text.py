"""What a person has to know about a swarm, in the same sentences in the window and in a terminal."""

from waggle.core.message import Message

UNCHECKED = Message("Their answer keys could not be checked independently; their scorers were tested with altered answers.")
CLASS_PAGE = Message(
    "While this computer is in the swarm, it serves a page for a projector, which shows who is here and what was found, and "
    "gives everybody on your network who opens it an invite. Your network sees that Waggle runs here, and computers with "
    "Windows take part through this one."
)
CLASS_NAMES = Message(
    "Members may choose the name that the class sees. It reaches members only, and everybody who can see that page."
)
