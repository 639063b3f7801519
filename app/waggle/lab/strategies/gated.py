"""Uniform draws; of peers' completions only those that did better than their group count.

Our own.
"""

from waggle.sapo.sharing import Gated, Sharing


def make() -> Sharing:
    return Gated()
