"""The configuration of a model that another library computes: settings have many names, and weights are counted."""

from collections.abc import Callable
from typing import Any

from waggle.core.message import Message
from waggle.models.shared.configuration.model_config import ModelConfig

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
Settings = Callable[[str], Any]  # the value of a setting, or None


class CountedConfig(ModelConfig, frozen=True, kw_only=True):
    """A model of another library. `counted` is the number of weights: from the headers of the weight files, or about that before
    they are downloaded.
    """

    counted: int

    @property
    def number_of_weights(self) -> int:
        return self.counted

    def bytes_per_layer(self, size: int) -> int:
        """See `ModelConfig`. Libraries keep more than the fast path: norms in fp32, and queries before their rotation."""
        return size * (14 * self.hidden_size + 3 * self.intermediate_size)


def number(settings: Settings, *names: str, default: int | None = None) -> int:
    """The first of these settings that the model has; of a list with a number for each layer, the largest.

    Raises ValueError if it has none of them and there is no default, and TypeError for what is no number.
    """
    for name in names:
        value = settings(name)
        if isinstance(value, list | tuple) and value:
            value = max(value)
        if value is not None:
            return int(value)
    if default is None:
        raise ValueError(Message("%1 is missing", names[0]))
    return default


def estimated_weights(shape: ModelConfig, settings: Settings) -> int:
    """About how many weights a model has, by its configuration alone. Raises as `number` does."""
    experts = max(1, number(settings, *EXPERTS, default=1))
    inner = number(settings, "moe_intermediate_size", default=shape.intermediate_size) * experts
    attention = shape.head_dim * (2 * shape.num_attention_heads + 2 * shape.num_key_value_heads)
    layers = shape.num_hidden_layers * shape.hidden_size * (attention + 3 * max(inner, shape.intermediate_size))
    return layers + shape.vocab_size * shape.hidden_size * (1 if shape.tie_word_embeddings else 2)
