"""How good the starter model is: sampled on reserved questions, judged as training judges and with the answer tag overlooked."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer

from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.starter_model.starter_tokenizer import PAD, STOP, TAGS, number_of

LONGEST = 40  # tokens of a sampled answer


class Score(NamedTuple):
    """What sampling at temperature 1 gave on reserved questions of one specialty; all are shares in [0, 1]."""

    lenient: float  # right when the tag is overlooked
    strict: float  # right as the verifier judges: what training earns rewards for
    tagged: float
    pass_at_8: float  # lenient: right at least once in 8 tries


def sample(model: Any, tokenizer: Tokenizer, prompts: Sequence[str], count: int) -> list[list[str]]:
    """`count` completions of each prompt at temperature 1, by transformers' own generator and torch's random numbers."""
    pad, stop = number_of(tokenizer, PAD), number_of(tokenizer, STOP)
    encoded = [prompt.ids for prompt in tokenizer.encode_batch(list(prompts), add_special_tokens=False)]
    longest = max(map(len, encoded))
    inputs = torch.tensor([[pad] * (longest - len(ids)) + ids for ids in encoded])
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in encoded])
    model.eval()
    with torch.inference_mode():
        grown = model.generate(
            input_ids=inputs,
            attention_mask=mask,
            generation_config=sampling(tokenizer, num_return_sequences=count),
        )
    endings = [row[: row.index(stop)] if stop in row else row for row in grown[:, longest:].tolist()]
    texts = tokenizer.decode_batch(endings, skip_special_tokens=False)
    return [texts[first : first + count] for first in range(0, len(texts), count)]


def sampling(tokenizer: Tokenizer, **more: int) -> Any:
    """Plain sampling at temperature 1: nothing cut from the distribution."""
    from transformers import GenerationConfig

    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=LONGEST,
        pad_token_id=number_of(tokenizer, PAD),
        eos_token_id=number_of(tokenizer, STOP),
        **more,
    )


def measure(
    model: Any, tokenizer: Tokenizer, verifier: Verifier, charter: Charter, *, questions: int, samples: int
) -> dict[str, Score]:
    """Score every specialty on its first reserved questions of the dev split."""
    scores: dict[str, Score] = {}
    for specialty in charter.specialties:
        asked = verifier.held_out(specialty.dataset, "dev", questions)
        written = sample(model, tokenizer, [charter.prompt_for(question.text) for question in asked], samples)
        scores[specialty.dataset] = _score(verifier, asked, written)
    return scores


def _score(verifier: Verifier, asked: Sequence[Question], written: Sequence[Sequence[str]]) -> Score:
    strict = _right(verifier, asked, written)
    lenient = _right(verifier, asked, [[f"{TAGS[0]}{_bare(text)}{TAGS[1]}" for text in texts] for texts in written])
    total = sum(map(len, written))
    return Score(
        lenient=sum(map(sum, lenient)) / total,
        strict=sum(map(sum, strict)) / total,
        tagged=sum(TAGS[0] in text for texts in written for text in texts) / total,
        pass_at_8=sum(pass_at(8, len(row), sum(row)) for row in lenient) / len(lenient),
    )


def _bare(text: str) -> str:
    return text.replace(TAGS[0], "").replace(TAGS[1], "")


def _right(verifier: Verifier, asked: Sequence[Question], written: Sequence[Sequence[str]]) -> list[list[bool]]:
    """Whether each completion earned the full reward."""
    right: list[list[bool]] = []
    for question, texts in zip(asked, written, strict=True):
        verdicts = verifier.judge((question, Completion(text=text, ended=True)) for text in texts)
        right.append([verdict.reward >= RIGHT for verdict in verdicts])
    return right


def pass_at(tries: int, samples: int, right: int) -> float:
    """The chance that one of `tries` completions is right, from `samples` of which `right` are (Chen et al. 2021, eq. 1)."""
    tries = min(tries, samples)
    return 1.0 - math.comb(samples - right, tries) / math.comb(samples, tries)


def table(scores: Mapping[str, Score]) -> str:
    """The scores as a Markdown table, with their mean as the last row."""
    columns = [sum(column) / len(scores) for column in zip(*scores.values(), strict=True)]
    rows = [*scores.items(), ("**mean**", Score(*columns))]
    head = "| specialty | lenient | strict | tagged | pass@8 (lenient) |\n| --- | --- | --- | --- | --- |"
    body = [f"| {name} | {s.lenient:.3f} | {s.strict:.4f} | {s.tagged:.4f} | {s.pass_at_8:.3f} |" for name, s in rows]
    return "\n".join([head, *body])
