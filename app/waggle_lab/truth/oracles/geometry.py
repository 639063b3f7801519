"""Oracle of the dataset about angles."""

import re
from decimal import Decimal, InvalidOperation

from waggle_lab.truth.interface import Oracle, UnreadableQuestion
from waggle_lab.truth.question_text import read

POLYGON = re.compile(
    r"(?:Given a convex polygon with (\d+) sides, its first (\d+) interior angles are: |A convex polygon has (\d+) "
    r"sides\. The measures "
    r"of the first (\d+) interior angles are: |Consider a convex (\d+)-gon whose first (\d+) interior angles are: "
    r")([\d.°, ]+°)[.,]? "
    r"(?:What is the measure of the remaining interior angle \(in degrees\)\?|Find the measure of the last interior angle\."
    r"|Determine the measure of the remaining angle\.)Return only the angle as your answer\.Do not give the units in "
    r"your answer\."
)


def simple_geometry(question: str, key: str) -> bool:
    """Subtract the known angles. No key is true where the last angle is not that of a convex polygon."""
    text = read(POLYGON, question)
    sides, known = (int(number) for number in text.groups()[:6] if number)
    angles = [Decimal(angle.removesuffix("°")) for angle in text[7].split(", ")]
    if len(angles) != known or known != sides - 1:
        raise UnreadableQuestion(question)
    last = 180 * (sides - 2) - sum(angles)
    try:
        return 0 < last < 180 and Decimal(key) == last
    except InvalidOperation:
        return False


ORACLES: dict[str, Oracle] = {"simple_geometry": simple_geometry}
