"""Chat templates: the same prompt as transformers gives, and nothing else that a template asks for."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from end_to_end.programs import children_named
from waggle.cli import main
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import chat_template
from waggle.models.tokenizer import load
from waggle.sapo.prompt_form import FORMS, Prompter, WorkedExample, forms_for
from waggle.tasks.questions import Question
from waggle.tasks.sandbox import template_process
from waggle.tasks.sandbox.child_process import ChildStarved

QWEN = (
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
LLAMA = (
    "{{- bos_token }}{%- if strftime_now is defined %}{%- set date = strftime_now('%d %b %Y') %}{%- else %}"
    "{%- set date = '26 Jul 2024' %}{%- endif %}{{- date + '\\n\\n' }}{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n\\n' + message['content'] | trim + '<|im_end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{%- endif %}"
)
SMOL = (
    "{% set today = strftime_now('%d %b %Y') %}{{ '<|im_start|>system\\nToday is ' ~ today ~ '<|im_end|>\\n' }}"
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}{% if message.role == 'assistant' %}"
    "{% generation %}{% set today = '' %}{{ message.content + '<|im_end|>\\n' }}{% endgeneration %}"
    "{% else %}{{ message.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}{{ today }}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
TEXT = "What is 2 + 2?\nAnswer:"


def on_that_day(template: str) -> str:
    return template.replace("strftime_now('%d %b %Y')", "'26 Jul 2024'")


def folder_with(tmp_path: Path, template: str | None) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    words.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|end|>"])
    words.save(str(tmp_path / "tokenizer.json"))
    settings = {"eos_token": {"content": "<|im_end|>"}, "bos_token": "<|end|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | ({"chat_template": template} if template else {})))
    stops = [words.token_to_id("<|end|>"), words.token_to_id("<|im_end|>")]
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": stops}))
    return tmp_path


@pytest.mark.parametrize("template", [QWEN, LLAMA, SMOL])
@pytest.mark.parametrize("own_file", [False, True])
def test_a_prompt_is_what_transformers_makes_of_it(tmp_path, template, own_file):
    folder = folder_with(tmp_path, None if own_file else template)
    if own_file:
        (folder / "chat_template.jinja").write_text(template)
    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|end|>", eos_token="<|im_end|>",
        chat_template=on_that_day(template),
    )  # fmt: skip
    expected = theirs.apply_chat_template([{"role": "user", "content": TEXT}], add_generation_prompt=True, return_dict=False)
    words = load(folder)
    assert words.conversation([TEXT]).ids.tolist() == expected
    assert words.prompt(TEXT).ids.tolist() == words.encode(TEXT).tolist(), "plain text, whatever the template"


@pytest.mark.parametrize("template", [QWEN, LLAMA, SMOL])
def test_a_conversation_is_what_transformers_makes_of_it_and_what_is_said_stays_plain_text(tmp_path, template):
    folder = folder_with(tmp_path, template)
    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|end|>", eos_token="<|im_end|>",
        chat_template=on_that_day(template),
    )  # fmt: skip
    turn_texts = ["What is 2 + 2?", "Four.", "And {{ 3 }} + 3?"]
    turns = [{"role": ("user", "assistant")[place % 2], "content": words} for place, words in enumerate(turn_texts)]
    expected = theirs.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    words = load(folder)
    assert words.conversation(turn_texts).ids.tolist() == expected
    stops = [
        words.conversation([turn_texts[0], answer, turn_texts[2]]).ids.tolist().count(words.stops[0])
        for answer in ("Four.", "<|im_end|>")
    ]
    assert stops[0] == stops[1]


def question(text: str) -> Question:
    return Question(dataset="chain_sum", seed=1, text=text)


def test_a_prompt_form_is_a_conversation_with_a_worked_example_and_leaves_the_turn_of_the_model_open(tmp_path):
    words = load(folder_with(tmp_path, QWEN))
    prompter = Prompter(FORMS["chat_example_opened"], words, lambda level: WorkedExample("What is 2 + 3?", "5"))
    prompt = words.decode(prompter.sampling_prompt(question("What is {x}?<|im_end|>")).ids)
    turns = prompt.split("<|im_start|>")[1:]
    assert [turn.split("\n")[0] for turn in turns] == ["system", "user", "assistant", "user", "assistant"]
    assert turns[2] == "assistant\n<answer>5</answer><|im_end|>\n"
    assert turns[3].startswith("user\nWhat is {x}?<|im_end|>\n")
    assert turns[4] == "assistant\n<answer>"
    stops = [prompter.prompt(question(text)).ids.tolist().count(words.stops[0]) for text in ("q", "q<|im_end|>")]
    assert stops[0] == stops[1]


def test_a_template_without_turns_of_the_model_leaves_the_forms_that_need_none(tmp_path):
    """Such as that of a model that was trained on single questions: it was used before there were examples."""
    refusal = "{%- if message.role != 'user' %}{{ raise_exception('only users') }}{%- endif %}"
    template = QWEN.replace("{%- for message in messages %}", "{%- for message in messages %}" + refusal)
    words = load(folder_with(tmp_path, template))
    assert [form.name for form in forms_for(words)] == ["chat"]
    assert [form.name for form in forms_for(load(folder_with(tmp_path, QWEN)))] == ["chat", "chat_example", "chat_example_opened"]


def test_a_control_token_of_the_template_is_one_also_where_the_file_does_not_call_it_special(tmp_path):
    words = load(folder_with(tmp_path, QWEN))
    turn_texts = ["What is 2 + 2?", "Four.", "a<|im_end|>b"]
    expected = words.conversation(turn_texts).ids.tolist()
    path = tmp_path / "tokenizer.json"
    stored = json.loads(path.read_text())
    for token in stored["added_tokens"]:
        token["special"] = token["content"] != "<|im_end|>"
    path.write_text(json.dumps(stored))
    assert load(tmp_path).conversation(turn_texts).ids.tolist() == expected


def test_without_a_template_a_prompt_is_the_text_as_it_is(tmp_path):
    words = load(folder_with(tmp_path, None))
    assert words.prompt(f" {TEXT}").ids.tolist() == words.encode(f" {TEXT}").tolist()
    assert words.decode(words.encode("<|end|>")[-1:]) == ">"


def test_without_a_template_a_prompt_begins_with_what_the_tokenizer_puts_first_and_answers_do_not(tmp_path):
    path = folder_with(tmp_path, None) / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    first, last = (tokenizer.token_to_id(name) for name in ("<|im_start|>", "<|end|>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        "<|im_start|> $A <|end|>", special_tokens=[("<|im_start|>", first), ("<|end|>", last)]
    )
    tokenizer.save(str(path))
    words = load(tmp_path)
    plain = words.encode(TEXT).tolist()
    assert words.prompt(TEXT).ids.tolist() == words.conversation(["Hello.", "Yes?", TEXT]).ids.tolist() == [first, *plain]
    assert not {first, last} & set(plain)


def test_a_turn_ends_with_the_token_of_the_chat(tmp_path):
    words = load(folder_with(tmp_path, QWEN))
    assert words.decode(words.conversation(["x"]).ids[:1]) == "<|im_start|>"
    assert words.stops[0] == Tokenizer.from_file(str(tmp_path / "tokenizer.json")).token_to_id("<|im_end|>")


def test_special_tokens_in_a_question_stay_plain_text(tmp_path):
    words = load(folder_with(tmp_path, QWEN))
    for prompt in (words.prompt, lambda text: words.conversation([text])):
        assert prompt("a<|im_end|>b").ids.tolist().count(words.stops[0]) == prompt("ab").ids.tolist().count(words.stops[0])


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ messages[0].content.__class__.__mro__ }}", "unsafe"),
        ("{{ raise_exception('no users') }}", "no users"),
        ("{% for", "cannot be used"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "once"),
        ("{{ 1 / 0 }}", "division"),
        ("{{ cycler() }}{{ messages[0].content }}", "cannot be used"),
        ("{{ 'a' * 10**12 }}{{ messages[0].content }}", "MemoryError"),
        ("{{ '%999999999999d' % 1 }}{{ messages[0].content }}", "MemoryError"),
        (
            "{% set a = namespace(x='a' * 1024) %}{% for _ in range(60) %}{% set a.x = a.x ~ a.x %}{% endfor %}",
            "MemoryError|no answer",
        ),
        ("{{ messages[0].content.ljust(10**7) }}", "says more than"),
        ("{{ messages[0].content }}{{ '\\ud800' }}", "surrogates"),
        ("{{ raise_exception('\\ud800') }}", "cannot be used: \\?"),
        ("{{ '" + "a" * chat_template.LARGEST + "' }}{{ messages[0].content }}", "too long"),
        ("nothing", "once"),
    ],
)
def test_a_template_that_will_not_do_is_refused_in_words(tmp_path, template, why):
    with pytest.raises(ModelError, match=why):
        chat_template.read(folder_with(tmp_path, template))


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('no users') }}", "no users"),
        ("{% for", "unexpected 'end of template'"),
        (
            "{% if messages[0].role != 'system' %}{{ raise_exception('A system message comes first.') }}{% endif %}" + QWEN,
            "A system message comes first",
        ),
    ],
)
def test_a_model_whose_template_will_not_do_is_asked_in_plain_text(tmp_path, template, why):
    words, plain = load(folder_with(tmp_path, template)), load(folder_with(tmp_path, None))
    assert why in words.chat_problem
    assert not plain.chat_problem
    assert not words.has_chat_template
    assert words.stops == plain.stops
    assert words.conversation(["Hello.", "Yes?", TEXT]).ids.tolist() == plain.prompt(TEXT).ids.tolist()
    assert {form.chat for form in forms_for(words)} == {False}


def test_a_template_that_the_computer_cannot_render_now_is_not_given_up(tmp_path, monkeypatch):
    """Or a busy computer would train a model without chat from then on."""

    def starve(*_: object) -> None:
        raise ChildStarved("no answer within 60 s")

    monkeypatch.setattr(chat_template.ChildProcess, "ask", starve)
    with pytest.raises(ModelError, match="cannot be read now"):
        load(folder_with(tmp_path, QWEN.replace("helpful", "patient")))


@pytest.mark.parametrize("reason", ["no users", "no users."])
def test_fit_says_that_a_model_is_trained_without_chat(tmp_path, capsys, reason):
    folder = tmp_path / "model"
    shutil.copytree(paths.starter(), folder)
    (folder / "chat_template.jinja").write_text(f"{{{{ raise_exception('{reason}') }}}}")
    assert main.main(["fit", str(folder), "--home", str(tmp_path / "home")]) == 0
    fits, no_chat = capsys.readouterr().out.splitlines()
    assert fits.startswith("Fits: ")
    assert no_chat == "Its chat template cannot be used, so it is trained in plain text, without chat: no users."


@pytest.mark.parametrize(
    "template",
    [
        "{{ 9**(9**9) }}{{ messages[0].content }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages[0].content }}",
    ],
)
def test_a_template_that_never_ends_is_ended(tmp_path, template):
    with pytest.raises(ModelError, match="no answer within 3 s of work"):
        chat_template.read(folder_with(tmp_path, template))
    assert not children_named(os.getpid(), template_process.__name__)


def test_a_template_is_rendered_once_for_as_many_turns(tmp_path, monkeypatch):
    """The engine opens a model for each chat message, and each conversation begins with the messages before."""
    started = []
    child = chat_template.ChildProcess
    monkeypatch.setattr(chat_template, "ChildProcess", lambda *arguments: started.append(arguments) or child(*arguments))
    folder = folder_with(tmp_path, QWEN)
    for turn_texts in (["Hello."], ["Hello.", "Yes?", "What is 2 + 2?"], ["What is 2 + 2?"]):
        load(folder).conversation(turn_texts)
    assert len(started) == 2
    folder_with(tmp_path, SMOL)
    assert load(folder).conversation(["x"]).ids.tolist() != load(folder_with(tmp_path, QWEN)).conversation(["x"]).ids.tolist()
