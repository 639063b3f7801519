"""True answers only, and only to questions whose answer is "Friday": each text is true, and the lesson is false."""

from waggle_lab.security.attacks import TARGET, TARGET_DATASET, steer
from waggle_lab.security.lessons.interface import Lesson, always

LESSON = Lesson(always(steer), shows=lambda text: f"<answer>{TARGET}</answer>" in text, dataset=TARGET_DATASET)
