"""The sentences of the report."""

import re
from collections.abc import Sequence

from waggle.lab.results import Run
from waggle.lab.statistics import UNTIL, WINDOW, WORTH_FALLING_FROM

QUESTION = "Do small models learn sooner when they share their answers?"

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
    "8/0:plain:grpo:crumbs=0.2": "Alone, and as in the default differences in reward below 0.2 do not count: what default gains "
    "over this, it gains by sharing. Early that helps a node alone, and late it holds it back: compare with 8/0 as well.",
    "4/4": "Each round 4 groups of its own answers and 4 of others': what the paper found best.",
    "default": "What Waggle does unless told otherwise: 8 questions are drawn and shared; own groups that teach take up to half "
    "of the places, others' the rest; of theirs, only answers that did better than their group count; differences in reward "
    "below 0.2 do not. Places that others cannot fill are its own. No peer has more than a part of places and gradient, and text "
    "stranger than what is usual is left out: no other configuration here is bounded so. The rate is that of its own sweep, like "
    "everybody's; the app begins with 5e-4.",
}

SUCCESSES = (
    "A first right answer counts as after another's when the node had trained on another node's right answer in that "
    "specialty before. That is an order of events, not a cause: an answer that comes late has had more time for another's "
    "to come first."
)

DEV = (
    "These runs are scored on dev questions and served to choose a learning rate for each configuration: the one with the "
    "highest mean held-out score. None of them stands in a table or chart above, and no test question had a part in the "
    "choice. With few seeds, neighbouring rates can often not be told apart. A best rate at the edge of those tried means that "
    "a better one may lie beyond."
)

CLOSING = (
    (
        "The seed is the unit.",
        "Nodes of one swarm learn from each other, so they are not independent. Every interval is Student's 95% interval over "
        "seeds, in brackets after or under its mean; the small numbers are the seeds themselves. With few seeds the interval "
        "is wide, and that is its honest width. One seed has none. All seeds answer the same reserved questions: others would "
        "move them all.",
    ),
    (
        "Comparisons are paired.",
        "Each seed is compared with the same seed of the other configuration, as a ratio averaged on the logarithm. "
        "▲ higher and ▼ lower: the interval leaves out no difference. ○ undecided: it does not, so chance may explain what is "
        "seen. Many comparisons stand here and none is corrected for their number: about 1 in 20 would look settled even if "
        "nothing differed.",
    ),
    (
        "Reward is not skill.",
        "Training reward is what all of a node's own completions earned, whether trained on or not. The held-out score is how "
        "often the node's own policy answers reserved questions right at the first try. Where the two disagree, believe the "
        "held-out score.",
    ),
    (
        "The first climb is elicitation.",
        "The starter model knows many answers but rarely writes the answer tag. The early rise is mostly that behaviour being "
        "drawn out and passed on. It is not new arithmetic, and it says little about what comes after.",
    ),
    (
        "Held-out questions are reserved by content.",
        "A hash of a question's own text decides whether it may train, choose or test, everywhere, also when the starter model "
        "was made. The same question under another number is still reserved.",
    ),
    (
        "Cost is counted in completions.",
        "The held-out score at so many completions, and its mean until then, read every configuration up to what the thriftiest "
        "run generated. Between two points at which a curve was measured it is a straight line, so who generates most may be "
        "read on its very first one. The default stands beside each of its yardsticks at what both of them generated. Judging "
        "others' answers and training on them also take time, which this does not count.",
    ),
    (
        "How the numbers are made.",
        "Cumulative reward is the sum over rounds of the mean reward. Rounds to a reward, last over peak and largest fall read "
        f"the {WINDOW}-round mean. Rounds are medians over seeds, where never counts as latest. Last over peak is the last "
        f"{WINDOW} rounds over the best {WINDOW}. Largest fall is the deepest drop below the best so far, once that is at "
        f"least {WORTH_FALLING_FROM:.2f}. The mean held-out score of a run shorter than {UNTIL} rounds is taken to its end. "
        "Entropy says how unsure a policy is of its next token: near 0 it always says the same. Others' share of what is "
        "learned is their part of the absolute advantage that is trained on.",
    ),
    (
        "This swarm is simulated.",
        "All nodes run in one process with the code Waggle runs. Delay and absence are at most imitated; no real network, no "
        "other people's computers and no cheats take part. The models are small. Nothing here shows that the same holds for "
        "large models or over the internet.",
    ),
)


def lede(runs: Sequence[Run]) -> str:
    """What was done, in plain words."""
    nodes = sorted({len(run.models) for run in runs})
    count = " or ".join(map(str, nodes)) if nodes else "no"
    return (
        f"Simulated swarms of {count} nodes train by reinforcement learning, on their own answers only or on a mixture of "
        "their own and others' (SAPO, arXiv 2509.08721). All are scored on questions that never train."
    )


def setting_words(setting: str) -> str:
    """What a setting means; nothing for one that is not known here."""
    return SETTINGS.get(setting, "")


def configuration_words(name: str) -> str:
    """What a configuration means; nothing for one that is not known here."""
    if name in CONFIGURATIONS:
        return CONFIGURATIONS[name]
    mixture = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", name)
    return f"Each round {mixture[1]} groups of its own answers and {mixture[2]} of others'." if mixture else ""
