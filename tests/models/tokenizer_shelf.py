"""A shelf of small tokenizers of all kinds, built here, each in a folder as transformers reads it."""

import json
from collections.abc import Callable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

CORPUS = [
    "What is the answer of 12 and 345? The answer is 7, and nothing else.",
    "Question: Is it so?\nAnswer: Yes, it is so.\n\nQuestion: What about it?\nAnswer: No.",
    "  Two spaces and\ttabs\n\n\nand lines. It's the user's model, isn't it? <answer>42</answer>",
    "größer, naïve, Ärger, çà et là: the words of others",
] * 3  # fmt: skip
BOS, EOS, TURN, END, PAD = SPECIALS = ("<s>", "</s>", "<|turn|>", "<|end|>", "<pad>")
CHAT = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|turn|>' + message.role + '\\n' + message.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn|>assistant\\n' }}{% endif %}"
)
BRACKETS = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}{{ '[INST] ' + message.content + ' [/INST]' }}"
    "{% else %}{{ ' ' + message.content + eos_token }}{% endif %}{% endfor %}"
)
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_level(*, prefix: bool = False, words: str = "") -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(words), behavior="isolated") if words else None
    ending = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not words)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, ending]) if split else ending
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _sentence_piece(
    normalizer: normalizers.Normalizer | None, splitter: pre_tokenizers.PreTokenizer | None, decoder: decoders.Decoder
) -> Tokenizer:
    """Byte pairs over words that begin with U+2581, and a token for each byte of unknown letters."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")  # no token has a space inside
    trained.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=200, limit_alphabet=60, special_tokens=["<unk>"], show_progress=False)
    )
    stored = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += [token for token in stored["vocab"] if token != "<unk>"]
    merges = [tuple(merge) for merge in stored["merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if splitter is not None:
        tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoder
    return tokenizer


def _prepend() -> Tokenizer:
    return _sentence_piece(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    )  # fmt: skip


def _metaspace(scheme: str, *, split: bool = True) -> Tokenizer:
    ending = [decoders.Strip(" ", 1, 0)] if scheme != "never" else []
    return _sentence_piece(
        None, pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *ending]),
    )  # fmt: skip


def _no_mark() -> Tokenizer:
    """Like Gemma's: spaces are marked, the beginning is not."""
    return _sentence_piece(
        normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
    )  # fmt: skip


def _unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte level": _byte_level,
    "byte level, words of Llama 3": lambda: _byte_level(words=LLAMA3_WORDS),
    "byte level with a space first": lambda: _byte_level(prefix=True),
    "prepend": _prepend,
    "metaspace first": lambda: _metaspace("first"),
    "metaspace first, not split": lambda: _metaspace("first", split=False),
    "metaspace always": lambda: _metaspace("always"),
    "metaspace never": lambda: _metaspace("never"),
    "no mark": _no_mark,
    "unigram": _unigram,
}
BEGINNINGS = {"no BOS": "$A", "BOS": "<s> $A", "two BOS": "<s> <s> $A", "BOS and EOS": "<s> $A </s>"}


def put(
    folder: Path, kind: str, *, beginning: str = "BOS", template: str = CHAT, settings: dict[str, object] | None = None
) -> Path:
    """Write a tokenizer of a kind, with several stop tokens and added words, into a folder."""
    tokenizer = KINDS[kind]()
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.add_special_tokens([AddedToken("<|strip|>", special=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<answer>", normalized=False), AddedToken("</answer>", normalized=False)])
    tokens = {name: tokenizer.token_to_id(name) for name in SPECIALS}
    tokenizer.post_processor = processors.TemplateProcessing(single=BEGINNINGS[beginning], special_tokens=[*tokens.items()])
    tokenizer.save(str(folder / "tokenizer.json"))
    words = {"bos_token": BOS, "eos_token": EOS, "pad_token": PAD, "tokenizer_class": "PreTrainedTokenizerFast"}
    chat = {"chat_template": template} if template else {}
    (folder / "tokenizer_config.json").write_text(json.dumps(words | chat | (settings or {})))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [tokens[EOS], tokens[PAD]]}))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": tokens[EOS], "model_type": "llama"}))
    return folder


def of_transformers(folder: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(folder)
