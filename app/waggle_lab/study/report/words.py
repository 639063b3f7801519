"""Sentences of the report that explain settings and configurations; all other sentences are in page.html."""

import re

SETTINGS = {
    "sparse": "Every node starts from the starter model, which hardly ever writes its answer the way that earns a reward.",
    "identical": "Every node starts from the same model, which is already competent.",
    "diversified": "Every node starts out strong in two specialties of its own.",
    "heterogeneous": "Models of three sizes and two vocabularies share one swarm.",
    "partial": "Every node starts from the starter model and asks about three of the specialties; it is scored on all of them.",
}

CONFIGURATIONS = {
    "8/0": "Alone: each node trains on 8 groups of its own answers per round. Everything is measured against this.",
    "8/0-filtered": "Alone, with the privilege sharing has: generates more, drops groups whose answers earned the same "
    "or less than 0.2 apart.",
    "8/0:plain:grpo:crumbs=0.2": "Alone, and as in the default, differences in reward below 0.2 do not count: what the default "
    "gains over this, it gains by sharing. Early on, this helps a lone node; later it holds the node back: compare with 8/0 too.",
    "4/4": "Each round 4 groups of its own answers and 4 of others': what the paper found best.",
    "default": "What Waggle does by default: each node draws 8 questions and shares its groups. Its own groups that teach take "
    "up to half of the places, others' groups the rest; of those, only answers that did better than their group count. "
    "Differences in reward below 0.2 do not. Places that others cannot fill are its own. No peer has more than a part of places "
    "and gradient, and text stranger than usual is left out: no other configuration here has these bounds. Like every "
    "configuration it uses the best rate of its own sweep; the app starts with 5e-4.",
}


def configuration_words(name: str) -> str:
    """The explanation of a configuration; empty if there is none."""
    if name in CONFIGURATIONS:
        return CONFIGURATIONS[name]
    mixture = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", name)
    return f"Each round {mixture[1]} groups of its own answers and {mixture[2]} of others'." if mixture else ""
