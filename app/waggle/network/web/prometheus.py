"""Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats)."""

import math
from collections.abc import Iterable
from typing import Literal

Sample = tuple[dict[str, str], float | None]  # labels and value; None: not measured, so that it is left out


def metric(name: str, kind: Literal["gauge", "counter"], words: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of one metric with its HELP and TYPE."""
    lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples if value is not None]
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *lines]


def _labels(labels: dict[str, str]) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
