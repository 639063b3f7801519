"""The recipe of the starter model that ships with Waggle: a very small Llama, trained from scratch on questions of the charter.

It first learns answers, and then to write about one answer in a hundred inside the answer tag, so that reinforcement learning has
something to discover. transformers is imported inside functions, because it takes seconds. Nothing here serves large models: no
several devices, mixed precision or resuming.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

from waggle.core import paths
from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.charter import Charter
from waggle.tasks.questions import QuestionKey, split_of
from waggle.tasks.sandbox.verifier import Verifier, batched
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.argument_types import real
from waggle_lab.starter_model import starter_tokenizer
from waggle_lab.starter_model.starter_measure import Score, measure, sampling_settings, table
from waggle_lab.starter_model.starter_tokenizer import PAD, STOP, TAGS, token_id

FIRST_SEED = 1 << 40  # far from the seeds of held-out questions; `split_of` excludes reserved ones anyway
QUESTIONS_PER_REQUEST = 1000  # well within the time limit and the cache of the verifier
STEPS_PER_MINUTE = 550  # of one core of a 2024 server; fixed, so that a command gives the same model on every computer
QUESTIONS = {
    "basic_arithmetic": 40_000,
    "arc_1d": 150_000,
    "bf": 40_000,
    "logic_deduction": 60_000,
    "decimal_arithmetic": 60_000,
    "calendar_arithmetic": 60_000,
    "binary_matrix": 50_000,
}
SHARES = {"arc_1d": 2.5, "bf": 0.8, "binary_matrix": 0.8}  # relative frequency among the training examples
DEFAULT_SHARE = 1.2  # of all other specialties
IGNORED = -100  # the target of a position that has none
TOKENIZER_QUESTIONS = 4000  # of each specialty, to train the tokenizer


class Example(NamedTuple):
    """A question of the training split, and its true answer."""

    dataset: str
    question: str
    answer: str


class Encoded(NamedTuple):
    """Token ids of a prompt and of the answer to write, which ends with the stop token."""

    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True)
class Shape:
    """The size of the network; the defaults give about 0.85 million weights."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 2
    inner: int = 352


@dataclass(frozen=True)
class Phase:
    """A phase of training: its peak learning rates, and how many answers are inside the answer tag.

    A *given* opening tag is part of the prompt: the model learns to answer inside the tag and to close it, but not to open it. So
    the two shares set separately whether the model can use the tag and how often it does.
    """

    steps: int
    rate: float = 3e-3  # of embeddings and norms
    matrix_rate: float = 1e-2  # of the layers' matrices; 2e-2 and 5e-2 learn more slowly
    tag_share: float = 0.0  # of examples in which the model has to write both tags
    given_share: float = 0.0  # of examples in which the opening tag is given


KNOW = Phase(steps=18 * STEPS_PER_MINUTE)
TAG = Phase(steps=1400, rate=2e-3, matrix_rate=6e-3, tag_share=0.014, given_share=0.3)
SETTLE = Phase(steps=1100, rate=2e-3, matrix_rate=6e-3, tag_share=0.01, given_share=0.4)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the model, apart from the charter.

    The names of the fields of a recipe are part of the names of cache folders: see `setting_models`.
    """

    seed: int = 0
    phases: tuple[Phase, ...] = (KNOW, TAG, SETTLE)
    batch: int = 32
    merges: int = 640
    default_questions: int = 20_000
    questions: Mapping[str, int] = field(default_factory=lambda: QUESTIONS)
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)
    shape: Shape = Shape()


def make_examples(verifier: Verifier, dataset: str, count: int, first_seed: int = FIRST_SEED) -> list[Example]:
    """Generate `count` questions with answers; returns those that are distinct and not reserved."""
    answers: dict[str, str] = {}
    for keys in batched([QuestionKey(dataset, first_seed + i) for i in range(count)], QUESTIONS_PER_REQUEST):
        for question, answer in zip(verifier.questions(keys), verifier.answers(keys), strict=True):
            if split_of(dataset, question.text) == "train":
                answers.setdefault(question.text, answer)
    return [Example(dataset, text, answer) for text, answer in answers.items()]


def generate_examples(verifier: Verifier, charter: Charter, recipe: Recipe) -> dict[str, list[Example]]:
    """Generate the examples of every specialty, as many as the recipe says."""
    examples: dict[str, list[Example]] = {}
    for specialty in charter.specialties:
        count = recipe.questions.get(specialty.dataset, recipe.default_questions)
        examples[specialty.dataset] = make_examples(verifier, specialty.dataset, count)
        report_progress(f"{specialty.dataset}: {len(examples[specialty.dataset])} distinct questions")
    return examples


def encode(tokenizer: Tokenizer, charter: Charter, examples: Sequence[Example]) -> list[Encoded]:
    """Encode prompts as a policy reads them, and answers as it should write them, with the stop token."""
    stop = token_id(tokenizer, STOP)
    prompts = tokenizer.encode_batch([PLAIN.text(example.question) for example in examples], add_special_tokens=False)
    answers = tokenizer.encode_batch([example.answer.strip() for example in examples], add_special_tokens=False)
    return [Encoded(prompt.ids, [*answer.ids, stop]) for prompt, answer in zip(prompts, answers, strict=True)]


def tagged(example: Encoded, tags: tuple[int, int], *, opening_in_prompt: bool) -> Encoded:
    """Put the answer inside the tag; the stop token stays last. `opening_in_prompt` moves the opening tag to the prompt."""
    closed = [*example.answer[:-1], tags[1], example.answer[-1]]
    return Encoded([*example.prompt, tags[0]], closed) if opening_in_prompt else Encoded(example.prompt, [tags[0], *closed])


def add_tags(batch: Sequence[Encoded], tags: tuple[int, int], phase: Phase, rng: random.Random) -> list[Encoded]:
    """Put the shares of answers that the phase names inside the answer tag."""
    drawn = [rng.random() for _ in batch]
    tagged_share = phase.tag_share + phase.given_share
    return [
        tagged(example, tags, opening_in_prompt=chance >= phase.tag_share) if chance < tagged_share else example
        for example, chance in zip(batch, drawn, strict=True)
    ]


def new_model(shape: Shape, tokenizer: Tokenizer) -> Any:
    """A new Llama with tied embeddings and weights from torch's generator."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        initializer_range=0.04,
        bos_token_id=None,
        eos_token_id=token_id(tokenizer, STOP),
        pad_token_id=token_id(tokenizer, PAD),
        dtype="float32",
    )
    return LlamaForCausalLM(config)


def batches(
    pools: Mapping[str, Sequence[Encoded]], shares: Mapping[str, float], size: int, rng: random.Random
) -> Iterator[list[Encoded]]:
    """Endless batches, with specialties drawn by share, and with examples of similar length to save padding."""
    names = sorted(pools)
    weights = [shares.get(name, DEFAULT_SHARE) for name in names]
    while True:
        drawn = [rng.choice(pools[name]) for name in rng.choices(names, weights, k=size * 32)]
        drawn.sort(key=lambda example: len(example.prompt) + len(example.answer))
        drawn_batches = [drawn[first : first + size] for first in range(0, len(drawn), size)]
        rng.shuffle(drawn_batches)
        yield from drawn_batches


def tensors(batch: Sequence[Encoded], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, targets), both (B, T) and right-padded; only positions before a token of the answer have a target."""
    longest = max(len(prompt) + len(answer) for prompt, answer in batch) - 1
    inputs = torch.full((len(batch), longest), pad)
    targets = torch.full((len(batch), longest), IGNORED)
    for row, (prompt, answer) in enumerate(batch):
        end = len(prompt) + len(answer) - 1
        inputs[row, :end] = torch.tensor(prompt + answer[:-1])
        targets[row, len(prompt) - 1 : end] = torch.tensor(answer)
    return inputs, targets


def loss_of(model: Any, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of the answer tokens; the output head runs at their positions only."""
    hidden = model.model(input_ids=inputs, use_cache=False).last_hidden_state  # (B, T, D)
    has_target = targets != IGNORED
    return cross_entropy(model.lm_head(hidden[has_target]), targets[has_target])


def make_optimizers(model: Any, phase: Phase) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices (fewer steps to the same loss at this size), AdamW for embeddings and norms."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    matrix_ids = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in matrix_ids]
    return [
        torch.optim.Muon(matrices, lr=phase.matrix_rate, weight_decay=0.01),
        torch.optim.AdamW(others, lr=phase.rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate_at(step: int, steps: int) -> float:
    """The learning rate as a share of its peak: a short warm-up, a plateau, and a linear decay to 0 in the last 60%."""
    warm_up = min(1.0, (step + 1) / max(1, min(100, steps // 10)))
    return warm_up * min(1.0, (1 - step / steps) / 0.6)


def train(
    model: Any, tokenizer: Tokenizer, pools: Mapping[str, Sequence[Encoded]], recipe: Recipe, phase: Phase, *, seed: int
) -> list[float]:
    """Train one phase, in place; returns the loss of each step."""
    rng = random.Random(seed)
    tags = (token_id(tokenizer, TAGS[0]), token_id(tokenizer, TAGS[1]))
    pad = token_id(tokenizer, PAD)
    training_batches = batches(pools, recipe.shares, recipe.batch, rng)
    optimizers = make_optimizers(model, phase)
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    losses: list[float] = []
    model.train()
    for step in range(phase.steps):
        loss = loss_of(model, *tensors(add_tags(next(training_batches), tags, phase, rng), pad))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * rate_at(step, phase.steps)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 250 == 249:
            report_progress(f"step {step + 1} of {phase.steps}, loss {sum(losses[-250:]) / 250:.3f}")
    return losses


class CardFacts(NamedTuple):
    """Facts for the model card, beside the recipe."""

    command: str
    charter: str
    examples: int
    questions: int
    samples: int
    scores: Mapping[str, Score]


def write(model: Any, tokenizer: Tokenizer, folder: Path, card: str) -> None:
    """Save a plain transformers folder: weights in fp32, tokenizer, generation settings and the model card."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = sampling_settings(tokenizer)
    model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # save_pretrained makes it readable for its owner only
    starter_tokenizer.save(tokenizer, folder)
    (folder / "README.md").write_text(card, encoding="utf-8")


CARD = """\
---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# Waggle starter

A very small Llama ({parameters:,} weights, {layers} layers, width {width}, {vocabulary} tokens) that ships with Waggle, so that a
swarm can learn visibly on ordinary computers within minutes, without a download. It continues prompts of the form
`question`, newline, `Answer:` for {specialties} kinds of short puzzle, and knows nothing else: it cannot chat.

## How it was made

    {command}

Trained from nothing, on one processor core, by `app/waggle_lab/starter_model`: {steps:,} steps of {batch} questions, drawn from
{examples:,} distinct questions that are made under the charter "{charter}", with cross-entropy on the answers
only. About one question in ten is reserved by a hash of its text (`waggle.tasks.questions.split_of`); none of these was trained
on. The tokenizer is byte-level BPE with a token for each sentence that the question templates repeat; any other text falls back
to bytes.

Training ran in phases. *Tagged* is the share of answers written as `<answer>...</answer>`; *given* is the share where the opening
tag stands at the end of the prompt instead, so that the model is able to answer inside the tag, but seldom opens it.

{phases}

## What to expect

The verifier pays only for a right answer inside `<answer>...</answer>`. The model knows many answers but rarely wears the tag, so
rewards start near zero. **The first climb in training is a behaviour being elicited - wearing the answer tag - and not new
arithmetic.** What comes after that climb is slower.

Sampled at temperature 1 on reserved *dev* questions ({questions} of each kind or as many as there are, {samples} answers each).
*Lenient* overlooks the tag; *strict* is what the verifier pays for; *tagged* is the share of answers with the tag.

{table}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=paths.starter(), help="folder to write the model to")
    parser.add_argument("--minutes", type=real(0), default=18.0, help="about how long to train on one core")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches")


def run(arguments: argparse.Namespace) -> int:
    """Generate questions, train, measure and write the folder; returns the exit code."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=arguments.out):  # fail before training if the folder cannot be written
        pass
    steps = max(1, round(arguments.minutes * STEPS_PER_MINUTE))
    recipe = Recipe(seed=arguments.seed, phases=(replace(KNOW, steps=steps), TAG, SETTLE))
    command = f"waggle-lab starter --minutes {arguments.minutes:g} --seed {arguments.seed}"
    make(recipe, first_swarm(), arguments.out, command=command)
    return 0


def make(
    recipe: Recipe, charter: Charter, folder: Path, *, command: str, questions: int = 64, samples: int = 64
) -> dict[str, Score]:
    """Follow a recipe from questions to a model folder; returns the scores that the card shows."""
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    verifier = Verifier(charter)
    try:
        examples = generate_examples(verifier, charter, recipe)
        tokenizer = learn_tokenizer(examples, recipe)
        model = new_model(recipe.shape, tokenizer)
        pools = {name: encode(tokenizer, charter, dataset_examples) for name, dataset_examples in examples.items()}
        for number, phase in enumerate(recipe.phases):
            train(model, tokenizer, pools, recipe, phase, seed=recipe.seed + number)
        scores = measure(model, tokenizer, verifier, charter, questions=questions, samples=samples)
    finally:
        verifier.close()
    facts = CardFacts(command, charter.name, sum(map(len, examples.values())), questions, samples, scores)
    write(model, tokenizer, folder, card(model, recipe, facts))
    report_progress(table(scores))
    return scores


def learn_tokenizer(examples: Mapping[str, Sequence[Example]], recipe: Recipe) -> Tokenizer:
    """Train the tokenizer on the first few thousand questions of each specialty."""
    texts = {
        name: [example.question for example in dataset_examples[:TOKENIZER_QUESTIONS]]
        for name, dataset_examples in examples.items()
    }
    return starter_tokenizer.build(texts, merges=recipe.merges)


def card(model: Any, recipe: Recipe, facts: CardFacts) -> str:
    """The model card: what the model is, how it was trained, what to expect of it."""
    return CARD.format(
        parameters=model.num_parameters(),
        layers=recipe.shape.layers,
        width=recipe.shape.width,
        vocabulary=model.config.vocab_size,
        specialties=len(facts.scores),
        command=facts.command,
        steps=sum(phase.steps for phase in recipe.phases),
        batch=recipe.batch,
        examples=facts.examples,
        charter=facts.charter,
        phases=_phase_table(recipe.phases),
        questions=facts.questions,
        samples=facts.samples,
        table=table(facts.scores),
    )


def _phase_table(phases: Sequence[Phase]) -> str:
    rows = [f"| {phase.steps:,} | {phase.tag_share:.1%} | {phase.given_share:.0%} |" for phase in phases]
    return "\n".join(["| steps | tagged | given |", "| --- | --- | --- |", *rows])


def report_progress(text: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{text}\n")
