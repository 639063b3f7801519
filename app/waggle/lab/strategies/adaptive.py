"""I and J follow what there is to learn: own groups that teach nothing give way to external ones; what Waggle does by default.

Our own.
"""

from waggle.sapo.sharing import Adaptive, Sharing


def make() -> Sharing:
    return Adaptive()
