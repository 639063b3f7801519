"""The contract of sampling: the log-probs of transformers, and completions that the noise determines."""

import shutil
from itertools import chain

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.contract.backends import BACKENDS
from models.contract.groups import STOP, batches, prompts, reference, sample, true_logprobs
from models.tiny_models import KINDS
from waggle.core.errors import ModelError
from waggle.models.shared import decoding
from waggle.rl.batch import SamplingParams, TokenizedGroup
from waggle.rl.random_streams import uniforms


def written(some, rows) -> list[TokenizedGroup]:
    return [
        TokenizedGroup(prompt, tuple(completion.tokens for completion in row)) for prompt, row in zip(some, rows, strict=True)
    ]


@pytest.mark.parametrize("kind", [*sorted(KINDS), "untied"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_a_model_means_what_it_means_in_transformers(backend, folders, kind, temperature):
    policy, model = backend.open(folders[kind]), reference(folders[kind])
    some = batches()
    with torch.no_grad():
        for logprobs, batch in zip(policy.logprobs(some, temperature), some, strict=True):
            np.testing.assert_allclose(logprobs, true_logprobs(model, batch, temperature).numpy(), atol=backend.logp)


@pytest.mark.parametrize("kind", [*sorted(KINDS), "untied"])
def test_backends_write_the_same_completions_from_the_same_noise(backend, folders, kind, figures):
    with BACKENDS[0].at_work() as first:
        expected = sample(first.open(folders[kind]), prompts())
    rows = sample(backend.open(folders[kind]), prompts())
    same = [
        np.array_equal(completion.tokens, other.tokens) and np.allclose(completion.logp, other.logp, atol=backend.logp)
        for row, others in zip(rows, expected, strict=True)
        for completion, other in zip(row, others, strict=True)
    ]
    assert len(same) == 72
    if backend.name == "mlx":
        figures["samples_equal"] = min(sum(same) / 72, figures.get("samples_equal", 1.0))
    assert all(same) if backend.exact else sum(same) >= 65


def test_the_same_noise_gives_the_same_completions_however_the_prompts_are_split(backend, llama):
    policy, some = backend.open(llama), prompts(4)
    noise = uniforms(1, "sample", 0, 4, 3, 16)
    together = sample(policy, some, noise=noise)
    for i, prompt in enumerate(some):
        (alone,) = sample(policy, [prompt], noise=noise[i * 3 : i * 3 + 3])
        for completion, other in zip(together[i], alone, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)


def test_prompts_are_read_a_few_at_a_time_with_a_pause_between_them_and_mean_the_same(backend, llama, monkeypatch):
    some, noise, pauses, first = prompts(6), uniforms(1, "sample", 0, 6, 3, 16), iter(range(1000)), list[int]()
    together = sample(backend.open(llama), some, noise=noise)
    monkeypatch.setattr(decoding, "PREFILL_BYTES", 1)
    params = SamplingParams(
        max_new=16, stops=(STOP,), pause_point=lambda: next(pauses), watch=lambda *_: first.append(next(pauses))
    )  # fmt: skip
    alone = backend.open(llama).sample(some, noise, params)
    assert first[0] > len(some), "a pause waited for all prompts"
    for row, others in zip(together, alone, strict=True):
        for completion, other in zip(row, others, strict=True):
            np.testing.assert_array_equal(completion.tokens, other.tokens)
            np.testing.assert_allclose(completion.logp, other.logp, atol=backend.logp)


def test_rows_that_ended_are_dropped_without_a_trace_in_the_others(backend, llama, monkeypatch):
    runs = []
    for below in (0.0, 1.0):  # never, and in every column
        monkeypatch.setattr(backend.rows, "drop_below", below)
        runs.append([completion for row in sample(backend.open(llama), prompts()) for completion in row])
    for whole, dropped in zip(*runs, strict=True):
        np.testing.assert_array_equal(whole.tokens, dropped.tokens)
        np.testing.assert_allclose(whole.logp, dropped.logp, atol=backend.logp)
    assert len({len(completion.tokens) for completion in runs[0] if completion.ended}) >= 3, "rows must end in several columns"


def test_the_log_probs_of_sampling_are_those_of_a_second_look(backend, llama):
    policy, some = backend.open(llama), prompts()
    rows = sample(policy, some)
    for row, flat in zip(rows, policy.logprobs(written(some, rows), 1.0), strict=True):
        np.testing.assert_allclose(np.concatenate([completion.logp for completion in row]), flat, atol=backend.logp)


def test_a_stop_token_ends_a_completion_and_is_part_of_it(backend, llama):
    rows = [completion for row in sample(backend.open(llama), prompts()) for completion in row]
    ended = [completion for completion in rows if completion.ended]
    assert ended, "no completion ended: the test shows nothing"
    assert all(completion.tokens[-1] == STOP and STOP not in completion.tokens[:-1] for completion in ended)
    assert all(STOP not in completion.tokens and len(completion.tokens) == 16 for completion in rows if not completion.ended)


def test_any_stop_token_ends_a_completion_at_the_first(backend, llama):
    policy, some = backend.open(llama), prompts()
    usual = sample(policy, some)[0]
    others = sorted({int(token) for completion in usual for token in completion.tokens[:4]} - {STOP})[:3]
    noise = np.random.default_rng(5).random((len(some) * 8, 16), dtype=np.float32)
    stops = (STOP, *others)
    without, ended = (
        list(chain.from_iterable(policy.sample(some, noise, SamplingParams(max_new=16, stops=each)))) for each in ((), stops)
    )
    for whole, cut in zip(without, ended, strict=True):
        places = np.flatnonzero(np.isin(whole.tokens, stops))
        count = int(places[0]) + 1 if len(places) else 16
        assert (cut.tokens.tolist(), cut.ended) == (whole.tokens[:count].tolist(), bool(len(places)))
    assert {int(completion.tokens[-1]) for completion in ended if completion.ended} > {others[0]}


def test_tokens_are_drawn_from_the_distribution_of_the_model(backend, llama):
    (prompt,) = prompts(1)
    noise = np.random.default_rng(5).random((4000, 1), dtype=np.float32)
    (row,) = backend.open(llama).sample([prompt], noise, SamplingParams(max_new=1, stops=(STOP,)))
    counts = np.bincount([completion.tokens[0] for completion in row], minlength=97)
    with torch.no_grad():
        logits = reference(llama)(input_ids=torch.tensor(prompt, dtype=torch.long)[None]).logits[0, -1]
    expected = torch.softmax(logits, -1).numpy() * 4000
    assert ((counts - expected) ** 2 / expected).sum() < 96 + 4 * (2 * 96) ** 0.5  # chi-square, four standard deviations


def test_whoever_watches_sees_every_token_come(backend, llama):
    grown: list[int] = []
    noise = uniforms(1, "sample", 0, 1, 4, 8)
    params = SamplingParams(max_new=8, stops=(STOP,), watch=lambda tokens, lengths, ended: grown.append(int(lengths.sum())))
    (row,) = backend.open(llama).sample(prompts(1), noise, params)
    assert grown == sorted(grown)
    assert grown[0] == 4
    assert grown[-1] == sum(len(completion.tokens) for completion in row)


def test_a_folder_that_holds_no_whole_model_is_refused(backend, tmp_path, llama):
    with pytest.raises(ModelError, match="There is no model in"):
        backend.open(tmp_path)
    (tmp_path / "config.json").write_bytes((llama / "config.json").read_bytes())
    with pytest.raises(ModelError, match="cannot be read"):
        backend.open(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((llama / "model.safetensors").read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot be read"):
        backend.open(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("llama", "model.layers.0.mlp.down_proj.weight"),
        ("qwen2", "model.layers.1.self_attn.q_proj.bias"),
        ("biases", "model.layers.0.mlp.up_proj.bias"),
        ("untied", "lm_head.weight"),
    ],
)
def test_a_model_of_which_a_weight_is_missing_is_refused(backend, tmp_path, folders, kind, name):
    shutil.copytree(folders[kind], tmp_path, dirs_exist_ok=True)
    whole = load_file(tmp_path / "model.safetensors")
    save_file(
        {other: weight for other, weight in whole.items() if other != name}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ModelError, match=f"{name} is not there"):
        backend.open(tmp_path)


def test_a_weight_of_another_shape_than_the_configuration_says_is_named_with_both(backend, tmp_path, llama):
    shutil.copytree(llama, tmp_path, dirs_exist_ok=True)
    name = "model.norm.weight"
    whole = load_file(tmp_path / "model.safetensors")
    save_file(whole | {name: whole[name][1:].clone()}, tmp_path / "model.safetensors", {"format": "pt"})
    size = len(whole[name])
    with pytest.raises(ModelError, match=rf"{name} is \[{size - 1}\], and its config\.json says \[{size}\]"):
        backend.open(tmp_path)


def test_weights_in_eight_bits_are_refused(backend, tmp_path, llama):
    shutil.copytree(llama, tmp_path, dirs_exist_ok=True)
    name = "model.layers.0.mlp.up_proj.weight"
    whole = load_file(tmp_path / "model.safetensors")
    save_file(whole | {name: whole[name].to(torch.float8_e4m3fn)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="does not know weights in F8_E4M3"):
        backend.open(tmp_path)
