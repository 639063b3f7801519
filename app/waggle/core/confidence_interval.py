"""The 95% confidence interval of a share, such as a score over few questions."""

import math


def interval_of(right: int, total: int) -> tuple[float, float]:
    """The Wilson score interval: it stays within 0 and 1, and holds for small totals (Wilson 1927)."""
    if total <= 0:
        return 0.0, 1.0
    z, share = 1.96, right / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    reach = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return max(0.0, middle - reach), min(1.0, middle + reach)
