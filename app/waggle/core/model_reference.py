"""What a person types, pastes or drops to name a model: an address or a name of the hub, a folder, or a file in one. Pure."""

import re
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote, urlsplit

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.settings import ModelSettings

NAME = re.compile(r"([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([A-Za-z0-9][\w.-]*))?", re.ASCII)  # owner, name, revision
HUBS = ("huggingface.co", "hf.co", "www.huggingface.co")
VIEWS = ("tree", "blob", "resolve", "raw", "commit")  # parts of the hub's addresses, which a revision follows
NO_MODELS = ("datasets", "spaces", "collections", "papers", "docs", "blog")  # the first part of other addresses
OWN_PATH = re.compile(r"~|\.{0,2}[/\\]|[A-Za-z]:[/\\]")  # how a path begins
QUOTES = {'"': '"', "'": "'", "“": "”", "<": ">"}
WEIGHT_ENDINGS = (".safetensors", ".safetensors.index.json")
OTHER_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
LONGEST = 4096  # characters
WHAT_IT_TAKES = Message("Paste an address of huggingface.co, a name such as Qwen/Qwen3-0.6B, or the path of a folder.")


def parse(words: str) -> ModelSettings:
    """The model that the words name: `name` of the hub, or `folder`, neither of which may exist. Raises ModelError."""
    plain = _unquoted(words.strip())
    if not plain or len(plain) > LONGEST or any(ord(letter) < 32 for letter in plain):
        raise ModelError("This names no model.", WHAT_IT_TAKES)
    if plain.lower().startswith("file:"):
        return _of_path(_path_of_url(plain))
    if (address := hub_address(plain)) is not None:
        return _of_address(address)
    if "://" in plain:
        raise ModelError("This link is not from Hugging Face.", WHAT_IT_TAKES)
    if OWN_PATH.match(plain) or is_model_file(plain):
        return _of_path(plain)
    if NAME.fullmatch(plain):
        return _of_name(plain)
    raise ModelError("This names no model.", WHAT_IT_TAKES)


def is_reference(words: str) -> bool:
    """Whether the words are meant to name one model, rather than to be searched for. `parse` may still refuse them."""
    plain = _unquoted(words.strip())
    named = bool(NAME.fullmatch(plain) or OWN_PATH.match(plain)) or "://" in plain or plain.lower().startswith("file:")
    return named or hub_address(plain) is not None or is_model_file(plain)


def _unquoted(words: str) -> str:
    while len(words) > 1 and QUOTES.get(words[0]) == words[-1]:
        words = words[1:-1].strip()
    return words


def hub_address(words: str) -> str | None:
    """The path in an address of the hub, such as OWNER/NAME; None for anything else."""
    try:
        parts = urlsplit(words if "://" in words else f"https://{words}")
        is_of_hub = parts.scheme in ("http", "https") and parts.hostname in HUBS
    except ValueError:  # a malformed host
        return None
    return unquote(parts.path).strip("/") if is_of_hub else None


def _of_address(path: str) -> ModelSettings:
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["models"]:
        parts = parts[1:]
    if len(parts) < 2 or parts[0] in NO_MODELS:
        raise ModelError(
            "This Hugging Face address is not of a model.", "Addresses of models look like huggingface.co/OWNER/NAME."
        )
    name, rest = "/".join(parts[:2]), parts[2:]
    if rest and rest[-1].lower().endswith(".gguf"):
        raise _gguf_error(rest[-1])
    revision = rest[1] if len(rest) > 1 and rest[0] in VIEWS else ""
    if revision == "refs":
        raise ModelError("Waggle cannot open a proposed change of a model.", "Choose the model itself, or a commit of it.")
    whole = name if revision in ("", "main") else f"{name}@{revision}"
    if not NAME.fullmatch(whole):
        raise ModelError(
            "This Hugging Face address is not of a model.", "Addresses of models look like huggingface.co/OWNER/NAME."
        )
    return _of_name(whole)


def _of_name(name: str) -> ModelSettings:
    return ModelSettings(name=name.removesuffix("@main"))


def _of_path(path: str) -> ModelSettings:
    """A folder; of a file, the folder that it is in. A GGUF file is a whole model, and stays itself."""
    kind = PureWindowsPath if "\\" in path or re.match(r"[A-Za-z]:", path) else PurePosixPath
    is_within = is_model_file(path) and not path.lower().endswith(".gguf")  # a GGUF file is a whole model
    return ModelSettings(folder=str(kind(path).parent if is_within else kind(path)))


def is_model_file(path: str) -> bool:
    """Whether a path is of one of the files that models consist of, by its name."""
    lower = path.lower()
    return lower.endswith((*WEIGHT_ENDINGS, ".gguf")) or re.split(r"[/\\]", lower)[-1] in OTHER_FILES


def _path_of_url(url: str) -> str:
    path = unquote(urlsplit(url).path)
    return path[1:] if re.match(r"/[A-Za-z]:[/\\]", path) else path


def _gguf_error(file: str) -> ModelError:
    return ModelError(
        Message("Waggle does not download the GGUF file %1.", file),
        "Download it and choose the file, or better, choose the model it was made from: its page names it.",
    )
