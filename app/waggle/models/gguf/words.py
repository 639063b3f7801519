"""The tokenizer, stop tokens and chat template of a GGUF file, as files of a transformers folder.

Byte-level tokenizers are written as they stand in the file, with the split that llama.cpp has under the name in `ggml.pre`.
transformers' own reading takes GPT-2's split where it does not know a name. SentencePiece's are rebuilt by transformers. For a
process of its own.
"""

import json
from typing import Any

from waggle.core.message import Message
from waggle.models.gguf.header import Header, UnreadableError

CONTROL, USER_DEFINED, UNUSED = 3, 4, 5  # kinds of tokens
AS_GPT2 = ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4")  # texts are split as GPT-2 does
DIGITS_FIRST = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")  # the same, after each digit
# Words of the vocabulary need no merges.
WHOLE_WORDS = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken")
STOPS = ("eos", "eot", "eom")  # ends of a text, a turn and a message
# A file names fewer stop tokens than models have; programs to chat in know these by their text, too.
STOPS_BY_TEXT = frozenset(
    ("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<EOT>",
     "_<EOT>", "<end_of_utterance>")
)  # fmt: skip
NAMED = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


def files(header: Header) -> dict[str, str]:
    """tokenizer.json, tokenizer_config.json and generation_config.json. Raises UnreadableError, and whatever libraries raise."""
    words, kinds = _field(header, "tokens"), header.fields.get("tokenizer.ggml.token_type") or []
    if not all(isinstance(word, str) for word in words) or len(set(words)) < len(words) or len(kinds) not in (0, len(words)):
        raise UnreadableError("it has a damaged vocabulary")
    settings: dict[str, Any] = {name: words[id_] for name, of in NAMED.items() if (id_ := _id(header, of, words)) is not None}
    template = header.fields.get("tokenizer.chat_template")
    if isinstance(template, str) and template:
        settings["chat_template"] = template
    stops = {id_ for name in STOPS if (id_ := _id(header, name, words)) is not None}
    stops |= {id_ for id_, kind in enumerate(kinds) if kind == CONTROL and words[id_] in STOPS_BY_TEXT}
    ordered = sorted(stops, key=lambda id_: (id_ != header.fields.get("tokenizer.ggml.eos_token_id"), id_))
    return {
        "tokenizer.json": _tokenizer(header, words, kinds),
        "tokenizer_config.json": json.dumps(settings),
        "generation_config.json": json.dumps({"eos_token_id": ordered} if stops else {}),
    }


def _field(header: Header, name: str) -> list[Any]:
    value = header.fields.get(f"tokenizer.ggml.{name}")
    if not isinstance(value, list):
        raise UnreadableError(Message("it has no %1 of a tokenizer", name))
    return value


def _id(header: Header, name: str, words: list[str]) -> int | None:
    value = header.fields.get(f"tokenizer.ggml.{name}_token_id")
    if value is not None and not (isinstance(value, int) and 0 <= value < len(words)):
        raise UnreadableError("it has a special token that is no token")
    return value


def _tokenizer(header: Header, words: list[str], kinds: list[int]) -> str:
    kind = header.fields.get("tokenizer.ggml.model")
    table = _byte_level(header, words, kinds) if kind == "gpt2" else json.loads(_of_transformers(header))
    if header.fields.get("tokenizer.ggml.add_bos_token", kind == "llama") and (first := _id(header, "bos", words)) is not None:
        table["post_processor"] = _beginning(words[first], first)
    return json.dumps(table, ensure_ascii=False)


def _byte_level(header: Header, words: list[str], kinds: list[int]) -> dict[str, Any]:
    merges = [merge.split(" ") for merge in _field(header, "merges")]
    if any(len(merge) != 2 for merge in merges):
        raise UnreadableError("it has damaged merges")
    special = {id_: kind == CONTROL for id_, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)}
    added = [_added(id_, words[id_], is_special=special[id_]) for id_ in special]
    unused = {id_ for id_, kind in enumerate(kinds) if kind == UNUSED}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _splitter(header)},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": header.fields.get("tokenizer.ggml.pre") in WHOLE_WORDS,
            "vocab": {word: id_ for id_, word in enumerate(words) if id_ not in unused}, "merges": merges,
        },
    }  # fmt: skip


def _added(id_: int, word: str, *, is_special: bool) -> dict[str, Any]:
    alone = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id_, "content": word, **alone, "special": is_special}


def _splitter(header: Header) -> list[dict[str, Any]]:
    """The steps that split texts into words. Raises UnreadableError."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    name = header.fields.get("tokenizer.ggml.pre")
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    if name in DIGITS_FIRST:
        return [{"type": "Digits", "individual_digits": True}, to_bytes | {"use_regex": True}]
    if name in AS_GPT2:
        return [to_bytes | {"use_regex": True}]
    if name not in GGUF_PRE_TOKENIZER_SPLITS:
        raise UnreadableError(Message("it splits texts in a way that Waggle does not know (%1)", str(name)[:40]))
    pattern = {"Regex": GGUF_PRE_TOKENIZER_SPLITS[name]}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    return [split, to_bytes | {"use_regex": False}]


def _of_transformers(header: Header) -> str:
    from transformers.integrations.gguf import GGUF_TOKENIZER_MAPPING, convert_gguf_tokenizer

    names = GGUF_TOKENIZER_MAPPING["tokenizer"]
    table = {new: header.fields[f"tokenizer.{old}"] for old, new in names.items() if f"tokenizer.{old}" in header.fields}
    if (kind := table.get("tokenizer_type")) != "llama":
        raise UnreadableError(Message("it has a tokenizer of type %1, which Waggle does not convert", str(kind)[:40]))
    tokenizer, _ = convert_gguf_tokenizer(header.architecture, table)
    return str(tokenizer.to_str())


def _beginning(word: str, id_: int) -> dict[str, Any]:
    """A post-processor that puts this token before every text."""
    first, text = {"SpecialToken": {"id": word, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing", "single": [first, text], "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {word: {"id": word, "ids": [id_], "tokens": [word]}},
    }  # fmt: skip
