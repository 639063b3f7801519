"""The starter model: a plain transformers folder with a tokenizer that gives the same tokens in every library."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

from waggle.core import paths
from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.questions import QuestionKey
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

FOLDER = paths.starter()
LARGEST = 6_000_000  # bytes of the whole folder
MOST_WEIGHTS = 1_200_000
FRACTIONS = {"108/120": "9/10", "25/35": "5/7", "12/28": "3/7", "57/69": "19/23", "39/84": "13/28", "132/156": "11/13"}
ODD = [
    "",
    " ",
    "\x00\x01\x1b[31m\x7f",
    "tab\tand\r\nreturn\u2028\u2029",
    "<answer>12</answer>",
    "</answer><answer>",
    "<|eos|><|pad|>",
    "<|im_end|></s><s>[INST]",
    "<answer><answer >",
    "¬P ∧ (Q ∨ ¬R) → (S ↔ P)",
    "¬¬¬",
    "++++++++++++++++++++++++++++++ --- >[-]>[-]<>+++[<--->-]<.",
    "0123456789 1 2 3\n4 5 6",
    "naïve Ångström 中文 العربية 🐝👩‍👩‍👧 e\u0301",
    "Ġ Ċ Â¬ ĠâĨĴ",
    "\nAnswer:\nAnswer: 5",
]


@pytest.fixture(scope="module")
def plain() -> Tokenizer:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def wrapped() -> Any:
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model() -> Any:
    return AutoModelForCausalLM.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def questions() -> Iterator[dict[str, list[str]]]:
    verifier = Verifier(first_swarm())
    names = [specialty.dataset for specialty in first_swarm().specialties]
    yield {
        name: [question.text for question in verifier.questions([QuestionKey(name, seed) for seed in range(50)])]
        for name in names
    }
    verifier.close()


def _same(plain: Tokenizer, wrapped: Any, text: str) -> None:
    ids = plain.encode(text).ids
    assert wrapped(text)["input_ids"] == ids
    assert wrapped.encode(text, add_special_tokens=False) == ids
    assert plain.decode(ids, skip_special_tokens=False) == text
    assert wrapped.decode(ids, skip_special_tokens=False) == text


def test_the_folder_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < LARGEST


def test_the_model_is_a_small_llama_without_biases_that_transformers_loads(model: Any) -> None:
    assert model.config.model_type == "llama"
    assert model.num_parameters() <= MOST_WEIGHTS
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]
    assert not model.config.attention_bias
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


def test_the_vocabulary_fits_the_embedding_and_padding_is_zero(model: Any, plain: Tokenizer, wrapped: Any) -> None:
    assert model.config.vocab_size == plain.get_vocab_size() == len(wrapped)
    assert wrapped.pad_token_id == model.config.pad_token_id == plain.token_to_id("<|pad|>") == 0
    assert (
        wrapped.eos_token_id == model.config.eos_token_id == model.generation_config.eos_token_id == plain.token_to_id("<|eos|>")
    )
    assert wrapped.bos_token_id is None
    assert model.config.bos_token_id is None


def test_generation_is_plain_sampling() -> None:
    stored = json.loads((FOLDER / "generation_config.json").read_text(encoding="utf-8"))
    assert (stored["do_sample"], stored.get("temperature", 1.0), stored["top_k"], stored.get("top_p", 1.0)) == (True, 1.0, 0, 1.0)


@pytest.mark.parametrize("dataset", [specialty.dataset for specialty in first_swarm().specialties])
def test_both_readers_give_the_same_ids_on_every_kind_of_question(
    plain: Tokenizer, wrapped: Any, questions: dict[str, list[str]], dataset: str
) -> None:
    for text in questions[dataset]:
        _same(plain, wrapped, PLAIN.text(text))


@pytest.mark.parametrize("text", ODD)
def test_both_readers_give_the_same_ids_on_odd_text(plain: Tokenizer, wrapped: Any, text: str) -> None:
    _same(plain, wrapped, text)


@settings(max_examples=400, deadline=None)
@given(text=st.text(max_size=60) | st.text(alphabet="<>/|answer pdeos+-[].0123456789¬∨∧→↔\n", max_size=60))
def test_any_text_comes_back_as_it_was(plain: Tokenizer, wrapped: Any, text: str) -> None:
    _same(plain, wrapped, text)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=40))
def test_any_bytes_that_are_text_come_back_byte_for_byte(plain: Tokenizer, raw: bytes) -> None:
    text = raw.decode("utf-8", errors="replace")
    assert plain.decode(plain.encode(text).ids, skip_special_tokens=False).encode() == text.encode()


@pytest.mark.parametrize("dataset", [specialty.dataset for specialty in first_swarm().specialties])
def test_prompts_are_short(plain: Tokenizer, questions: dict[str, list[str]], dataset: str) -> None:
    assert all(len(plain.encode(PLAIN.text(text)).ids) <= 80 for text in questions[dataset])


def test_the_answer_tags_are_single_plain_tokens_and_only_pad_and_stop_are_special(plain: Tokenizer) -> None:
    added = {token.content: token.special for token in plain.get_added_tokens_decoder().values()}
    assert {content for content, special in added.items() if special} == {"<|pad|>", "<|eos|>"}
    assert not added["<answer>"]
    assert not added["</answer>"]
    assert len(plain.encode("<answer>7</answer>").ids) == 3


def test_no_added_token_is_a_single_character_of_the_byte_alphabet(plain: Tokenizer) -> None:
    added = {token.content for token in plain.get_added_tokens_decoder().values()}
    assert not added & set(pre_tokenizers.ByteLevel.alphabet())
    assert min(map(len, added)) > 1


def test_special_tokens_in_a_strangers_text_can_be_read_as_plain_text(plain: Tokenizer) -> None:
    plain.encode_special_tokens = True
    try:
        ids = plain.encode("5<|eos|>").ids
    finally:
        plain.encode_special_tokens = False
    assert plain.token_to_id("<|eos|>") not in ids


def test_it_knows_fractions_and_stops_by_itself(model: Any, plain: Tokenizer) -> None:
    right = 0
    for fraction, simplest in FRACTIONS.items():
        question = (
            f"Simplify the fraction {fraction} to its lowest terms. Give only the simplified fraction as your final answer."
        )
        ids = torch.tensor([plain.encode(PLAIN.text(question)).ids])
        with torch.inference_mode():
            grown = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10, top_k=None)
        right += grown[0, ids.shape[1] :].tolist() == [*plain.encode(simplest).ids, plain.token_to_id("<|eos|>")]
    assert right >= 4


def test_it_seldom_opens_the_answer_tag_but_is_able_to(model: Any, plain: Tokenizer, questions: dict[str, list[str]]) -> None:
    opening = plain.token_to_id("<answer>")
    chances = []
    for texts in questions.values():
        for text in texts[:20]:
            with torch.inference_mode():
                logits = model(torch.tensor([plain.encode(PLAIN.text(text)).ids])).logits[0, -1]
            chances.append(float(logits.softmax(-1)[opening]))
    assert 0.003 < sum(chances) / len(chances) < 0.03


def test_the_card_says_what_the_first_climb_is() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "behaviour being elicited" in card
    assert "waggle-lab starter --minutes" in card
