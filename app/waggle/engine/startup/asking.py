"""Settles how a model is asked: in which form, how long its answers may be, and how many questions a round has."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from waggle.core import paths
from waggle.core.settings import Settings
from waggle.engine.runtime import form_choice, model_fit
from waggle.engine.runtime.answer_limit import AnswerLimit, answer_length
from waggle.engine.startup.answer_checker import trial_questions
from waggle.engine.startup.host import NodeHost
from waggle.engine.startup.model import OpenModel
from waggle.engine.startup.reports import publish_trial
from waggle.engine.startup.round_settings import round_settings
from waggle.protocol import events
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.sandbox.verifier import Verifier


@dataclass(frozen=True)
class Asking:
    """How a model is asked."""

    form: events.PromptFormChoice
    rules: RoundSettings
    limit: AnswerLimit


async def settle_asking(
    home: paths.Home, chosen: Settings, model: OpenModel, node: Node, verifier: Verifier, host: NodeHost
) -> Asking:
    """Take what the settings say and what was settled before; try on reserved questions what is still open. Raises Stopped."""
    file = home.model.prompt_form
    rules = round_settings(chosen, node.charter, model.config, model.fit.training.method, is_starter=model.is_starter)
    form = form_choice.settled_form(chosen.model.prompt_form, model.is_starter, node, file)
    if form is None:
        questions, report = partial(trial_questions, verifier, node.charter), partial(publish_trial, host.publisher)
        form = await asyncio.get_running_loop().run_in_executor(
            host.policy_thread, lambda: form_choice.try_form(node, rules, questions(), file, host.gate, report)
        )
    longest = rules.max_new  # what memory was calculated for
    length = answer_length(chosen.learning.max_new_tokens, longest, form, file)
    questions_a_round = model_fit.questions_a_round(chosen, model.config, model.machine, model.fit.training, length.tokens)
    share = questions_a_round / rules.questions
    rules = replace(
        rules, max_new=length.tokens, external_max=longest, questions=questions_a_round,
        local=round(share * rules.local), external=round(share * rules.external),
    )  # fmt: skip
    return Asking(form, rules, AnswerLimit(length, longest, file))
