"""The starter model's tokenizer: byte-level BPE, plus one token for each sentence that a kind of question repeats.

The repeated sentences make prompts of 60 to 900 characters 7 to 80 tokens long. Any other text falls back to bytes, so every
text comes back as it was.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PAD = "<|pad|>"
STOP = "<|eos|>"
TAGS = ("<answer>", "</answer>")
CUE = "\nAnswer:"  # what the charter's prompt puts after a question

# What one token may cover: a loop or a run of a tiny program (so that its length is one thing to read), a logic sign, a word
# after a space, a capitalised word, ONE letter (programs write words letter by letter), ONE digit, white space, one character.
PIECES = (
    r">\++\[<[+\-]+>-\]<|>\[-\]>\[-\]<|\+{1,20}|\-{1,20}"
    r"| ?[→∨∧↔¬]| \p{L}+|\p{Lu}\p{Ll}+|\p{L}| ?\d|\s+|."
)
VARIES = re.compile(
    r"\d+|[+\-\[\]<>.*/]{2,}|\(?¬?\(?\b[PQRS]\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:first|second|third|fourth|fifth|last)\b"
)
SENTENCE = re.compile(r"(?<=[.?!])(?= )")
SHORTEST = 4  # characters of a phrase
WHOLE_SHARE = 0.15  # of a specialty's questions: from here on several sentences become one token
SENTENCE_SHARE = 0.004


def phrases_of(texts: Sequence[str]) -> list[str]:
    """The wording that one kind of question repeats between the parts that vary."""
    runs = Counter(run for text in texts for run in VARIES.split(text.strip()))
    whole = {run for run, count in runs.items() if count >= WHOLE_SHARE * len(texts)}
    sentences: Counter[str] = Counter()
    for run, count in runs.items():
        if run not in whole:
            sentences.update(dict.fromkeys(SENTENCE.split(run), count))
    found = whole | {sentence for sentence, count in sentences.items() if count >= SENTENCE_SHARE * len(texts)}
    return [phrase for phrase in found if len(phrase) >= SHORTEST]


def build(questions: Mapping[str, Sequence[str]], *, merges: int) -> Tokenizer:
    """Learn the tokenizer from the questions of each specialty; `merges` is the vocabulary before phrases are added."""
    phrases = sorted({phrase for texts in questions.values() for phrase in phrases_of(texts)}, key=lambda p: (-len(p), p))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=merges,
        special_tokens=[PAD, STOP],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_without(phrases, questions.values()), trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in (*TAGS, CUE, *phrases)])
    return tokenizer


def _without(phrases: Sequence[str], questions: Iterable[Sequence[str]]) -> Iterator[str]:
    """What is left for byte pairs to learn from once the phrases are tokens of their own."""
    known = re.compile("|".join(map(re.escape, phrases)) or r"(?!)")
    for texts in questions:
        for text in texts:
            yield from known.split(text)


def number_of(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token that must be there; raises KeyError."""
    number = tokenizer.token_to_id(token)
    if number is None:
        raise KeyError(token)
    return int(number)


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json so that transformers reads exactly this tokenizer."""
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=STOP,
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )
    wrapped.save_pretrained(folder)
