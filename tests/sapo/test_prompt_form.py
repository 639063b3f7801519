"""Prompt forms: what a model reads of a question, and that a prefill becomes part of what is shared."""

import numpy as np
import pytest

from waggle.rl.batch import SampledCompletion
from waggle.sapo.fakes import FakeTokenizer
from waggle.sapo.form_trial import FormTrial, best_form
from waggle.sapo.prompt_form import FORMS, PLAIN, Prompter, PromptForm, WorkedExample, forms_for
from waggle.sapo.stages import completion_of
from waggle.tasks.questions import Question

QUESTION = Question(dataset="d", seed=1, text="What is {x}?")


def prompter(form: PromptForm) -> Prompter:
    return Prompter(form, FakeTokenizer(), lambda level: WorkedExample("What is {2}?", "{5}"))


class ChatTokenizer(FakeTokenizer):
    has_chat_template = True


def test_the_plain_form_is_the_one_that_the_starter_was_trained_on():
    assert PLAIN.text(" a {0} b\n") == "a {0} b\nAnswer:"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_says_the_question_last_and_leaves_its_braces_alone(form):
    prompt = FakeTokenizer().decode(prompter(form).prompt(QUESTION).ids)
    assert prompt.count("What is {x}?") == 1
    assert ("What is {2}?" in prompt and "<answer>{5}</answer>" in prompt) == form.example
    assert prompt.index("What is {x}?") > prompt.find("<answer>{5}</answer>")


def test_a_model_with_a_chat_template_is_tried_in_chat_forms_and_another_in_plain_text():
    assert {form.chat for form in forms_for(ChatTokenizer())} == {True}
    assert {form.chat for form in forms_for(FakeTokenizer())} == {False}


def test_a_prefill_is_continued_and_belongs_to_the_completion():
    tokenizer, form = FakeTokenizer(), FORMS["example_opened"]
    prompt, continued = prompter(form).prompt(QUESTION).ids, prompter(form).sampling_prompt(QUESTION).ids
    assert tokenizer.decode(continued[len(prompt) :]) == "<answer>"
    sampled = SampledCompletion(tokens=np.append(tokenizer.encode("7</answer>"), 0), logp=np.zeros(11, np.float32), ended=True)
    assert completion_of(tokenizer, sampled, form.prefill).text == "<answer>7</answer>"


def trials(*readable: int) -> list[FormTrial]:
    return [FormTrial(form, count, 24) for form, count in zip(forms_for(ChatTokenizer()), readable, strict=True)]


@pytest.mark.parametrize(
    ("readable", "form"),
    [
        ((0, 0, 0), "chat_example_opened"), ((20, 22, 24), "chat"), ((1, 4, 20), "chat_example_opened"),
        ((0, 18, 24), "chat_example"), ((24, 0, 0), "chat"),
    ],
)  # fmt: skip
def test_the_form_with_the_least_help_wins_among_those_that_can_be_read(readable, form):
    assert best_form(trials(*readable)).name == form
