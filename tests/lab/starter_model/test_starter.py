"""Test the recipe of the starter model at toy size: that it runs, and that no reserved question gets in."""

import argparse
import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from waggle.core import paths
from waggle.tasks.questions import QuestionKey, split_of
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.starter_model import starter, starter_measure, starter_tokenizer
from waggle_lab.starter_model.starter import Encoded, Example, Phase, Recipe, Shape

TOY = Recipe(
    phases=(Phase(steps=4), Phase(steps=2, tag_share=0.5, given_share=0.5)),
    batch=4,
    default_questions=60,
    questions={},
    merges=300,
    shape=Shape(width=16, layers=1, heads=2, key_value_heads=1, inner=16),
)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    starter.make(TOY, first_swarm(), folder, command="the command", questions=2, samples=2)
    return folder


@pytest.mark.parametrize("dataset", [specialty.dataset for specialty in first_swarm().specialties])
def test_no_reserved_question_gets_in_and_none_comes_twice(verifier: Verifier, dataset: str) -> None:
    questions = verifier.questions([QuestionKey(dataset, seed) for seed in range(300)])
    assert any(split_of(dataset, question.text) != "train" for question in questions)  # so there was something to keep out
    examples = starter.make_examples(verifier, dataset, 300, first_seed=0)
    assert {split_of(dataset, example.question) for example in examples} == {"train"}
    assert len({example.question for example in examples}) == len(examples) > 100


def test_the_questions_that_measure_are_never_among_those_that_train(verifier: Verifier) -> None:
    reserved = {question.text for question in verifier.held_out("basic_arithmetic", "dev", 64)}
    examples = starter.make_examples(verifier, "basic_arithmetic", 3000, first_seed=0)
    assert not reserved & {example.question for example in examples}


def test_the_recipe_makes_a_folder_that_plain_transformers_loads(model_folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    assert model.config.model_type == "llama"
    assert model.config.vocab_size == len(tokenizer)
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"} <= {
        file.name for file in model_folder.iterdir()
    }


def test_the_card_says_how_the_model_was_made_and_what_the_first_climb_is(model_folder: Path) -> None:
    card = (model_folder / "README.md").read_text(encoding="utf-8")
    assert "    the command\n" in card
    assert "behaviour being elicited" in card
    assert all(specialty.dataset in card for specialty in first_swarm().specialties)


def _toy() -> tuple[object, object, dict[str, list[Encoded]]]:
    examples = [Example("sums", f"Calculate {a} + {b}.", str(a + b)) for a in range(10) for b in range(10)]
    tokenizer = starter_tokenizer.build({"sums": [example.question for example in examples]}, merges=300)
    torch.manual_seed(0)
    return starter.new_model(TOY.shape, tokenizer), tokenizer, {"sums": starter.encode(tokenizer, first_swarm(), examples)}


def test_training_lowers_the_loss_and_the_same_seed_makes_the_same_model() -> None:
    recipe = Recipe(batch=16, shape=TOY.shape)
    runs = []
    for _ in range(2):
        model, tokenizer, pools = _toy()
        runs.append(starter.train(model, tokenizer, pools, recipe, Phase(steps=60), seed=0))
    assert sum(runs[0][-10:]) < 0.7 * sum(runs[0][:10])
    assert runs[0] == runs[1]


def test_only_the_answer_and_its_stop_are_foretold() -> None:
    inputs, targets = starter.tensors([Encoded([5, 6, 7], [8, 9, 1]), Encoded([5], [8, 1])], pad=0)
    assert inputs.tolist() == [[5, 6, 7, 8, 9], [5, 8, 0, 0, 0]]
    assert targets.tolist() == [[-100, -100, 8, 9, 1], [8, 1, -100, -100, -100]]


def test_the_loss_is_that_of_transformers_itself() -> None:
    model, _, pools = _toy()
    inputs, targets = starter.tensors(pools["sums"][:8], pad=0)
    logits = model(input_ids=inputs).logits  # type: ignore[operator]
    plain = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=starter.IGNORED)
    assert torch.allclose(starter.loss_of(model, inputs, targets), plain, atol=1e-6)


def test_a_tagged_answer_keeps_its_stop_token_last() -> None:
    assert starter.tagged(Encoded([5], [8, 9, 1]), (300, 301), opening_in_prompt=False) == Encoded([5], [300, 8, 9, 301, 1])


def test_a_given_opening_tag_is_part_of_the_prompt() -> None:
    assert starter.tagged(Encoded([5], [8, 9, 1]), (300, 301), opening_in_prompt=True) == Encoded([5, 300], [8, 9, 301, 1])


def test_a_phase_tags_as_many_answers_as_it_says() -> None:
    phase = Phase(steps=1, tag_share=0.1, given_share=0.3)
    dressed = starter.add_tags([Encoded([5], [8, 1])] * 4000, (300, 301), phase, random.Random(0))
    assert 0.08 < sum(example.answer[0] == 300 for example in dressed) / 4000 < 0.12
    assert 0.27 < sum(example.prompt[-1] == 300 for example in dressed) / 4000 < 0.33


def test_the_first_phase_tags_nothing() -> None:
    batch = [Encoded([5], [8, 1])] * 100
    assert starter.add_tags(batch, (300, 301), starter.KNOW, random.Random(0)) == batch


def test_batches_draw_specialties_by_their_share() -> None:
    pools = {"rare": [Encoded([1], [1])], "often": [Encoded([2], [1])]}
    drawn = starter.batches(pools, {"often": 3.0}, 8, random.Random(0))
    prompts = [example.prompt[0] for _ in range(100) for example in next(drawn)]
    assert 0.7 < prompts.count(2) / len(prompts) < 0.8


def test_the_rate_climbs_stays_and_falls_to_nothing() -> None:
    rates = [starter.rate_at(step, 1000) for step in range(1000)]
    assert rates[0] < 0.02
    assert rates[200] == 1.0
    assert rates[-1] < 0.01


@pytest.mark.parametrize(("samples", "right", "chance"), [(8, 0, 0.0), (8, 1, 1.0), (16, 1, 0.5), (16, 16, 1.0), (2, 0, 0.0)])
def test_pass_at_8_is_estimated_without_bias(samples: int, right: int, chance: float) -> None:
    assert starter_measure.pass_at(8, samples, right) == pytest.approx(chance)


def test_the_phrases_are_what_questions_repeat_between_the_parts_that_vary() -> None:
    phrases = starter_tokenizer.phrases_of([f"Calculate {number} and tell me." for number in range(50)])
    assert sorted(phrases) == [" and tell me.", "Calculate "]


def test_the_options_are_few_and_the_product_is_the_default() -> None:
    parser = argparse.ArgumentParser()
    starter.add_arguments(parser)
    arguments = parser.parse_args([])
    assert arguments.out == paths.starter()
    assert vars(arguments).keys() == {"out", "minutes", "seed"}
