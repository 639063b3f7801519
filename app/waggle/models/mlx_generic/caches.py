"""mlx-lm's prompt caches as values: their rows chosen and repeated, merged over prompts, and taken apart into arrays.

A cache of mlx-lm changes in place. Its arrays have one row for each text, as their first axis.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx

from waggle.models.shared.mlx_lm import modules as mlx_lm_modules

Caches = list[Any]  # one for each layer that has one


def empty(network: Any) -> Caches:
    """Caches for decoding."""
    caches: Caches = mlx_lm_modules.part("models.cache").make_prompt_cache(network)
    return caches


def empty_for_learning(network: Any) -> Caches:
    """Caches through which gradients flow, with no more room than they need."""
    library = mlx_lm_modules.part("models.cache")
    return [library.ConcatenateKVCache() if type(cache) is library.KVCache else cache for cache in empty(network)]


def select(caches: Any, rows: mx.array) -> Any:
    """These rows of caches, in this order; a row may be there several times."""
    return mapped(caches, lambda array: array[rows] if array.ndim else array)


def merge(prompts: Sequence[Caches]) -> Caches:
    """One batch of the caches of single prompts of any lengths. Raises AttributeError for caches that cannot be merged."""
    return [layer[0].merge(list(layer)) for layer in zip(*prompts, strict=True)]


def mapped(value: Any, change: Callable[[mx.array], mx.array]) -> Any:
    """A copy of lists, tuples, dictionaries and caches with every array changed."""
    if isinstance(value, mx.array):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(part, change) for part in value)
    if type(value) is dict:
        return {name: mapped(part, change) for name, part in value.items()}
    if is_cache(value):
        result = copy.copy(value)
        for name, part in vars(value).items():
            setattr(result, name, mapped(part, change))
        return result
    return value


def arrays_of(value: Any) -> list[mx.array]:
    """All arrays in lists, tuples, dictionaries and caches."""
    arrays: list[mx.array] = []

    def collect(array: mx.array) -> mx.array:
        arrays.append(array)
        return array

    mapped(value, collect)
    return arrays


def with_arrays(value: Any, arrays: Sequence[mx.array]) -> Any:
    """A copy with these arrays in the place of those that `arrays_of` returns."""
    rest: Iterator[mx.array] = iter(arrays)
    return mapped(value, lambda _: next(rest))


def caches_in(value: Any) -> list[Any]:
    """The caches in lists, tuples and dictionaries."""
    if is_cache(value):
        return [value]
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return [cache for part in parts for cache in caches_in(part)]


def is_cache(value: Any) -> bool:
    return type(value).__module__ == "mlx_lm.models.cache"
