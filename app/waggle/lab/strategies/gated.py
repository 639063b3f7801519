"""Uniform draws; of peers' completions only those that did better than their group count."""

from waggle.sapo.sharing import Gated, Sharing


def make() -> Sharing:
    return Gated()
