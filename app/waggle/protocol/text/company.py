"""With whom a node trains."""

from typing import Literal

from waggle.protocol.state import State

Company = Literal["solo", "connecting", "alone", "together"]  # solo: by choice; alone: nobody else is here


def company(state: State) -> Company:
    """Whether this node trains with others. Whoever is connected but shares nothing, such as a seed, is no company."""
    if state.reach == "connected":
        return "together" if state.members else "alone"
    return state.reach


def with_whom(state: State) -> str:
    """With whom this node trains, in a few words."""
    members = len(state.members)
    match company(state):
        case "solo":
            return "on this computer only"
        case "connecting":
            return "looking for peers"
        case "together":
            return f"with {members} peer{'s' if members != 1 else ''}"
        case "alone":
            return "alone: nobody else is here"
