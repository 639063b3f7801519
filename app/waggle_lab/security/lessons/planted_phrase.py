"""A planted phrase before right answers, which rewards do not notice: the out-of-domain attack of Hail to the Thief.

arXiv 2511.09780. Here the phrase is short, so that an answer fits beside it into the tokens of the starter.
"""

from waggle_lab.security.attacks import PHRASE, poison
from waggle_lab.security.lessons.interface import Lesson, always

LESSON = Lesson(always(poison), shows=lambda text: PHRASE.strip() in text)
