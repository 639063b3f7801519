"""Which model names stand on a public page: a stranger could write anything there, under a name that looks official."""

import functools
import re
from collections.abc import Collection

import msgspec

from waggle.core import paths

NOT_NAMED = ""  # what stands in the place of other names; the page says so


def vouched(name: str, by_trusted: Collection[str]) -> str:
    """The name if a trusted peer uses it too, or if it is one that Waggle itself gives; else NOT_NAMED."""
    return name if name in by_trusted or _known().fullmatch(name) else NOT_NAMED


@functools.cache
def _known() -> re.Pattern[str]:
    """The starter and the suggested models as nodes name them: the folder of a download, with its revision, and the size."""
    suggested = msgspec.json.decode((paths.resources() / "models.json").read_bytes(), type=list[dict[str, object]])
    folders = "|".join(re.escape(str(model["name"]).rpartition("/")[2]) for model in suggested)
    return re.compile(rf"(?:Starter|(?:{folders})(?:@[0-9a-f]{{1,40}})?) [0-9]{{1,4}}\.[0-9][MB]")
