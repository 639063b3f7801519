"""SAPO as published: external groups drawn uniformly, their completions trained on like one's own."""

from waggle.sapo.sharing import Plain, Sharing


def make() -> Sharing:
    return Plain()
