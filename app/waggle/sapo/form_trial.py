"""Tries which prompt form makes a model write answers that can be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from waggle.rl.batch import nothing
from waggle.sapo.answer_length import tokens_needed
from waggle.sapo.evaluation import sample_completions
from waggle.sapo.prompt_form import PromptForm, forms_for
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import has_form

ENOUGH = 0.75  # of the best form's readable answers; a form with more help must be clearly better, as it leaves less to learn


@dataclass(frozen=True)
class FormTrial:
    """How many of `total` answers to questions in one form stood in the answer tags, and how many tokens each of these needed."""

    form: PromptForm
    readable: int
    total: int
    lengths: tuple[int, ...] = ()


def try_forms(
    node: Node, rules: RoundSettings, questions: Sequence[Question], *, pause_point: Callable[[], None] = nothing,
    report: Callable[[int, int], None] = nothing,
) -> list[FormTrial]:  # fmt: skip
    """Let the policy answer each question once in every form that it can be asked in.

    `report` gets the number of forms that were tried, before each of them, and how many there are.
    """
    trials: list[FormTrial] = []
    forms = forms_for(node.tokenizer)
    for place, form in enumerate(forms):
        report(place, len(forms))
        node_with_form = replace(node, form=form)
        items = sample_completions(place, node_with_form, rules, questions, purpose="form", pause_point=pause_point)
        lengths = tuple(
            tokens_needed(node_with_form.prompter, question, completion)
            for (question, completion), verdict in zip(items, node.verifier.judge(items), strict=True)
            if has_form(completion, verdict)
        )
        trials.append(FormTrial(form, len(lengths), len(items), lengths))
    return trials


def best_form(trials: Sequence[FormTrial]) -> PromptForm:
    """The first form whose answers are about as readable as those of the best; the last one if no answer can be read."""
    most = max(trial.readable for trial in trials)
    if not most:
        return trials[-1].form
    return next(trial.form for trial in trials if trial.readable >= ENOUGH * most)
