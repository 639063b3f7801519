"""Why a test fails there although Waggle is not at fault: Wine lacks something, or the test takes another system for granted.

Whatever is not named here is laid to Waggle.
"""

import re

OURS = "Waggle"
NO_LINK = "Wine: makes no symbolic link, but says that it did"
REASONS = {
    r"test_trainings.py::test_a_path_that_is_spelled_otherwise": NO_LINK,
    r"test_program_files.py::test_a_window_whose_files_are_moved_away": NO_LINK,
    r"test_os_faults.py::test_downloading_again_is_advised_only": NO_LINK,
    r"packaging/test_(dev|downloads|release|wheel).py$": "the rig: python.org's embeddable Python has no venv",
    r"test_backup.py::test_a_backup_is_for_its_owner_alone_and_no_link": NO_LINK,
    r"test_models.py::test_a_model_that_another_engine_uses": "Wine: renames a folder in which a file is open",
    r"test_windows_job.py::test_a_process_in_a_job": "Wine: does not enforce the limits of job objects",
}


def reason(failure: str) -> str | None:
    """What Wine lacks for a test, or what the test takes for granted; None if the failure is ours."""
    return next((why for word, why in REASONS.items() if re.search(word, failure)), None)
