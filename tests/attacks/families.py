"""Where the tests of each family of attacks are: in this folder, and those that stand beside what they attack.

A name that ends in `/` or `.py` means all tests there.
"""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "state in lambdas": ("attacks/test_lambdas.py", "attacks/test_forged.py"),
    "exceptions, nulls, overflow and casts on a victim": (
        "attacks/test_victims.py",
        "attacks/test_messages.py::test_no_record_makes_an_evaluation_fail",
        "engines/spark/test_agreement.py::test_extreme_arguments_raise_nothing",
    ),
    "what never ends": ("attacks/test_hostile_text.py", "attacks/test_bounded_work.py"),
    "blow-up by one record, and with others": (
        "attacks/test_one_unit.py",
        "attacks/test_one_unit_on_spark.py",
        "attacks/test_bounded_work.py",
        "engines/test_spill.py::test_values_larger_than_a_block_are_spilled_and_come_back",
    ),
    "SQL through names, strings and unicode": (
        "attacks/test_sql.py",
        "session/test_engine.py::test_sources_whose_names_differ_in_case_are_two",
    ),
    "equality tricks": (
        "attacks/test_equality.py",
        "attacks/test_noise_keys.py",
        "data/test_merging.py::test_equal_hashes_make_no_rows_equal",
    ),
    "order and hash seed": (
        "attacks/test_order.py",
        "attacks/test_floats.py",
        "engines/test_agreement.py::test_the_bits_do_not_depend_on_threads_or_the_order_of_rows",
    ),
    "negative, huge and tiny weights": ("attacks/test_weights.py", "attacks/test_floats.py"),
    "handles": (
        "attacks/test_messages.py",
        "session/test_answers.py::test_a_release_does_not_tell_which_keys_there_are",
        "session/test_answers.py::test_a_release_has_no_other_way_in",
        "session/test_answers.py::test_a_session_cannot_be_copied",
        "attacks/test_lambdas.py::test_nothing_public_of_a_session_gives_the_data",
    ),
    "edge cases of epsilon": ("attacks/test_epsilons.py", "privacy/test_epsilon.py"),
    "absorption of tiny debits": (
        "attacks/test_tiny_debits.py",
        "ledger/test_ledger.py::test_the_largest_budget_can_be_spent_and_not_a_nano_more",
    ),
    "threads, fork and processes": (
        "session/test_concurrency.py",
        "ledger/test_turns.py",
        "ledger/test_ledger_crash.py",
        "attacks/test_noise_keys.py::test_a_forked_process_draws_noise_of_its_own",
        "session/test_engine.py::test_a_forked_child_has_a_database_of_its_own",
    ),
    "kill -9 between any two statements": (
        "attacks/test_kills.py",
        "ledger/test_ledger_crash.py::test_a_kill_at_any_statement_leaves_all_or_nothing",
        "ledger/test_ledger_crash.py::test_a_kill_at_any_moment_leaves_a_ledger_that_verifies",
        "session/test_concurrency.py::test_a_kill_at_any_moment_loses_nothing_but_budget",
    ),
    "full disks": (
        "attacks/test_full_disk.py",
        "cli/test_output.py::test_a_full_disk_before_the_debit_costs_nothing",
        "engines/test_spill.py::test_a_full_disk_is_a_failure_like_any_other",
    ),
    "edited, truncated, restored, locked, linked and read-only ledgers": (
        "attacks/test_ledger_file.py",
        "ledger/test_noticed.py",
        "ledger/test_places.py",
        "ledger/test_ledger.py::test_what_may_not_be_read_or_written_is_named",
        "cli/test_ledger_copies.py",
    ),
    "the same data twice": (
        "session/test_people.py::test_one_file_or_object_under_two_names_is_noticed",
        "data/test_consumables.py",
        "attacks/test_equality.py::test_a_mapping_cannot_hold_one_record_twice",
    ),
    "people across tables": ("attacks/test_people_across_tables.py",),
    "nodes of graphs": ("attacks/test_cut_nodes.py", "synthesis/test_public_nodes.py", "synthesis/test_labels.py"),
    "accounts by epoch": ("attacks/test_series.py", "attacks/test_series_mutants.py", "cli/test_publish.py"),
    "contradicting declarations": (
        "attacks/test_declarations.py",
        "session/test_budget.py::test_the_ledger_knows_a_source_by_its_schema_and_unit",
        "session/test_people.py::test_an_account_fixes_every_table_and_replays",
    ),
    "partitions": (
        "attacks/test_partitions.py",
        "session/test_budget.py::test_parts_in_one_batch_cost_the_largest_and_across_batches_the_increase",
        "session/test_people.py::test_parts_of_two_tables_are_never_one_partition",
    ),
    "spill files after kill -9": (
        "engines/test_spill.py::test_nothing_is_left_of_a_process_that_is_killed",
        "engines/test_spill.py::test_names_are_spilled_where_nobody_finds_them",
    ),
    "output that fails": ("cli/test_output.py",),
    "what a child does besides": ("attacks/test_restricted_child.py",),
    "exit codes, failures and time": ("attacks/test_exit_codes_and_time.py", "attacks/test_worst_data_in_a_child.py"),
    "analysts who look at one another": ("ledger/test_analysts.py", "session/test_analysts.py"),
    "tokens, sizes, slow clients and deaths of a service": ("service/test_requests.py", "service/test_deaths.py"),
    "files that are not what they should be": ("attacks/test_fuzzing.py", "data/test_foreign_failures.py"),
}
"""Family -> tests, under `tests/`."""
