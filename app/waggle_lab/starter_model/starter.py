"""The recipe of the starter model that ships with Waggle: a very small Llama, trained from nothing on questions of the charter.

It learns to know answers, and then to wear the answer tag in about one answer of a hundred, so that reinforcement learning
has something to discover. transformers takes seconds to import: whoever makes no model does without. Left out: anything a
large model needs (several devices, mixed precision, resuming).
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
from waggle.tasks.charter import Charter, first_swarm
from waggle.tasks.questions import split_of
from waggle.tasks.sandbox.verifier import Verifier, batched
from waggle_lab.argument_types import real
from waggle_lab.starter_model import starter_tokenizer
from waggle_lab.starter_model.starter_measure import Score, measure, sampling, table
from waggle_lab.starter_model.starter_tokenizer import PAD, STOP, TAGS, number_of

FIRST_SEED = 1 << 40  # far from the seeds that held-out questions are looked up at; content decides anyway
REQUEST = 1000  # questions asked of the verifier at once: well inside its time limit and its cache
STEPS_PER_MINUTE = 550  # of one core of a 2024 server; fixed, so that a command names one model whatever the computer
QUESTIONS = {
    "basic_arithmetic": 40_000,
    "arc_1d": 150_000,
    "bf": 40_000,
    "propositional_logic": 60_000,
    "decimal_arithmetic": 60_000,
    "calendar_arithmetic": 60_000,
    "binary_matrix": 50_000,
}
SHARES = {"arc_1d": 2.5, "bf": 0.8, "binary_matrix": 0.8}  # of the training examples
USUAL_SHARE = 1.2  # of the others
IGNORED = -100  # a position without a target
LEARNT_FROM = 4000  # questions of each specialty that the tokenizer is learnt from


class Example(NamedTuple):
    """A question that may be trained on, and its true answer."""

    dataset: str
    question: str
    answer: str


class Encoded(NamedTuple):
    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True)
class Shape:
    """The size of the network; the defaults make about 0.85 million weights."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 2
    inner: int = 352


@dataclass(frozen=True)
class Phase:
    """One stretch of training: its peak learning rates, and how often answers wear the answer tag.

    Where the opening tag is *given*, it counts as part of the prompt: the model learns to answer and to close the tag
    without learning to open it. So being able to and being inclined to are set apart.
    """

    steps: int
    rate: float = 3e-3  # of embeddings and norms
    matrix_rate: float = 1e-2  # of the layers' matrices; 2e-2 and 5e-2 learn more slowly
    tag_share: float = 0.0  # of examples: the whole tagged answer is foretold
    given_share: float = 0.0  # of examples: the opening tag is given


KNOW = Phase(steps=18 * STEPS_PER_MINUTE)
TAG = Phase(steps=1400, rate=2e-3, matrix_rate=6e-3, tag_share=0.014, given_share=0.3)
SETTLE = Phase(steps=1100, rate=2e-3, matrix_rate=6e-3, tag_share=0.01, given_share=0.4)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the model, beside the charter."""

    seed: int = 0
    phases: tuple[Phase, ...] = (KNOW, TAG, SETTLE)
    batch: int = 32
    merges: int = 640
    default_questions: int = 20_000
    questions: Mapping[str, int] = field(default_factory=lambda: QUESTIONS)
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)
    shape: Shape = Shape()


def make_examples(verifier: Verifier, dataset: str, count: int, first_seed: int = FIRST_SEED) -> list[Example]:
    """Ask for `count` questions with answers; returns the distinct ones that are not reserved, each text once."""
    answers: dict[str, str] = {}
    for keys in batched([(dataset, first_seed + i) for i in range(count)], REQUEST):
        for question, answer in zip(verifier.questions(keys), verifier.answers(keys), strict=True):
            if split_of(dataset, question.text) == "train":
                answers.setdefault(question.text, answer)
    return [Example(dataset, text, answer) for text, answer in answers.items()]


def gather(verifier: Verifier, charter: Charter, recipe: Recipe) -> dict[str, list[Example]]:
    """The examples of every specialty, as many as the recipe asks for."""
    found: dict[str, list[Example]] = {}
    for specialty in charter.specialties:
        wanted = recipe.questions.get(specialty.dataset, recipe.default_questions)
        found[specialty.dataset] = make_examples(verifier, specialty.dataset, wanted)
        say(f"{specialty.dataset}: {len(found[specialty.dataset])} distinct questions")
    return found


def encode(tokenizer: Tokenizer, charter: Charter, examples: Sequence[Example]) -> list[Encoded]:
    """Prompts as a policy will read them, and answers as it should write them, with the stop token."""
    stop = number_of(tokenizer, STOP)
    prompts = tokenizer.encode_batch([charter.prompt_for(example.question) for example in examples], add_special_tokens=False)
    answers = tokenizer.encode_batch([example.answer.strip() for example in examples], add_special_tokens=False)
    return [Encoded(prompt.ids, [*answer.ids, stop]) for prompt, answer in zip(prompts, answers, strict=True)]


def tagged(example: Encoded, tags: tuple[int, int], *, given: bool) -> Encoded:
    """The same answer inside the answer tag; the stop token stays last. `given` puts the opening tag into the prompt."""
    closed = [*example.answer[:-1], tags[1], example.answer[-1]]
    return Encoded([*example.prompt, tags[0]], closed) if given else Encoded(example.prompt, [tags[0], *closed])


def dress(batch: Sequence[Encoded], tags: tuple[int, int], phase: Phase, rng: random.Random) -> list[Encoded]:
    """Put the answer tag on as many answers as the phase wants."""
    drawn = [rng.random() for _ in batch]
    wearing = phase.tag_share + phase.given_share
    return [
        tagged(example, tags, given=chance >= phase.tag_share) if chance < wearing else example
        for example, chance in zip(batch, drawn, strict=True)
    ]


def new_model(shape: Shape, tokenizer: Tokenizer) -> Any:
    """A fresh Llama with tied embeddings; draws its weights from torch's generator."""
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
        eos_token_id=number_of(tokenizer, STOP),
        pad_token_id=number_of(tokenizer, PAD),
        dtype="float32",
    )
    return LlamaForCausalLM(config)


def batches(
    pools: Mapping[str, Sequence[Encoded]], shares: Mapping[str, float], size: int, rng: random.Random
) -> Iterator[list[Encoded]]:
    """Endless batches: specialties drawn by share, neighbours in length together so that little is padding."""
    names = sorted(pools)
    weights = [shares.get(name, USUAL_SHARE) for name in names]
    while True:
        drawn = [rng.choice(pools[name]) for name in rng.choices(names, weights, k=size * 32)]
        drawn.sort(key=lambda example: len(example.prompt) + len(example.answer))
        ready = [drawn[first : first + size] for first in range(0, len(drawn), size)]
        rng.shuffle(ready)
        yield from ready


def tensors(batch: Sequence[Encoded], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, targets), both (B, T) and right-padded; a target stands where the answer's next token is to be foretold."""
    longest = max(len(prompt) + len(answer) for prompt, answer in batch) - 1
    inputs = torch.full((len(batch), longest), pad)
    targets = torch.full((len(batch), longest), IGNORED)
    for row, (prompt, answer) in enumerate(batch):
        end = len(prompt) + len(answer) - 1
        inputs[row, :end] = torch.tensor(prompt + answer[:-1])
        targets[row, len(prompt) - 1 : end] = torch.tensor(answer)
    return inputs, targets


def loss_of(model: Any, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the answer tokens; the head sees those positions only."""
    hidden = model.model(input_ids=inputs, use_cache=False).last_hidden_state  # (B, T, D)
    wanted = targets != IGNORED
    return cross_entropy(model.lm_head(hidden[wanted]), targets[wanted])


def optimisers(model: Any, phase: Phase) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices (fewer steps to the same loss at this size), AdamW for embeddings and norms."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    known = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in known]
    return [
        torch.optim.Muon(matrices, lr=phase.matrix_rate, weight_decay=0.01),
        torch.optim.AdamW(others, lr=phase.rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate_at(step: int, steps: int) -> float:
    """The learning rate as a share of its peak: a short climb, a plateau, then down to nothing over the last 60%."""
    climb = min(1.0, (step + 1) / max(1, min(100, steps // 10)))
    return climb * min(1.0, (1 - step / steps) / 0.6)


def train(
    model: Any, tokenizer: Tokenizer, pools: Mapping[str, Sequence[Encoded]], recipe: Recipe, phase: Phase, *, seed: int
) -> list[float]:
    """One phase, in place; returns the loss of each step."""
    rng = random.Random(seed)
    tags = (number_of(tokenizer, TAGS[0]), number_of(tokenizer, TAGS[1]))
    pad = number_of(tokenizer, PAD)
    drawn = batches(pools, recipe.shares, recipe.batch, rng)
    workers = optimisers(model, phase)
    peaks = [worker.param_groups[0]["lr"] for worker in workers]
    losses: list[float] = []
    model.train()
    for step in range(phase.steps):
        loss = loss_of(model, *tensors(dress(next(drawn), tags, phase, rng), pad))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for worker, peak in zip(workers, peaks, strict=True):
            worker.param_groups[0]["lr"] = peak * rate_at(step, phase.steps)
            worker.step()
            worker.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 250 == 249:
            say(f"step {step + 1} of {phase.steps}, loss {sum(losses[-250:]) / 250:.3f}")
    return losses


class Made(NamedTuple):
    """What the card tells beside the recipe itself."""

    command: str
    charter: str
    examples: int
    questions: int
    samples: int
    scores: Mapping[str, Score]


def write(model: Any, tokenizer: Tokenizer, folder: Path, card: str) -> None:
    """Save a plain transformers folder: weights in fp32, tokenizer, generation settings and the model card."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = sampling(tokenizer)
    model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # it is written for its owner only, and is meant for everybody
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
{examples:,} distinct questions that reasoning-gym generates under the charter "{charter}", with cross-entropy on the answers
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
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> int:
    """Make the questions, train, measure and write the folder; returns the exit code."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=arguments.out):  # a place that cannot be written is told before anything is learned
        pass
    steps = max(1, round(arguments.minutes * STEPS_PER_MINUTE))
    recipe = Recipe(seed=arguments.seed, phases=(replace(KNOW, steps=steps), TAG, SETTLE))
    command = f"waggle-lab starter --minutes {arguments.minutes:g} --seed {arguments.seed}"
    make(recipe, first_swarm(), arguments.out, command=command)
    return 0


def make(
    recipe: Recipe, charter: Charter, folder: Path, *, command: str, questions: int = 64, samples: int = 64
) -> dict[str, Score]:
    """The whole recipe, from questions to a folder; returns the scores that the card shows."""
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    verifier = Verifier(charter)
    try:
        examples = gather(verifier, charter, recipe)
        tokenizer = learn_tokenizer(examples, recipe)
        model = new_model(recipe.shape, tokenizer)
        pools = {name: encode(tokenizer, charter, found) for name, found in examples.items()}
        for number, phase in enumerate(recipe.phases):
            train(model, tokenizer, pools, recipe, phase, seed=recipe.seed + number)
        scores = measure(model, tokenizer, verifier, charter, questions=questions, samples=samples)
    finally:
        verifier.close()
    made = Made(command, charter.name, sum(map(len, examples.values())), questions, samples, scores)
    write(model, tokenizer, folder, card(model, recipe, made))
    say(table(scores))
    return scores


def learn_tokenizer(examples: Mapping[str, Sequence[Example]], recipe: Recipe) -> Tokenizer:
    """The tokenizer of the first few thousand questions of each specialty."""
    texts = {name: [example.question for example in found[:LEARNT_FROM]] for name, found in examples.items()}
    return starter_tokenizer.build(texts, merges=recipe.merges)


def card(model: Any, recipe: Recipe, made: Made) -> str:
    """The model card: what the model is, how it was made, what to expect of it."""
    return CARD.format(
        parameters=model.num_parameters(),
        layers=recipe.shape.layers,
        width=recipe.shape.width,
        vocabulary=model.config.vocab_size,
        specialties=len(made.scores),
        command=made.command,
        steps=sum(phase.steps for phase in recipe.phases),
        batch=recipe.batch,
        examples=made.examples,
        charter=made.charter,
        phases=_phase_table(recipe.phases),
        questions=made.questions,
        samples=made.samples,
        table=table(made.scores),
    )


def _phase_table(phases: Sequence[Phase]) -> str:
    rows = [f"| {phase.steps:,} | {phase.tag_share:.1%} | {phase.given_share:.0%} |" for phase in phases]
    return "\n".join(["| steps | tagged | given |", "| --- | --- | --- |", *rows])


def say(text: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{text}\n")
