"""How a model is asked a question: a property of the model, not of the swarm.

What a question looks like to a model decides whether its answers can be read at all: SmolLM2-135M-Instruct wrote the answer tag
in 0 of 72 completions of a bare question. A form may give the model the opening tag (`prefill`). Such a completion is shared and
judged with its prefill, as one text, so that other models learn it whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waggle.rl.batch import Ids
from waggle.sapo.interfaces import Tokenizer
from waggle.tasks.rollout_group import TAGS

OPENING_TAG, CLOSING_TAG = TAGS
EXAMPLE_QUESTION, EXAMPLE_ANSWER = "What is 2 + 3?", f"{OPENING_TAG}5{CLOSING_TAG}"


@dataclass(frozen=True, kw_only=True)
class PromptForm:
    """One form.

    `chat` forms are messages in the model's chat template, others plain text. `before` and `after` stand around a question, and
    around that of the worked `example`.
    """

    name: str
    chat: bool = False
    before: str = ""
    after: str = ""
    example: bool = False
    prefill: str = ""

    def prompt(self, tokenizer: Tokenizer, question: str) -> Ids:
        """Token ids (T,) of a question, without the prefill: what completions of peers are learned after."""
        return tokenizer.conversation(self.messages(question)) if self.chat else tokenizer.prompt(self.text(question))

    def sampling_prompt(self, tokenizer: Tokenizer, question: str) -> Ids:
        """Token ids (T,) that the policy continues: the prompt and the prefill."""
        prompt = self.prompt(tokenizer, question)
        return np.concatenate([prompt, tokenizer.encode(self.prefill)]) if self.prefill else prompt

    def text(self, question: str) -> str:
        """What a form of plain text says."""
        return "".join(self.messages(question))

    def messages(self, question: str) -> Sequence[str]:
        """What is said in turn, the question last. Joins instead of formatting: braces of a question must not be evaluated."""
        earlier = [self._around(EXAMPLE_QUESTION), EXAMPLE_ANSWER + ("" if self.chat else "\n\n")] if self.example else []
        return [*earlier, self._around(question.strip())]

    def _around(self, question: str) -> str:
        return f"{self.before}{question}{self.after}"


PLAIN = PromptForm(name="plain", after="\nAnswer:")  # the starter was trained on it
_EXAMPLE = PromptForm(name="example", before="Question: ", after="\nAnswer:\n", example=True)
_INSTRUCTION = f"\n\nWrite your final answer between {OPENING_TAG} and {CLOSING_TAG}."
_CHAT = PromptForm(name="chat", chat=True, after=_INSTRUCTION)
_CHAT_EXAMPLE = PromptForm(name="chat_example", chat=True, after=_INSTRUCTION, example=True)

FORMS = {  # by name, in the order in which they are tried: those that help a model less come first
    form.name: form
    for form in (
        PLAIN,
        _EXAMPLE,
        PromptForm(name="example_opened", before="Question: ", after="\nAnswer:\n", example=True, prefill=OPENING_TAG),
        _CHAT,
        _CHAT_EXAMPLE,
        PromptForm(name="chat_example_opened", chat=True, after=_INSTRUCTION, example=True, prefill=OPENING_TAG),
    )
}


def forms_for(tokenizer: Tokenizer) -> list[PromptForm]:
    """The forms to choose from: those in the chat template if the model has one, else those of plain text."""
    return [form for form in FORMS.values() if form.chat == tokenizer.has_chat_template]
