"""The tokenizer of the starter model: byte-level BPE, and a token for each sentence that the questions of a specialty repeat.

With these sentences, prompts of 60 to 900 characters have 7 to 80 tokens. All other text falls back to bytes, so that decoding
restores every text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PAD = "<|pad|>"
STOP = "<|eos|>"
TAGS = ("<answer>", "</answer>")
CUE = "\nAnswer:"  # the end of the charter's prompt

# The most that one token may cover: a loop or a run of one sign in a tiny program (so that its length is one token), a logic
# sign, a word after a space, a capitalised word, ONE letter (programs write words letter by letter), ONE digit, white space, or
# one other character.
TOKEN_PATTERN = (
    r">\++\[<[+\-]+>-\]<|>\[-\]>\[-\]<|\+{1,20}|\-{1,20}"
    r"| ?[→∨∧↔¬]| \p{L}+|\p{Lu}\p{Ll}+|\p{L}| ?\d|\s+|."
)
VARYING = re.compile(
    r"\d+|[+\-\[\]<>.*/]{2,}|\(?¬?\(?\b[PQRS]\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:first|second|third|fourth|fifth|last)\b"
)
SENTENCE_BREAK = re.compile(r"(?<=[.?!])(?= )")
MIN_PHRASE = 4  # characters
WHOLE_SHARE = 0.15  # several sentences become one token if this share of a specialty's questions has them
SENTENCE_SHARE = 0.004


def phrases_of(texts: Sequence[str]) -> list[str]:
    """The texts that questions of one specialty repeat between their varying parts."""
    runs = Counter(run for text in texts for run in VARYING.split(text.strip()))
    whole = {run for run, count in runs.items() if count >= WHOLE_SHARE * len(texts)}
    sentences: Counter[str] = Counter()
    for run, count in runs.items():
        if run not in whole:
            sentences.update(dict.fromkeys(SENTENCE_BREAK.split(run), count))
    phrases = whole | {sentence for sentence, count in sentences.items() if count >= SENTENCE_SHARE * len(texts)}
    return [phrase for phrase in phrases if len(phrase) >= MIN_PHRASE]


def build(questions: Mapping[str, Sequence[str]], *, merges: int) -> Tokenizer:
    """Train the tokenizer on the questions of each specialty; `merges` is the size of the vocabulary before phrases are added."""
    phrases = sorted({phrase for texts in questions.values() for phrase in phrases_of(texts)}, key=lambda p: (-len(p), p))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(TOKEN_PATTERN), "isolated"),
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
    tokenizer.train_from_iterator(_without_phrases(phrases, questions.values()), trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in (*TAGS, CUE, *phrases)])
    return tokenizer


def _without_phrases(phrases: Sequence[str], questions: Iterable[Sequence[str]]) -> Iterator[str]:
    """The text for byte pairs to learn from: the questions without the phrases, which are tokens of their own."""
    pattern = re.compile("|".join(map(re.escape, phrases)) or r"(?!)")
    for texts in questions:
        for text in texts:
            yield from pattern.split(text)


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token; raises KeyError if the vocabulary does not have it."""
    number = tokenizer.token_to_id(token)
    if number is None:
        raise KeyError(token)
    return int(number)


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json, from which transformers loads exactly this tokenizer."""
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=STOP,
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )
    wrapped.save_pretrained(folder)
