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

FIRST = 8  # questions of a form; the others follow if any of these answers can be read
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
    """Let the policy answer each question once in every form that it can be asked in; FIRST of them if none is readable.

    `report` gets the number of forms that were tried, before each of them, and how many there are.
    """
    trials: list[FormTrial] = []
    forms = forms_for(node.tokenizer)
    every = max(1, len(questions) // FIRST)
    others = [question for place, question in enumerate(questions) if place % every]
    for place, form in enumerate(forms):
        report(place, len(forms))
        node_with_form = replace(node, form=form)
        total, lengths = 0, list[int]()
        for number, part in ((place, questions[::every]), (place + len(forms), others)):
            if total and not lengths:  # most of the time of a trial goes into answers that never come to an end
                break
            items = sample_completions(number, node_with_form, rules, part, purpose="form", pause_point=pause_point)
            total += len(items)
            lengths += [
                tokens_needed(node_with_form.prompter, question, completion)
                for (question, completion), verdict in zip(items, node.verifier.judge(items), strict=True)
                if has_form(completion, verdict)
            ]
        trials.append(FormTrial(form, len(lengths), total, tuple(lengths)))
    return trials


def best_form(trials: Sequence[FormTrial]) -> PromptForm:
    """The first form whose answers are about as readable as those of the best; the last one if no answer can be read."""
    most = max(trial.readable for trial in trials)
    if not most:
        return trials[-1].form
    return next(trial.form for trial in trials if trial.readable >= ENOUGH * most)
