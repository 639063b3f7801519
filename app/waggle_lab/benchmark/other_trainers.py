"""What the other trainers need for a comparison: a tokenizer with one token a word, and completions of forced lengths."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from waggle_lab.benchmark import cells
from waggle_lab.benchmark.cells import Cell


def load_model(folder: Path, precision: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=getattr(torch, precision))


def word_tokenizer(config: Any) -> Any:
    """A tokenizer of the model's size in which each token is a word: encoding a decoded text gives the same number of tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    special = {config.eos_token_id: "<end>", _pad(config): "<pad>"}
    vocabulary = {special.get(number, f"t{number}"): number for number in range(config.vocab_size)}
    word_level = Tokenizer(models.WordLevel(vocabulary, unk_token="t2"))
    word_level.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=word_level, pad_token="<pad>", eos_token="<end>", unk_token="t2", padding_side="left",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer


def _pad(config: Any) -> int:
    return int(config.eos_token_id - 2 if config.pad_token_id is None else config.pad_token_id)


def prompt_texts(cell: Cell, vocabulary: int) -> list[str]:
    """The prompts of a cell as texts for `word_tokenizer`."""
    return [" ".join(f"t{number}" for number in ids) for ids in cells.prompts(cell, vocabulary)]


class ForcedLengths:
    """A logits processor that ends each row at its given length and not before. Call `begin` before each `generate`."""

    def __init__(self, config: Any) -> None:
        self.lengths: Sequence[int] = ()
        self._forbidden, self._stop = [config.eos_token_id, _pad(config)], config.eos_token_id
        self._column = 0

    def begin(self, lengths: Sequence[int]) -> None:
        self.lengths, self._column = lengths, 0

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Set the scores of the next token, (rows, vocabulary), in place."""
        self._column += 1
        scores[:, self._forbidden] = -torch.inf
        ending = torch.from_numpy(np.flatnonzero(np.asarray(self.lengths) == self._column)).to(scores.device)
        scores[ending] = -torch.inf
        scores[ending, self._stop] = 0.0
        return scores
