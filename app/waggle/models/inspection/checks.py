"""The checks of an inspection. They run in its child process, and read what opening the model reads."""

import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from safetensors import SafetensorError

from waggle.core.errors import ModelError
from waggle.core.message import Figure, Message
from waggle.models import chat_template, tokenizer, tokenizer_conversion
from waggle.models.chat_template import ChatTemplateError
from waggle.models.inspection import growth
from waggle.models.inspection.report import ConfigurationReport, TemplateReport, TokenizerReport, WeightsReport
from waggle.models.shared import generic_config, model_files, weight_files
from waggle.models.shared.configuration.counted_config import CountedConfig
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.model_files import unread
from waggle.models.shared.weight_files import StoredArray

LONGEST_TOKEN = 1 << 14  # characters; those of honest models stay below 200
LETTERS = 2000  # of a trial text
PLAIN = "What is 2 + 3?"
TRIALS = (
    "What is 2 + 3?\nThink first, then write <answer>5</answer>.  ",
    "größer “naïve” 你好，世界 привет 🐝👩‍🚀 \t\r\n \u00a0\u200b\ufeff",
    *(letter * LETTERS for letter in ("a", "A", "1", " ", "\n", "!", "▁", "é", "字", "\0")),
    *(pair * (LETTERS // 2) for pair in ("ab", "a ", " a", "1,", "a\n", "'s", "Aa")),
    *(letter * LETTERS + "!\n" for letter in ("a", "1", " ")),
)


def template(folder: Path) -> TemplateReport:
    """Render the chat template, in a process of its own, as opening the model does. Raises ModelError."""
    try:
        chat = chat_template.read(folder)
    except ChatTemplateError as error:
        return TemplateReport(problem=error.reason)
    if chat is not None:
        chat.after_answer()  # rendered while there can be another process; kept for `words`
    return TemplateReport(usable=chat is not None)


def configuration(folder: Path) -> ConfigurationReport:
    """Read config.json. Raises ModelError."""
    shape = generic_config.read_any(folder)
    return ConfigurationReport(
        model_type=shape.model_type,
        generic=isinstance(shape, GenericConfig),
        rows=shape.vocab_size,
        context=shape.max_position_embeddings,
        parameters=shape.number_of_weights,
    )


def weights(folder: Path) -> WeightsReport:
    """Read the headers of all weight files: every weight must be there in its shape. Raises ModelError."""
    shape = generic_config.read_any(folder)
    try:
        arrays = weight_files.arrays_by_name(folder)
        if not isinstance(shape, CountedConfig):
            weight_files.places(folder, shape.weights(), arrays)
        elif isinstance(shape, GenericConfig) and find_spec("torch") is not None:
            _require_complete(folder, arrays)
        return WeightsReport(
            parameters=sum(math.prod(array.shape) for array in arrays.values()),
            file_bytes=sum(path.stat().st_size for path in weight_files.files_of(folder)),
            precisions=tuple(sorted({array.precision for array in arrays.values()})),
        )
    except (OSError, SafetensorError) as error:
        raise unread(folder, error) from error


def _require_complete(folder: Path, arrays: Mapping[str, StoredArray]) -> None:
    from waggle.models.shared import transformers_model

    transformers_model.require_complete(folder, arrays)


def words(folder: Path) -> TokenizerReport:
    """Load the tokenizer, and encode and decode texts with it. Raises ModelError."""
    return words_within(folder, generic_config.read_any(folder).vocab_size)


def words_within(folder: Path, rows: int) -> TokenizerReport:
    """The same for an embedding of so many rows."""
    content = model_files.content_of(folder / tokenizer_conversion.TOKENIZER, tokenizer.LARGEST)
    try:
        factor = growth.growth_of(content)
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelError(Message("The tokenizer in %1 cannot be read: %2.", folder, error), ANOTHER) from error
    if factor > growth.MOST:
        raise ModelError(
            Message("The tokenizer in %1 may make a text more than %2 times as long.", folder, Figure(growth.MOST)), ANOTHER
        )
    loaded = tokenizer.load(folder, rows=rows)
    if loaded.longest_token > LONGEST_TOKEN:
        raise ModelError(
            Message("The tokenizer in %1 has a token of %2 characters.", folder, Figure(loaded.longest_token)), ANOTHER
        )
    for text in TRIALS:
        ids = loaded.prompt(text).followed_by(text).ids
        loaded.decode_continuation(ids[-LETTERS:])
    if not loaded.decode(loaded.encode(PLAIN)).strip():
        raise ModelError(Message("The tokenizer in %1 has no tokens for plain text.", folder), ANOTHER)
    return TokenizerReport(largest=loaded.largest, stops=loaded.stops)
