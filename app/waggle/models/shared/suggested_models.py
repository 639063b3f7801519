"""The models of the hub that Waggle suggests, as resources/models.json lists them: enough to say without a network what fits."""

from functools import cache
from typing import Annotated

import msgspec

from waggle.core import paths
from waggle.core.model_reference import NAME
from waggle.models.shared.configuration.model_config import ARCHITECTURES, Layers, ModelConfig, Positive
from waggle.models.shared.generic_config import GenericConfig

Count = Annotated[int, msgspec.Meta(ge=1)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes in a model's config.json that memory and speed depend on. All of these models tie their embeddings."""

    vocab_size: Positive
    hidden_size: Positive
    intermediate_size: Positive
    num_hidden_layers: Layers
    num_attention_heads: Positive
    num_key_value_heads: Positive
    head_dim: Positive
    max_position_embeddings: Positive


class SuggestedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. `weights` counts numbers, and `download` bytes, to about a hundredth.

    `gated`: the hub gives it only to people who accepted its licence with an account. `good_at` is one sentence.
    """

    name: Annotated[str, msgspec.Meta(pattern=rf"^{NAME.pattern}$")]
    title: Words
    licence: Words
    gated: bool
    weights: Count
    download: Count
    good_at: Words
    model_type: Words
    shape: Shape

    @property
    def configuration(self) -> ModelConfig:
        """What the memory fit needs of its config.json, on the path that will compute it."""
        fields = {
            "model_type": self.model_type,
            "tie_word_embeddings": True,
            "dtype": "bfloat16",
            **msgspec.structs.asdict(self.shape),
        }
        if self.model_type in ARCHITECTURES:
            return msgspec.convert(fields, ModelConfig)
        return msgspec.convert({**fields, "counted": self.weights}, GenericConfig)


@cache
def suggested_models() -> tuple[SuggestedModel, ...]:
    """All of them, smallest first."""
    return msgspec.json.decode((paths.resources() / "models.json").read_bytes(), type=tuple[SuggestedModel, ...])


def title_of(name: str) -> str:
    """What Waggle calls a model of the hub: by its title if it suggests it, else by its name."""
    return next((model.title for model in suggested_models() if model.name == name), name)
