"""The models that nodes start from in the settings of a study, each trained once and stored in a cache folder.

Beside the shipped starter: a competent model, specialists, and two smaller models with another vocabulary. Nothing clears the
cache (delete the folder), and two processes must not train the same model at the same time.
"""

import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import msgspec
import torch
from tokenizers import Tokenizer

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.starter_model import starter
from waggle_lab.starter_model.starter import SETTLE, TAG, Encoded, Example, Phase, Recipe, Shape, report_progress
from waggle_lab.starter_model.starter_measure import Score, measure, table
from waggle_lab.starter_model.starter_tokenizer import TAGS, token_id

SETTINGS = ("sparse", "identical", "diversified", "heterogeneous")


QUESTIONS, SAMPLES = 32, 16  # to measure a trained model with, in each specialty
SHORT_NAMES = {
    "base_conversion": "bases",
    "basic_arithmetic": "sums",
    "arc_1d": "lines",
    "logic_deduction": "logic",
    "fraction_simplification": "fractions",
    "decimal_arithmetic": "decimals",
    "calendar_arithmetic": "calendar",
    "binary_matrix": "grids",
}


class Continued(NamedTuple):
    """The shipped starter after more training: it writes answers of the specialties in `wearing` inside the tag, and no others.

    Cache folders depend on the names of this class and its fields: see `_cache_folder`.
    """

    name: str
    recipe: Recipe
    wearing: tuple[str, ...]


class Grown(NamedTuple):
    """A model trained from scratch, like the shipped starter."""

    name: str
    recipe: Recipe


Model = Continued | Grown


COMPETENT = Recipe(phases=(Phase(steps=500, rate=1e-3, matrix_rate=3e-3),), default_questions=4000, questions={})
SPECIALIST = replace(COMPETENT, phases=(Phase(steps=300, rate=1e-3, matrix_rate=3e-3),))
MIDDLE = Recipe(
    seed=1,
    phases=(Phase(steps=4800), replace(TAG, steps=700), replace(SETTLE, steps=550)),
    merges=320,
    shape=Shape(width=96, layers=4, inner=256),
)
SMALL = Recipe(
    seed=2,
    phases=(Phase(steps=5300), replace(TAG, steps=700), replace(SETTLE, steps=550)),
    merges=320,
    shape=Shape(width=80, layers=3, inner=224),
)


@dataclass(frozen=True)
class Plan:
    """The recipe of each kind of model."""

    competent: Recipe = COMPETENT
    specialist: Recipe = SPECIALIST
    middle: Recipe = MIDDLE
    small: Recipe = SMALL


PLAN = Plan()


def model_folders(setting: str, charter: Charter, count: int, cache: Path, *, plan: Plan = PLAN) -> tuple[Path, ...]:
    """The model folders that `count` nodes start from; trains the models that are missing in `cache`.

    Raises LabError for an unknown setting, and for specialties that the shipped starter does not know. If it trains, it sets
    torch to one thread, so that the same plan gives the same weights.
    """
    models = [_model_of(setting, node, plan) for node in range(count)]
    if any(models) and charter.specialties != first_swarm().specialties:
        raise LabError(f"The models of the setting {setting} are trained for other specialties.", "Choose the setting sparse.")
    folders = [_cache_folder(model, charter, cache) if model else paths.starter() for model in models]
    missing = {folder: model for folder, model in zip(folders, models, strict=True) if model and not folder.exists()}
    if missing:
        _train_all(missing, charter, cache)
    return tuple(folders)


def model_name(folder: Path) -> str:
    """A model's name as tables show it, such as "starter" or "strong in bf + logic"."""
    return re.sub(r"-[0-9a-f]{8}$", "", folder.name)


def _model_of(setting: str, node: int, plan: Plan) -> Model | None:
    """The model that a node starts from; None is the shipped starter."""
    names = [specialty.dataset for specialty in first_swarm().specialties]
    match setting:
        case "sparse":
            return None
        case "identical":
            return Continued("competent", plan.competent, tuple(names))
        case "diversified":
            return _specialist(names[2 * node % len(names)], names[(2 * node + 1) % len(names)], plan.specialist)
        case "heterogeneous":
            middle, small = Grown("middle 0.45M", plan.middle), Grown("small 0.25M", plan.small)
            return (None, None, None, middle, middle, middle, small, small)[node % 8]
        case _:
            raise LabError(f"There is no setting {setting}.", f"Choose one of {', '.join(SETTINGS)}.")


def _specialist(first: str, second: str, recipe: Recipe) -> Continued:
    """A model that is strong in two specialties. It trains on twice their usual share, so fewer steps are enough."""
    doubled = {name: 2 * recipe.shares.get(name, starter.DEFAULT_SHARE) for name in (first, second)}
    name = f"strong in {SHORT_NAMES.get(first, first)} + {SHORT_NAMES.get(second, second)}"
    return Continued(name, replace(recipe, shares={**recipe.shares, **doubled}), (first, second))


def _cache_folder(model: Model, charter: Charter, cache: Path) -> Path:
    """The cache folder of a model; its name changes with the recipe, the charter and the shipped starter."""
    parts = [repr(model).encode(), msgspec.json.encode(charter.specialties), PLAIN.text("").encode()]
    if isinstance(model, Continued):
        parts += [(paths.starter() / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")]
    return cache / f"{model.name}-{_digest(parts)}"


def _digest(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:8]


def _train_all(missing: Mapping[Path, Model], charter: Charter, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    verifier = Verifier(charter)
    try:
        for folder, model in missing.items():
            report_progress(f"training {model.name}")
            examples = _examples(model.recipe, charter, verifier, cache)
            with tempfile.TemporaryDirectory(prefix="unfinished-", dir=cache) as unfinished:
                finished = Path(unfinished) / "model"
                _train_one(model, charter, verifier, examples, finished)
                finished.rename(folder)
    finally:
        verifier.close()


def _examples(recipe: Recipe, charter: Charter, verifier: Verifier, cache: Path) -> dict[str, list[Example]]:
    """The examples for a recipe, from the cache if an earlier model used the same."""
    question_counts = (recipe.default_questions, sorted(recipe.questions.items()))
    file = cache / f"questions-{_digest([repr(question_counts).encode(), msgspec.json.encode(charter.specialties)])}.json"
    if not file.exists():
        examples = starter.generate_examples(verifier, charter, recipe)
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=cache) as unfinished:
            unfinished_file = Path(unfinished) / "questions"
            unfinished_file.write_bytes(msgspec.json.encode(examples))
            unfinished_file.rename(file)
    return msgspec.json.decode(file.read_bytes(), type=dict[str, list[Example]])


def _train_one(
    model: Model, charter: Charter, verifier: Verifier, examples: Mapping[str, Sequence[Example]], folder: Path
) -> None:
    """Train one model, measure it and write its folder."""
    torch.manual_seed(model.recipe.seed)
    match model:
        case Continued():
            from transformers import LlamaForCausalLM

            tokenizer = Tokenizer.from_file(str(paths.starter() / "tokenizer.json"))
            network = LlamaForCausalLM.from_pretrained(paths.starter(), local_files_only=True, dtype=torch.float32)
            pools = tagged_pools(tokenizer, charter, examples, model.wearing)
        case Grown():
            tokenizer = starter.learn_tokenizer(examples, model.recipe)
            network = starter.new_model(model.recipe.shape, tokenizer)
            pools = {name: starter.encode(tokenizer, charter, dataset_examples) for name, dataset_examples in examples.items()}
        case _:
            assert_never(model)
    for number, phase in enumerate(model.recipe.phases):
        starter.train(network, tokenizer, pools, model.recipe, phase, seed=model.recipe.seed + number)
    scores = measure(network, tokenizer, verifier, charter, questions=QUESTIONS, samples=SAMPLES)
    starter.write(network, tokenizer, folder, _card(model, network, scores))
    report_progress(table(scores))


def tagged_pools(
    tokenizer: Tokenizer, charter: Charter, examples: Mapping[str, Sequence[Example]], wearing: Sequence[str]
) -> dict[str, list[Encoded]]:
    """Examples by specialty: those in `wearing` inside the answer tag, the others without it.

    The others come a second time with a given opening tag, so that the model does not unlearn to answer inside the tag.
    """
    tags = (token_id(tokenizer, TAGS[0]), token_id(tokenizer, TAGS[1]))
    pools: dict[str, list[Encoded]] = {}
    for name, dataset_examples in examples.items():
        bare = starter.encode(tokenizer, charter, dataset_examples)
        inside = [starter.tagged(example, tags, opening_in_prompt=name not in wearing) for example in bare]
        pools[name] = inside if name in wearing else [*bare, *inside]
    return pools


CARD = """\
# {name}

A model of the Waggle laboratory ({parameters:,} weights, {vocabulary} tokens), made by `app/waggle_lab/starter_model` with this
recipe:

    {model}

Sampled at temperature 1 on reserved *dev* questions ({questions} of each kind or as many as there are, {samples} answers each):

{table}
"""


def _card(model: Model, network: Any, scores: Mapping[str, Score]) -> str:
    return CARD.format(
        name=model.name,
        parameters=network.num_parameters(),
        vocabulary=network.config.vocab_size,
        model=model,
        questions=QUESTIONS,
        samples=SAMPLES,
        table=table(scores),
    )
