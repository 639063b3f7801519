"""The words for translation are collected from the product's source."""

import translations


def test_words_of_messages_errors_and_plurals_are_collected(tmp_path):
    path = tmp_path / "told.py"
    path.write_text(
        'class Fault(StrEnum):\n    TOO_GREEN = "too green"\n    TOO_BLUE = "too blue"\n'
        'say(in_turn(error.advice, Message("All is well.")))\n'
        'raise SwarmError(Message("%1 is full.", name), "Go on." if going else "Stop.")\n'
        'counted(number, "%n pear", "%n pears")\n'
        'raise ValueError("not for people")\n'
        'ASK = "Ask for it."\nraise SwarmError("It is gone.", ASK)\n'
    )
    words = {"too green", "too blue", "All is well.", "%1 is full.", "Go on.", "Stop.", "It is gone.", "Ask for it."}
    assert set(translations.words_in(path)) == words
    assert set(translations.plurals_in(path)) == {"%n pears"}


def test_an_error_whose_words_are_put_together_is_found(tmp_path):
    path = tmp_path / "told.py"
    path.write_text(
        'raise SwarmError(f"{name} is full.")\nraise SwarmError(f"({name})", "Go on.")\nraise ValueError(f"no {name}")\n'
    )
    assert translations.sentences_put_together(path) == [1]
