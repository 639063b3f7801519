"""Whether what was written once is still all there."""

from typing import Any


def holds(new: Any, old: Any) -> bool:
    """Whether the new value has all of the old one; objects may have more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and holds(new[key], value) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)
