"""The words for translation are collected from the product's source."""

import translations


def test_reasons_and_what_is_put_behind_the_sentence_of_another_are_collected(tmp_path):
    path = tmp_path / "told.py"
    path.write_text(
        'class Fault(StrEnum):\n    TOO_GREEN = "too green"\n    TOO_BLUE = "too blue"\n'
        'say(f"{error.advice} All is well.".strip())\n'
        'raise SwarmError(f"{name} is full.", f"{WHERE} Then go to {name}.")\n'
    )
    assert set(translations._sentences_in(path)) == {"too green", "too blue", "All is well.", "%1 is full.", "Then go to %1."}
