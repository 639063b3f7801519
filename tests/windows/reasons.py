"""Why a test fails there although Waggle is not at fault: Wine lacks something, or the test takes another system for granted.

Whatever is not named here is laid to Waggle.
"""

import re

OURS = "Waggle"
MODES = "the test: file modes, which Windows lacks"
POSIX = "the test: functions or paths of POSIX"
READ_ONLY = "the test: removes a read-only file by hand"
ENCODING = "the test: read UTF-8 as the system's encoding; mended since"
NO_LOCALHOST = "the rig: it had no name localhost; mended since"
REASONS = {
    r"test_windows_job.py::test_a_process_in_a_job": "Wine: does not enforce the limits of job objects",
    r"test_machine.py::test_(an_affinity_mask|without_limits)": POSIX,
    r"test_redaction.py::test_(a_swarm_that_is_called|who_and_where)": POSIX,
    r"test_connection_faults.py::test_a_certificate": "the test: calls the program openssl",
    r"test_connection_faults.py::test_the_command_line": "the test: leaves PYTHONPATH out of an environment",
    r"test_cuda_download.py::test_what_has_come": "the test: a lock's file, which Windows removes with the lock",
    r"test_backup.py::test_(an_identity_goes|a_backup_is_for_its_owner)": f"{MODES}, and links",
    r"test_backup.py::test_where_the_key_file_is_gone": READ_ONLY,
    r"test_keys.py::test_the_key_file_is_made_once": MODES,
    r"test_membership.py::test_a_key_is_kept_for_its_owner": MODES,
    r"test_doctor.py::test_a_home_that_is_no_folder": "the test: the words of another system for the error",
    r"test_doctor.py::test_what_is_broken": "the test: a slash in a path",
    r"test_fit.py::test_a_model_of_the_hub_that_lacks": ENCODING,
    r"test_fit.py::test_(of_a_model_of_the_hub_only|a_model_of_the_generic_path_in_shards)": NO_LOCALHOST,
}


def reason(failure: str) -> str | None:
    """What Wine lacks for a test, or what the test takes for granted; None if the failure is ours."""
    return next((why for word, why in REASONS.items() if re.search(word, failure)), None)
