"""A large sentence is as high as its lines, also after it says something else."""

from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.typeset.lead_sentence import LeadSentence


def test_its_height_follows_its_words_and_its_font(theme: Theme) -> None:
    sentence = LeadSentence(theme, "display")
    sentence.say("Your model solves 29 of 100 new questions, and it began at 0. " * 3)
    high = sentence.heightForWidth(400)
    assert sentence.heightForWidth(4000) < high
    sentence.set_role("small")
    assert sentence.heightForWidth(400) < high
    sentence.set_role("display")
    sentence.say("Ready.")
    assert sentence.heightForWidth(400) < high / 2
