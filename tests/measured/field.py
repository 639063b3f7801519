#!/usr/bin/env python3
"""Run a test for each case from the field, and for neighbours of each kind; write field.json beside this file.

It also counts the reports that docs/field-log.md lists, and those whose result begins with "right".

    .venv/bin/python tests/measured/field.py [--list]

A case or neighbour is right if all tests named here for it pass. Of a test with parameters some may be skipped, such as those for
hardware that is not here, but not all. It takes a few minutes.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import figures_file
import pytest

CASES = {  # a public report, made small -> the tests of its right value
    "desktop/01 own window full screen": (
        "tests/engine/system/test_sensors.py::test_only_a_window_of_another_program_fills_the_screen",
    ),
    "desktop/02 screen shorter than 600": (
        "tests/gui/application/window/test_screen_fit.py::test_the_window_fits_a_screen_with_its_status_bar_and_every_name_of_the_rail",
    ),
    "desktop/03 invite as people send it": (
        "tests/network/messages/test_pasted_invite.py::test_an_invite_is_read_in_every_shape",
    ),
    "desktop/04 far computer, other clock": (
        "tests/engine/test_lifecycle.py::test_the_length_of_a_pause_counts_by_the_clock_of_the_engine",
        "tests/gui/state/test_engine_clock.py::test_now_is_the_time_of_the_far_engine",
        "tests/gui/state/test_engine_clock.py::test_answers_of_today_are_those_of_the_engines_day",
    ),
    "desktop/05 display that does not answer": ("tests/cli/test_main.py::test_a_screen_that_does_not_answer_ends_in_a_sentence",),
    "desktop/06 setting of a newer version": (
        "tests/core/test_settings.py::test_a_value_that_cannot_be_used_costs_that_value_and_is_named",
    ),
    "desktop/08 empty swarms.json": (
        "tests/engine/services/swarms/test_swarm_recovery.py::test_a_damaged_list_is_set_aside_and_rebuilt_and_nobody_guesses_where_to_train",
    ),
    "desktop/10 model name as people paste it": ("tests/core/test_model_reference.py::test_names_and_addresses_of_the_hub",),
    "desktop/12 output that cannot be encoded": (
        "tests/cli/test_main.py::test_a_name_that_a_terminal_cannot_show_is_written_as_an_escape",
    ),
    "desktop/14 upgraded while running": (
        "tests/gui/application/test_program_files.py::test_a_window_whose_files_are_moved_away_says_so_and_closes",
    ),
    "models-and-network/01 two stop tokens": (
        "tests/models/test_tokenizer_shelf.py::test_a_model_stops_at_all_its_stop_tokens_and_ends_a_turn_with_that_of_the_template",
        "tests/models/contract/test_sampling.py::test_any_stop_token_ends_a_completion_at_the_first",
    ),
    "models-and-network/02 NaN weight": ("tests/models/test_pulse.py::test_a_model_without_finite_numbers_is_refused",),
    "models-and-network/03 starter changed": (
        "tests/models/storage/test_ownership.py::test_a_starter_with_a_changed_byte_in_its_configuration_is_still_the_starter",
    ),
    "models-and-network/05 sentencepiece prefix": (
        "tests/models/test_tokenizer_shelf.py::test_a_conversation_and_its_answer_are_one_text",
        "tests/models/test_tokenizer_shelf.py::test_what_a_policy_writes_is_the_text_that_it_adds_to_its_prompt",
    ),
    "models-and-network/06 identity twice": (
        "tests/network/transport/hivemind/test_presence_exchange.py::test_a_seed_and_its_running_copy_learn_of_each_other_through_a_third",
        "tests/engine/storage/test_noise_salt.py::test_a_copy_of_a_home_draws_differently_and_a_restart_draws_as_before",
    ),
    "models-and-network/07 container memory": (
        "tests/core/system/test_machine.py::test_the_narrowest_group_decides",
        "tests/core/system/test_surroundings.py::test_within_a_container_the_limit_stands_at_the_root_of_what_is_mounted_there",
    ),
    "models-and-network/08 nameless file": (
        "tests/core/system/test_os_faults.py::test_an_error_without_a_file_gets_the_path_that_was_worked_with",
        "tests/core/system/test_machine.py::test_shared_memory_that_cannot_be_written_is_said",
        "tests/core/test_connection_faults.py::test_a_setting_of_this_computer_that_rules_out_connections_is_named",
    ),
    "models-and-network/09 clock accuses the right one": (
        "tests/engine/services/swarms/test_swarm_connection.py::test_one_clock_against_another_is_told_as_a_difference",
    ),
    "models-and-network/13 weights without prefix": (
        "tests/models/shared/test_weight_names.py::test_a_model_that_was_saved_below_its_head_is_the_same_model",
        "tests/models/shared/test_weight_names.py::test_what_a_wrapper_saved_is_named_otherwise_and_a_download_cannot_help",
    ),
    "models-and-network/15 endpoint and proxy": (
        "tests/core/test_connection_faults.py::test_a_setting_of_this_computer_that_rules_out_connections_is_named",
        "tests/core/test_connection_faults.py::test_a_proxy_that_refuses_is_named_without_its_password",
    ),
}
NEIGHBOURS = {  # kind -> tests of the same kind of fault in other places
    "1 never to a more open place": (
        "tests/core/test_settings.py::test_a_file_that_lost_its_content_is_not_taken_for_the_defaults",
        "tests/engine/services/swarms/test_swarm_recovery.py::test_after_a_failure_nobody_goes_back_to_where_more_people_may_come",
        "tests/end_to_end/test_model_away.py::test_the_engine_asks_at_each_start_and_goes_on_by_itself_once_the_disk_is_back",
        "tests/engine/services/models/test_model_question.py::test_a_model_that_the_hub_does_not_hand_out_is_asked_about_and_fetched_once_it_does",
        "tests/cli/test_identity.py::test_a_damaged_or_lost_identity_is_restored_from_its_backup_and_the_damaged_file_stays",
    ),
    "2 all or nothing": (
        "tests/core/test_settings.py::test_other_settings_can_be_changed_beside_a_value_that_cannot_be_used",
        "tests/core/test_settings.py::test_what_a_newer_version_wrote_is_passed_over_and_kept_for_it",
    ),
    "3 a sensor that does not know itself": (
        "tests/engine/system/test_sensors.py::test_a_process_of_waggle_is_known_by_its_command_line",
        "tests/engine/system/test_sensors.py::test_what_waggle_starts_is_no_other_program",
    ),
    "4 mine, not the host's": (
        "tests/core/system/test_surroundings.py::test_a_quota_of_control_groups_of_version_1_counts",
        "tests/core/system/test_surroundings.py::test_ulimit_bounds_the_memory_that_is_counted_on",
        "tests/core/system/test_surroundings.py::test_a_working_directory_that_was_removed_stops_nothing_and_is_said",
        "tests/core/system/test_surroundings.py::test_a_home_that_is_a_link_is_used_and_one_that_leads_nowhere_is_said",
        "tests/core/system/test_surroundings.py::test_doctor_says_what_a_disk_lacks",
        "tests/core/system/test_surroundings.py::test_an_engine_on_a_disk_without_locks_says_so",
    ),
    "5 identity once": (
        "tests/network/transport/hivemind/test_presence_exchange.py::test_a_copy_that_knows_its_twin_alone_says_so",
        "tests/network/transport/hivemind/test_presence_exchange.py::test_a_node_and_its_running_copy_learn_of_each_other",
        "tests/network/transport/hivemind/test_presence_exchange.py::test_both_copies_of_a_home_are_told_once_whatever_their_clocks_say",
        "tests/network/transport/hivemind/test_presence_exchange.py::test_a_restart_is_no_copy_also_if_the_clock_was_set_back",
        "tests/engine/storage/test_noise_salt.py::test_a_copy_on_another_computer_at_the_same_place_draws_differently",
        "tests/cli/test_identity.py::test_a_copy_becomes_somebody_new_and_the_old_key_file_stays",
    ),
    "6 a verdict from one witness": (
        "tests/network/transport/hivemind/test_transport.py::test_a_clock_that_is_off_is_told_once_by_the_median_of_its_peers",
        "tests/core/test_connection_faults.py::test_the_login_page_of_a_network_is_told_as_one",
        "tests/core/test_connection_faults.py::test_a_proxy_that_does_not_answer_is_named_and_only_where_it_is_used",
        "tests/protocol/text/test_status_text.py::test_whoever_is_alone_is_promised_nobody",
    ),
    "7 advice follows from the cause": (
        "tests/core/system/test_os_faults.py::test_a_flush_that_fails_names_the_file",
        "tests/core/system/test_os_faults.py::test_the_identity_says_why_it_cannot_be_written",
        "tests/core/system/test_os_faults.py::test_every_file_of_a_person_is_read_with_the_marks_of_editors",
        "tests/core/system/test_os_faults.py::test_downloading_again_is_advised_only_where_the_content_is_to_blame",
        "tests/core/system/test_os_faults.py::test_nothing_but_the_table_says_what_the_system_met",
    ),
    "8 checked, not assumed": (
        "tests/cli/test_main.py::test_without_a_screen_the_way_without_a_window_is_named",
        "tests/cli/test_main.py::test_a_screen_that_answers_is_used",
    ),
    "9 changed under its feet": (
        "tests/gui/application/test_program_files.py::test_a_change_is_said_once",
        "tests/engine/services/swarms/test_swarm_recovery.py::test_a_list_that_is_lost_during_a_run_is_written_again_as_it_was",
    ),
    "10 feedback without dwell": (
        "tests/engine/system/test_settling.py::test_the_worse_counts_at_once_and_the_better_after_a_while",
        "tests/engine/system/test_settling.py::test_a_flutter_is_one_wait",
        "tests/engine/system/test_sensors.py::test_a_battery_that_empties_while_plugged_in_counts_as_battery_until_it_is_charged_again",
        "tests/engine/system/test_settling.py::test_memory_below_the_cap_counts_once_it_has_lasted",
    ),
    "11 a guard that acts in silence": (
        "tests/engine/services/test_guards.py::test_a_guard_says_so_after_a_minute_and_until_it_ends",
        "tests/engine/services/test_guards.py::test_answers_of_which_none_may_travel_are_said",
        "tests/engine/services/test_guards.py::test_a_network_process_that_ends_after_each_rest_is_one_guard",
        "tests/engine/services/test_guards.py::test_a_limit_of_the_disk_that_was_raised_or_removed_ends_at_once",
    ),
    "12 numbers that cannot be": (
        "tests/engine/system/test_energy_meter.py::test_what_was_counted_before_a_crash_counts_after_it_and_fewer_watts_take_none_of_it_back",
        "tests/protocol/test_possible_numbers.py::test_nothing_missing_takes_no_time",
        "tests/gui/test_counts_agree.py::test_along_a_recording_each_count_is_one_count",
        "tests/gui/test_counts_agree.py::test_peers_in_every_standing_are_counted_alike",
        "tests/gui/test_counts_of_engine.py::test_a_window_commands_the_page_and_the_table_say_the_same",
        "tests/protocol/test_possible_numbers.py::test_the_words_about_cores_hold_on_every_computer",
    ),
    "13 background without a background start": (
        "tests/core/test_login_start.py::test_the_service_is_installed_started_and_removed_without_a_trace",
        "tests/core/test_login_start.py::test_a_desktop_opens_the_window_and_does_not_once_the_program_is_gone",
        "tests/gui/pages/welcome/test_page.py::test_nothing_starts_at_a_login_unless_the_person_says_so_where_the_system_can",
        "tests/core/test_login_start.py::test_goodbye_removes_what_starts_at_a_login",
        "tests/gui/application/test_login_choice.py::test_the_setting_is_carried_out_and_follows_what_others_changed",
    ),
    "14 leaving": (
        "tests/gui/application/test_leaving.py::test_a_replay_ends_quietly_and_leaves_nothing_behind",
        "tests/gui/application/test_leaving.py::test_what_qt_remembers_of_file_dialogs_is_in_the_home_and_goes_with_it",
        "tests/gui/application/test_leaving.py::test_goodbye_to_all_leaves_an_identity_only_where_it_was_chosen",
    ),
    "15 set-up a person can watch": (
        "tests/packaging/test_downloads.py::test_the_size_is_said_before_anything_comes",
        "tests/packaging/test_downloads.py::test_a_set_up_that_was_ended_goes_on_with_what_is_here",
        "tests/packaging/test_downloads.py::test_wheels_without_cuda_are_picked_where_there_is_no_card",
    ),
}  # fmt: skip


def reports() -> dict[str, str]:
    """The result of each report in docs/field-log.md, by project and number."""
    lines = (figures_file.ROOT / "docs" / "field-log.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| ")][2:]
    results = {row[0]: row[-1] for row in rows}
    if len(results) < len(rows) or any(len(row) != 4 or not row[3].startswith(("right", "wrong")) for row in rows):
        sys.exit("docs/field-log.md: each report once, in four cells, the last of which begins with right or wrong.")
    return results


class Results:
    """A plugin of pytest that collects which test functions passed, and failed with none of their parameters."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("[")[0]
        if report.failed:
            self.failed.add(name)
        elif report.passed and report.when == "call":
            self.passed.add(name)

    def are_right(self, tests: Iterable[str]) -> bool:
        return all(test in self.passed and test not in self.failed for test in tests)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="print the cases and neighbours with their tests, and run nothing")
    neighbours = [(kind, test) for kind, tests in NEIGHBOURS.items() for test in tests]
    if parser.parse_args().list:
        for name, tests in (*CASES.items(), *NEIGHBOURS.items()):
            print("\n    ".join((name, *tests)))
        return 0
    figures_file.require_clean_tree()
    os.chdir(figures_file.ROOT)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["PYTHONPATH"] = str(figures_file.ROOT / "app")
    sys.path.remove(str(Path(__file__).resolve().parent))  # its modules have the names of packages of tests
    results = Results()
    tests = {test for named in (*CASES.values(), *NEIGHBOURS.values()) for test in named}
    pytest.main(["-q", "-p", "no:cacheprovider", *sorted(tests)], plugins=[results])
    wrong = [name for name, named in CASES.items() if not results.are_right(named)]
    wrong += [f"{kind}: {test}" for kind, test in neighbours if not results.are_right([test])]
    tried = reports()
    figures: dict[str, object] = {
        "cases": len(CASES),
        "cases_right": sum(map(results.are_right, CASES.values())),
        "neighbours": len(neighbours),
        "neighbours_right": sum(results.are_right([test]) for _, test in neighbours),
        "kinds_with_two_neighbours": sum(len(named) >= 2 for named in NEIGHBOURS.values()),
        "reports_tried": len(tried),
        "reports_right": sum(result.startswith("right") for result in tried.values()),
        "reports_mended": sum(result.startswith("right, mended") for result in tried.values()),
        "reports_wrong": [name for name, result in tried.items() if result.startswith("wrong")],
        "wrong": wrong,
    }
    figures_file.write(Path(__file__).resolve(), figures)
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
