"""The layers of a model of mlx-lm, changed in place: computed twice if memory is short, with windows that the module lacks."""

from collections.abc import Sequence
from typing import Any, Protocol

import mlx.core as mx

from waggle.models.mlx_generic.caches import arrays_of, caches_in, with_arrays
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules


class LayerOwner(Protocol):
    """The model of the layers."""

    @property
    def recompute(self) -> bool: ...

    @property
    def is_learning(self) -> bool: ...


def prepare_layers(layers: Sequence[Any], windows: Sequence[int | None], owner: LayerOwner) -> list[int | None]:
    """Change all layers. `windows` has the sliding window of each, or is empty.

    Returns a list of these windows: who changes it changes the layers.
    """
    of_layers: list[int | None] = list(windows) if len(windows) == len(layers) else [None for _ in layers]
    for number, layer in enumerate(layers):
        _prepare(layer, number, of_layers, owner)
    return of_layers


def _prepare(layer: Any, number: int, windows: list[int | None], owner: LayerOwner) -> None:
    usual = type(layer)
    create_mask = mlx_lm_modules.part("models.base").create_attention_mask

    class Layer(usual):  # type: ignore[misc, valid-type]
        def __call__(self, x: mx.array, *arguments: Any, **options: Any) -> Any:
            if window := windows[number]:
                cache = options.get("cache", arguments[1] if len(arguments) > 1 else None)
                mask = create_mask(x, cache, window_size=window, return_array=True)
                if arguments:
                    arguments = (mask, *arguments[1:])
                else:
                    options["mask"] = mask
            if owner.recompute and owner.is_learning:
                return _computed_twice(self, super().__call__, (x, *arguments), options)
            return super().__call__(x, *arguments, **options)

    layer.__class__ = Layer


def _computed_twice(layer: Any, compute: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A layer without its activations in memory (activation checkpointing, arXiv 1604.06174): they are computed again backward.

    Caches are values here: the second time, the layer must find them as they were the first time.
    """
    places = [
        (module, key)
        for module in layer.modules()
        for key, value in module.items()
        if isinstance(value, mx.array) and not key.startswith("_")
    ]
    before = with_arrays((arguments, options), arrays_of((arguments, options)))  # copies of the caches
    after: Any = None
    shape: Any = None

    def run(weights: list[mx.array], inputs: list[mx.array]) -> list[mx.array]:
        nonlocal after, shape
        outside = [module[key] for module, key in places]
        for (module, key), weight in zip(places, weights, strict=True):
            dict.__setitem__(module, key, weight)
        try:
            values, named = with_arrays(before, inputs)
            shape = compute(*values, **named)
            after = caches_in((values, named))
        finally:
            for (module, key), weight in zip(places, outside, strict=True):
                dict.__setitem__(module, key, weight)
        return [*arrays_of(shape), *arrays_of(after)]

    outputs = mx.checkpoint(run)([module[key] for module, key in places], arrays_of(before))
    count = len(arrays_of(shape))
    grown = with_arrays(after, outputs[count:])
    for cache, new in zip(caches_in((arguments, options)), grown, strict=True):
        vars(cache).update(vars(new))
    return with_arrays(shape, outputs[:count])
