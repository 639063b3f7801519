"""Prompts and answers have the tokens that transformers gives for both as one text, for tokenizers of all kinds."""

import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from models.tokenizer_shelf import BEGINNINGS, BRACKETS, CHAT, END, EOS, KINDS, PAD, SPECIALS, of_transformers, put
from waggle.models.prompt import Prompt
from waggle.models.tokenizer import Tokenizer, load

PIECES = st.sampled_from(
    [
        " ", "  ", "\n", "\n\n", "\t", "▁", "a", "the", " answer", "Answer:", "is", "12", "7", "345", ".", "?", "'s", "<",
        "<answer>", "</answer>", "ß", "é", "e\u0301", "漢字", "🐝", "\u00a0", "\ufb01", "Ω", "\u200d",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
HARD = [
    ("Question: 3 + 4?\nAnswer:", " 7"), ("Question: 3 + 4?\nAnswer:", "7"), ("a\n", "\nb"), ("12", "3"), ("the ", "answer"),
    ("the", " "), ("", "the answer"), ("the answer", ""), ("🐝", "🐝🐝"), ("e", "\u0301"), ("the ans", "wer"), (" ", " "),
    ("<answer>", "42</answer>"), ("is it <", "answer>?"), ("▁", "▁a"), ("漢", "字"), ("a <|end", "|> b"), ("\ue000", "\ue000"),
]  # fmt: skip


class Pair(NamedTuple):
    """The same tokenizer, as Waggle reads it and as transformers does."""

    mine: Tokenizer
    theirs: PreTrainedTokenizerFast


@cache
def pair(kind: str, beginning: str = "BOS", template: str = "") -> Pair:
    folder = put(Path(mkdtemp()), kind, beginning=beginning, template=template)
    return Pair(load(folder), of_transformers(folder))


def is_plain(*texts: str) -> bool:
    return not any(name in "".join(texts) for name in (*SPECIALS, "<|strip|>"))


def require_same(prompt: Prompt, answer: str, expected: list[int], theirs: PreTrainedTokenizerFast) -> bool:
    """Check a prompt and an answer against transformers' tokens of both as one text; return whether they are these.

    They are not if a token crosses the end of the prompt. Then the prompt keeps its tokens, and the answer is whole.
    """
    whole = prompt.followed_by(answer)
    count = len(prompt.ids)
    assert whole.ids[:count].tolist() == prompt.ids.tolist()
    assert whole.ids[count:].tolist() == prompt.continuation(answer).tolist()
    assert len(prompt.offsets(answer)) == len(whole.ids) - count
    is_one_text = expected[:count] == prompt.ids.tolist()
    if is_one_text:
        assert whole.ids.tolist() == expected
    return is_one_text


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, answer=TEXTS)
@settings(max_examples=150)
def test_a_plain_prompt_and_its_answer_are_one_text(kind, text, answer):
    if is_plain(text, answer):
        mine, theirs = pair(kind)
        prompt = mine.prompt(text)
        assert prompt.ids.tolist() == theirs(text)["input_ids"]
        require_same(prompt, answer, theirs(text + answer)["input_ids"], theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("text", "answer"), HARD)
def test_hard_boundaries(kind, text, answer):
    mine, theirs = pair(kind)
    prompt = mine.prompt(text)
    expected = theirs(text + answer, split_special_tokens=True)["input_ids"]
    if not require_same(prompt, answer, expected, theirs) and kind != "unigram":  # which joins letters with their accents
        added = mine.decode_continuation(prompt.continuation(answer))
        assert added.strip() == theirs.decode(theirs(answer, add_special_tokens=False)["input_ids"]).strip()


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_encoded_apart_only_where_a_token_crosses_the_end_of_its_prompt(kind):
    mine, theirs = pair(kind)
    for text, answer in (("3 + 4?\nAnswer:", " 7"), ("the answer", " is it"), ("is it <answer>", "the answer</answer>")):
        assert require_same(mine.prompt(text), answer, theirs(text + answer)["input_ids"], theirs), (text, answer)
    marks_beginnings = kind in ("byte level with a space first", "prepend", "unigram") or kind.startswith(
        ("metaspace first", "metaspace always")
    )
    assert (mine.prompt("?").continuation("the").tolist() != mine.encode("the").tolist()) == marks_beginnings


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, answer=TEXTS)
@settings(max_examples=60)
def test_a_text_that_a_policy_wrote_is_learned_by_another_copy_of_it_as_it_was_written(kind, text, answer):
    mine, theirs = pair(kind)
    answer = re.sub("</?answer>", "", answer)  # after an added token, some kinds mark a beginning that a text cannot show
    prompt = mine.prompt(f"{text}.")
    written = prompt.continuation(answer)
    if theirs.unk_token_id not in written and require_same(prompt, answer, theirs(f"{text}.{answer}")["input_ids"], theirs):
        assert prompt.continuation(mine.decode_continuation(written)).tolist() == written.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_prompt_begins_as_transformers_begins_it_and_does_not_end(kind, beginning):
    mine, theirs = pair(kind, beginning)
    text = "What is the answer?\nAnswer:"
    expected = theirs(text)["input_ids"]
    if beginning == "BOS and EOS":
        assert expected.pop() == theirs.eos_token_id
    assert mine.prompt(text).ids.tolist() == expected


def test_the_file_overrules_the_settings_as_in_transformers(tmp_path):
    folder = put(tmp_path, "prepend", beginning="two BOS", settings={"add_bos_token": False})
    assert load(folder).prompt("the answer").ids.tolist() == of_transformers(folder)("the answer")["input_ids"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", [CHAT, BRACKETS], ids=["turns", "brackets"])
@given(messages=st.tuples(TEXTS, TEXTS, TEXTS), answer=TEXTS)
@example(messages=("What is it?", "The answer.", "And 12?"), answer=" 7")
@example(messages=("What is it?", "The answer.", "And 12?"), answer="\n7")
@settings(max_examples=60)
def test_a_conversation_and_its_answer_are_one_text(kind, template, messages, answer):
    if not is_plain(*messages, answer):
        return
    mine, theirs = pair(kind, template=template)
    turns = [{"role": role, "content": text.strip()} for role, text in zip(("user", "assistant", "user"), messages, strict=True)]
    text = theirs.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    prompt = mine.conversation(messages)
    assert prompt.ids.tolist() == theirs(text, add_special_tokens=False)["input_ids"]
    require_same(prompt, answer, theirs(text + answer, add_special_tokens=False)["input_ids"], theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", ["", CHAT])
@given(text=TEXTS, ids=st.lists(st.integers(0, 1 << 20), max_size=12))
@settings(max_examples=60)
def test_what_a_policy_writes_is_the_text_that_it_adds_to_its_prompt(kind, template, text, ids):
    mine, theirs = pair(kind, template=template)
    vocabulary = [token for token in sorted(theirs.get_vocab().values()) if token not in theirs.all_special_ids]
    prompt = mine.conversation([f"a{text}."]) if template else mine.prompt(f"a{text}.")
    sampled = np.array([vocabulary[place % len(vocabulary)] for place in ids], np.int32)
    whole = np.concatenate([prompt.ids, sampled])
    assert mine.decode(whole) == theirs.decode(whole.tolist(), clean_up_tokenization_spaces=False)
    assert mine.decode(whole) == mine.decode(prompt.ids) + mine.decode_continuation(sampled)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", ["", CHAT])
@given(text=TEXTS, name=st.sampled_from([*SPECIALS, "<|strip|>"]), answer=TEXTS)
@settings(max_examples=40)
def test_the_name_of_a_special_token_in_a_text_is_plain(kind, template, text, name, answer):
    if kind == "unigram":
        return  # its words are the best of all
    mine, theirs = pair(kind, template=template)
    special = {*theirs.all_special_ids, theirs.convert_tokens_to_ids("<|strip|>")} - {theirs.unk_token_id}

    def count(ids: np.ndarray) -> int:
        return len([token for token in ids.tolist() if token in special])

    ask = (lambda words: mine.conversation([words])) if template else mine.prompt
    assert count(ask(text + name + answer).ids) == count(ask("a").ids)
    assert not count(ask("a").continuation(text + name + answer))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_stops_at_all_its_stop_tokens_and_ends_a_turn_with_that_of_the_template(kind):
    for template, turn in ((CHAT, END), (BRACKETS, EOS), ("", EOS)):
        mine, theirs = pair(kind, template=template)
        number = theirs.convert_tokens_to_ids
        assert set(mine.stops) == {number(EOS), number(PAD), number(turn)}
        assert mine.stops[0] == mine.stop_for(chat=bool(template)) == number(turn)
        assert mine.stop_for(chat=False) == number(EOS)
