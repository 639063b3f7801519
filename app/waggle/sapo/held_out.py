"""The held-out score: pass@1 of the node's own policy on reserved questions, the honest metric."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from waggle.rl.batch import SampleParams, nothing
from waggle.rl.noise import uniforms
from waggle.sapo.round import Node, Rules, completion_of
from waggle.tasks.group import RIGHT, Completion
from waggle.tasks.questions import Question

AT_ONCE = 64  # questions sampled in one call: bounds the memory of keys and values


@dataclass(frozen=True)
class Score:
    """`right` of `total` answers, one sampled for each question."""

    round: int
    right: int
    total: int


def measure(
    number: int, node: Node, rules: Rules, questions: Sequence[Question], *, pause_point: Callable[[], None] = nothing
) -> Score:
    """Sample one completion for every question at temperature 1 and count those the verifier finds right."""
    params = SampleParams(max_new=rules.max_new, stop=node.tokens.stop, temperature=1.0, pause_point=pause_point)
    items: list[tuple[Question, Completion]] = []
    noise = uniforms(node.seed, "held_out", number, len(questions), 1, rules.max_new)
    for first in range(0, len(questions), AT_ONCE):
        part = questions[first : first + AT_ONCE]
        prompts = [node.tokens.encode(node.charter.prompt_for(question.text)) for question in part]
        for question, (sampled,) in zip(part, node.policy.sample(prompts, noise[first : first + AT_ONCE], params), strict=True):
            items.append((question, completion_of(node.tokens, sampled)))
    right = sum(verdict.reward >= RIGHT for verdict in node.verifier.judge(items))
    return Score(round=number, right=right, total=len(items))
