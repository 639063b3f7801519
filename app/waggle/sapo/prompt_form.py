"""How a model is asked a question: a property of the model, not of the swarm.

What a question looks like to a model decides whether its answers can be read at all: SmolLM2-135M-Instruct wrote the answer tag
in 0 of 72 completions of a bare question. A form may show one worked example of the question's level, and may give the model the
opening tag (`prefill`). A completion after a prefill is shared and judged with it, as one text, so that other models learn it
whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from waggle.core.errors import ModelError
from waggle.rl.batch import Ids
from waggle.sapo.interfaces import Prompt, Tokenizer
from waggle.sapo.question_mix import Level
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import TAGS

OPENING_TAG, CLOSING_TAG = TAGS


class WorkedExample(NamedTuple):
    """A question with its true answer."""

    question: str
    answer: str


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

    def messages(self, question: str, example: WorkedExample | None = None) -> Sequence[str]:
        """What is said in turn, the question last. Joins instead of formatting: braces of a question must not be evaluated."""
        earlier = []
        if example is not None:
            answer = f"{OPENING_TAG}{example.answer}{CLOSING_TAG}"
            earlier = [self._around(example.question), answer if self.chat else f"{answer}\n\n"]
        return [*earlier, self._around(question)]

    def text(self, question: str, example: WorkedExample | None = None) -> str:
        """What a form of plain text says."""
        return "".join(self.messages(question, example))

    def _around(self, question: str) -> str:
        return f"{self.before}{question.strip()}{self.after}"


@dataclass(frozen=True)
class Prompter:
    """Makes the prompts of one model. `example_of` returns a worked example of a level; it is called again and again."""

    form: PromptForm
    tokenizer: Tokenizer
    example_of: Callable[[Level], WorkedExample]

    @property
    def stop(self) -> int:
        """The token with which the policy ends a completion in this form."""
        return self.tokenizer.stop_for(chat=self.form.chat and self.tokenizer.has_chat_template)

    def prompt(self, question: Question) -> Prompt:
        """The prompt of a question, without the prefill: what completions of peers are learned after."""
        example = self.example_of((question.dataset, question.level)) if self.form.example else None
        if self.form.chat:
            return self.tokenizer.conversation(self.form.messages(question.text, example))
        return self.tokenizer.prompt(self.form.text(question.text, example))

    def sampling_prompt(self, question: Question) -> Prompt:
        """What the policy continues: the prompt and the prefill."""
        return self.opened(self.prompt(question))

    def opened(self, prompt: Prompt) -> Prompt:
        """A prompt and the prefill."""
        return prompt.followed_by(self.form.prefill) if self.form.prefill else prompt

    def continuation(self, prompt: Prompt, text: str) -> Ids:
        """Token ids (T,) of a completion after a prompt: with a prefill at its beginning as the policy gets it."""
        prefill = self.form.prefill
        if not prefill or not text.startswith(prefill):
            return prompt.continuation(text)
        return np.concatenate([prompt.continuation(prefill), self.opened(prompt).continuation(text[len(prefill) :])])

    def offsets(self, prompt: Prompt, text: str) -> Ids:
        """(T, 2): the first and the last character (exclusive) of each token of a completion after a prompt."""
        prefill = self.form.prefill
        if not prefill or not text.startswith(prefill):
            return prompt.offsets(text)
        rest = self.opened(prompt).offsets(text[len(prefill) :]) + np.int32(len(prefill))
        return np.concatenate([prompt.offsets(prefill), rest])


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
    """The forms to choose from: those that the chat template can render if the model has one, else those of plain text."""
    return [form for form in FORMS.values() if form.chat == tokenizer.has_chat_template and _is_possible(form, tokenizer)]


def _is_possible(form: PromptForm, tokenizer: Tokenizer) -> bool:
    try:
        Prompter(form, tokenizer, lambda level: WorkedExample("", "")).prompt(Question(dataset="", seed=0, text=""))
    except ModelError:  # some templates know no turns of the model, which an example needs
        return False
    return True
