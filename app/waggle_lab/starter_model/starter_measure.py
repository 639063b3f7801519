"""Measure the starter model: completions of reserved questions, judged as in training and without regard to the answer tag."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer

from waggle.sapo.prompt_form import PLAIN
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.starter_model.starter_tokenizer import PAD, STOP, TAGS, token_id

MAX_COMPLETION = 40  # tokens


class Score(NamedTuple):
    """The result of sampling at temperature 1 on reserved questions of one specialty; all are shares from 0 to 1."""

    lenient: float  # right if the tag is ignored
    strict: float  # right for the verifier, as in training
    tagged: float
    pass_at_8: float  # right at least once in 8 tries if the tag is ignored


def sample(model: Any, tokenizer: Tokenizer, prompts: Sequence[str], count: int) -> list[list[str]]:
    """Sample `count` completions of each prompt at temperature 1, with transformers' generate and torch's generator."""
    pad, stop = token_id(tokenizer, PAD), token_id(tokenizer, STOP)
    encoded = [prompt.ids for prompt in tokenizer.encode_batch(list(prompts), add_special_tokens=False)]
    longest = max(map(len, encoded))
    inputs = torch.tensor([[pad] * (longest - len(ids)) + ids for ids in encoded])
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in encoded])
    model.eval()
    with torch.inference_mode():
        sequences = model.generate(
            input_ids=inputs,
            attention_mask=mask,
            generation_config=sampling_settings(tokenizer, num_return_sequences=count),
        )
    completion_ids = [row[: row.index(stop)] if stop in row else row for row in sequences[:, longest:].tolist()]
    texts = tokenizer.decode_batch(completion_ids, skip_special_tokens=False)
    return [texts[first : first + count] for first in range(0, len(texts), count)]


def sampling_settings(tokenizer: Tokenizer, **more: int) -> Any:
    """Plain sampling at temperature 1, without top-k or top-p."""
    from transformers import GenerationConfig

    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=MAX_COMPLETION,
        pad_token_id=token_id(tokenizer, PAD),
        eos_token_id=token_id(tokenizer, STOP),
        **more,
    )


def measure(
    model: Any, tokenizer: Tokenizer, verifier: Verifier, charter: Charter, *, questions: int, samples: int
) -> dict[str, Score]:
    """Score every specialty on its first reserved questions of the dev split."""
    scores: dict[str, Score] = {}
    for specialty in charter.specialties:
        held_out = verifier.held_out(specialty.dataset, "dev", questions)
        completions = sample(model, tokenizer, [PLAIN.text(question.text) for question in held_out], samples)
        scores[specialty.dataset] = _score(verifier, held_out, completions)
    return scores


def _score(verifier: Verifier, held_out: Sequence[Question], completions: Sequence[Sequence[str]]) -> Score:
    strict = _judge(verifier, held_out, completions)
    lenient = _judge(
        verifier, held_out, [[f"{TAGS[0]}{_without_tags(text)}{TAGS[1]}" for text in texts] for texts in completions]
    )
    total = sum(map(len, completions))
    return Score(
        lenient=sum(map(sum, lenient)) / total,
        strict=sum(map(sum, strict)) / total,
        tagged=sum(TAGS[0] in text for texts in completions for text in texts) / total,
        pass_at_8=sum(pass_at(8, len(row), sum(row)) for row in lenient) / len(lenient),
    )


def _without_tags(text: str) -> str:
    return text.replace(TAGS[0], "").replace(TAGS[1], "")


def _judge(verifier: Verifier, held_out: Sequence[Question], completions: Sequence[Sequence[str]]) -> list[list[bool]]:
    """Whether each completion earns the full reward."""
    right: list[list[bool]] = []
    for question, texts in zip(held_out, completions, strict=True):
        verdicts = verifier.judge((question, Completion(text=text, ended=True)) for text in texts)
        right.append([verdict.reward >= RIGHT for verdict in verdicts])
    return right


def pass_at(tries: int, samples: int, right: int) -> float:
    """An unbiased estimate of pass@`tries` from `samples` completions of which `right` are right (arXiv 2107.03374, eq. 1)."""
    tries = min(tries, samples)
    return 1.0 - math.comb(samples - right, tries) / math.comb(samples, tries)


def table(scores: Mapping[str, Score]) -> str:
    """The scores as a Markdown table, with their mean as the last row."""
    columns = [sum(column) / len(scores) for column in zip(*scores.values(), strict=True)]
    rows = [*scores.items(), ("**mean**", Score(*columns))]
    head = "| specialty | lenient | strict | tagged | pass@8 (lenient) |\n| --- | --- | --- | --- | --- |"
    body = [f"| {name} | {s.lenient:.3f} | {s.strict:.4f} | {s.tagged:.4f} | {s.pass_at_8:.3f} |" for name, s in rows]
    return "\n".join([head, *body])
