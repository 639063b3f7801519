"""Why a test fails under Wine although Waggle is not at fault; whatever is not named here is laid to Waggle."""

import re

OURS = "Waggle"
REASONS = {
    r"test_windows_job.py::test_a_process_in_a_job": "Wine does not enforce the limits of job objects",
}


def reason(failure: str) -> str | None:
    """What Wine, or this way of testing, lacks for a test; None if the failure is ours."""
    return next((why for word, why in REASONS.items() if re.search(word, failure)), None)
