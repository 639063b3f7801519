"""Test what a person may type, paste or drop to name a model."""

import pytest

from waggle.core.errors import ModelError
from waggle.core.model_reference import is_reference, parse
from waggle.core.settings import ModelSettings

QWEN = "Qwen/Qwen3-0.6B"
HUB_NAMES = [
    (QWEN, QWEN),
    (f"  {QWEN}\n", QWEN),
    (f'"{QWEN}"', QWEN),
    (f"<https://huggingface.co/{QWEN}>", QWEN),
    (f"{QWEN}@main", QWEN),
    (f"{QWEN}@v1.0", f"{QWEN}@v1.0"),
    (f"https://huggingface.co/{QWEN}", QWEN),
    (f"https://huggingface.co/{QWEN}/", QWEN),
    (f"http://www.huggingface.co/{QWEN}?library=transformers#usage", QWEN),
    (f"HTTPS://HuggingFace.co/{QWEN}", QWEN),
    (f"huggingface.co/{QWEN}", QWEN),
    (f"hf.co/{QWEN}", QWEN),
    (f"https://hf.co/models/{QWEN}", QWEN),
    (f"https://huggingface.co/{QWEN}/tree/main", QWEN),
    (f"https://huggingface.co/{QWEN}/blob/main/config.json", QWEN),
    (f"https://huggingface.co/{QWEN}/resolve/main/model.safetensors?download=true", QWEN),
    (f"https://huggingface.co/{QWEN}/tree/c1899de", f"{QWEN}@c1899de"),
    (f"https://huggingface.co/{QWEN}/discussions/3", QWEN),
]
FOLDERS = [
    ("/home/ada/model", "/home/ada/model"),
    ("~/model", "~/model"),
    ("./model", "model"),
    ("../model", "../model"),
    ("'/home/ada/my model'", "/home/ada/my model"),
    ("/home/ada/model/", "/home/ada/model"),
    ("/home/ada/model/config.json", "/home/ada/model"),
    ("/home/ada/model/model.safetensors", "/home/ada/model"),
    ("/home/ada/model/model-00001-of-00002.safetensors", "/home/ada/model"),
    ("/home/ada/model/model.safetensors.index.json", "/home/ada/model"),
    ("file:///home/ada/my%20model", "/home/ada/my model"),
    ("file:///home/ada/model/tokenizer.json", "/home/ada/model"),
    ("file:///C:/Users/Ada/model", "C:\\Users\\Ada\\model"),
    ("C:\\Users\\Ada\\model", "C:\\Users\\Ada\\model"),
    ("C:\\Users\\Ada\\model\\model.safetensors", "C:\\Users\\Ada\\model"),
    ("/home/ada/model.Q4_K_M.gguf", "/home/ada/model.Q4_K_M.gguf"),
    ("C:\\models\\x.GGUF", "C:\\models\\x.GGUF"),
]
REFUSED = [
    ("", "names no model"),
    ("   ", "names no model"),
    ("gpt2", "names no model"),
    ("a small model", "names no model"),
    ("Qwen/Qwen3/0.6B", "names no model"),
    (f"{QWEN}\nrm", "names no model"),
    ("/" + "x" * 5000, "names no model"),
    ("https://example.org/Qwen/Qwen3", "not from Hugging Face"),
    ("https://huggingface.co.example.org/Qwen/Qwen3", "not from Hugging Face"),
    ("https://[huggingface.co/Qwen/Qwen3", "not from Hugging Face"),
    ("https://huggingface.co", "not of a model"),
    ("https://huggingface.co/Qwen", "not of a model"),
    ("https://huggingface.co/datasets/openai/gsm8k", "not of a model"),
    ("https://huggingface.co/spaces/Qwen/Chat", "not of a model"),
    ("https://huggingface.co/../..", "not of a model"),
    (f"https://huggingface.co/{QWEN}/tree/refs%2Fpr%2F3", "proposed change"),
    ("https://huggingface.co/bartowski/Qwen-GGUF/blob/main/qwen-q4.gguf", "does not download the GGUF file qwen-q4.gguf"),
]


@pytest.mark.parametrize(("words", "name"), HUB_NAMES)
def test_names_and_addresses_of_the_hub(words, name):
    assert parse(words) == ModelSettings(name=name)
    assert is_reference(words)


@pytest.mark.parametrize(("words", "folder"), FOLDERS)
def test_folders_and_files_in_them(words, folder):
    assert parse(words) == ModelSettings(folder=folder)
    assert is_reference(words)


@pytest.mark.parametrize(("words", "title"), REFUSED)
def test_what_names_no_model_is_refused_with_what_would(words, title):
    with pytest.raises(ModelError, match=title) as refused:
        parse(words)
    assert refused.value.advice


@pytest.mark.parametrize("words", ["qwen", "qwen3.5 instruct", "gpt2", ""])
def test_plain_words_are_searched_for(words):
    assert not is_reference(words)
