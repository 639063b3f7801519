"""Dynamic sampling: whether a round draws again, because too few of its own groups teach. DAPO (arXiv 2503.14476), section 3.2.

Which update rules do that, and how often at most, is `Rule.lots`. Groups that teach nothing are judged and shared all the same;
which groups are learned from is up to the sharing strategy.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from waggle.rl.advantage import teaches
from waggle.rl.batch import Ids, SampledCompletion
from waggle.sapo.stages import Judged, RoundSettings

Watch = Callable[[Ids, Ids, NDArray[np.bool_]], None]


def teach_enough(judged: Judged, rules: RoundSettings) -> bool:
    """Whether as many groups teach something as the training set should have of the node's own."""
    return sum(teaches(group.lesson_rewards, rules.crumb_span) for group in judged.groups) >= rules.local


def watch_after(sampled: Sequence[Sequence[SampledCompletion]], max_new: int, watch: Watch) -> Watch:
    """A watch for completions that follow others in the same round: `watch` sees all of them."""
    rows = [sample for row in sampled for sample in row]
    tokens = np.array([np.pad(sample.tokens, (0, max_new - len(sample.tokens))) for sample in rows], np.int32)
    lengths, ended = np.array([len(sample.tokens) for sample in rows], np.int32), np.array([sample.ended for sample in rows])

    def watch_all(later: Ids, later_lengths: Ids, later_ended: NDArray[np.bool_]) -> None:
        watch(np.concatenate([tokens, later]), np.concatenate([lengths, later_lengths]), np.concatenate([ended, later_ended]))

    return watch_all
