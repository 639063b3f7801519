"""Searches the Hugging Face Hub for language models by words, with the facts that help to choose one.

The request is that of `HfApi.list_models`, which would try again for half a minute while a person waits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from waggle.core import connection_faults
from waggle.core.errors import HubUnavailable, ModelError
from waggle.core.message import Message
from waggle.core.model_reference import NAME

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

TASKS = ("text-generation", "image-text-to-text", "any-to-any", "")  # of models that write text; not every page names one
FORM = "safetensors"  # the only one that Waggle reads
MOST, LOOKED_AT = 20, 60  # results, and models that the hub sends for them
BYTES: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2}  # else 1
EXPANDED = ("config", "downloads", "gated", "pipeline_tag", "safetensors", "tags")
SECONDS = 10.0  # to wait for the hub
LONGEST_NAME = 200  # characters, as in a command
LONGEST_LICENCE = 40  # characters
LARGEST = 1 << 50  # of a number of the hub: more is a mistake


@dataclass(frozen=True)
class HubModel:
    """One model. `weights` counts numbers, `size` their bytes; 0 if the hub does not say. `licence` is as the hub writes it."""

    name: str
    licence: str = ""
    gated: bool = False
    weights: int = 0
    size: int = 0
    downloads: int = 0
    quantised: bool = False


def search(words: str, *, endpoint: str | None = None) -> tuple[HubModel, ...]:
    """The most downloaded public models whose names contain the words, at most MOST. Without a token.

    Raises HubUnavailable, and ModelError for answers that are not the hub's.
    """
    import httpx2
    from huggingface_hub import constants, errors
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    connection_faults.require_usable_settings(ModelError, hub=True)
    query: dict[str, str | int | tuple[str, ...]] = {
        "search": words,
        "filter": FORM,
        "sort": "downloads",
        "limit": LOOKED_AT,
        "expand": EXPANDED,
    }
    try:
        response = get_session().get(
            f"{endpoint or constants.ENDPOINT}/api/models",
            params=query,
            headers=build_hf_headers(token=False),
            timeout=SECONDS,
        )
        hf_raise_for_status(response)
        return tuple(islice(_suitable(map(_info, response.json())), MOST))
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        kind = HubUnavailable if status >= 500 or status == 429 else ModelError
        if cause := connection_faults.cause_of(error):
            raise kind(cause.title, cause.advice) from error
        raise kind(Message("Hugging Face answered the search with %1.", status), "Try again later.") from error
    except (httpx2.TransportError, errors.OfflineModeIsEnabled) as error:
        if cause := connection_faults.cause_of(error):
            raise HubUnavailable(cause.title, cause.advice) from error
        raise HubUnavailable("Hugging Face cannot be reached.", "Check the connection, then search again.") from error
    except (httpx2.RequestError, ValueError, KeyError, TypeError, AttributeError) as error:  # no JSON, or another: a login page
        raise ModelError(
            "What answered is not Hugging Face.", "Does this network ask you to log in first? Open a page in your browser."
        ) from error


def _info(item: dict[str, Any]) -> "ModelInfo":
    from huggingface_hub import ModelInfo

    return ModelInfo(**item)  # type: ignore[no-untyped-call]


def _suitable(models: Iterable["ModelInfo"]) -> Iterable[HubModel]:
    for info in models:
        if len(info.id) <= LONGEST_NAME and NAME.fullmatch(info.id) and (info.pipeline_tag or "") in TASKS:
            yield _model_of(info)


def _model_of(info: "ModelInfo") -> HubModel:
    tags = [tag for tag in info.tags or () if isinstance(tag, str)]
    licence = next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")
    counts = _counts(info.safetensors)
    return HubModel(
        name=info.id,
        licence=licence[:LONGEST_LICENCE],
        gated=bool(info.gated),
        weights=sum(counts.values()),
        size=sum(BYTES.get(precision, 1) * count for precision, count in counts.items()),
        downloads=_positive(info.downloads),
        quantised=isinstance(info.config, dict) and bool(info.config.get("quantization_config")),
    )


def _counts(safetensors: Any) -> dict[str, int]:
    """The number of weights in each precision."""
    parameters = getattr(safetensors, "parameters", None)
    return {str(name): _positive(count) for name, count in parameters.items()} if isinstance(parameters, dict) else {}


def _positive(number: Any) -> int:
    return number if isinstance(number, int) and 0 < number < LARGEST else 0
