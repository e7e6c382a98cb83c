"""The traps of series have teeth: each fault planted in the code is found by the test of its trap."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.attacks import test_series as traps
from tests.cli import test_publish as published
from tests.support.mutants import Mutant, planted
from wpinq.api.running import RunningTotal
from wpinq.cli import publish
from wpinq.data import epochs as filters, read, sources
from wpinq.errors import WpinqError
from wpinq.expr import epochs
from wpinq.expr.epochs import Epoch
from wpinq.kernel import prepare
from wpinq.kernel.ledger import accounts
from wpinq.measure import prepaid
from wpinq.plan import demand


class Fault(NamedTuple):
    """A fault, and the test that finds it."""

    trap: str
    name: str
    owner: Any
    function: str
    old: str
    new: str
    finder: Callable[..., None]
    case: tuple[Any, ...] = ()


def moved_by_others(form: str) -> Callable[..., None]:
    def finder(tmp_path: Path) -> None:
        assert not any(traps.moved(seed, form, tmp_path) for seed in range(12))

    return finder


FAULTS = (
    Fault("a", "the filter comes after the cut", read, "_relation", "rows is kept or kept.used", "True",
          moved_by_others("parquet")),
    Fault("a", "rows outside are checked", filters, "in_epoch", "return replace(",
          "return replace(relation, source=relation.source) if not epoch.strict else replace(",
          traps.test_a_rows_of_other_epochs_refuse_nothing, ("parquet",)),
    Fault("a", "SQL keeps the first moment of the next epoch", Epoch, "condition", "end - 1", "end",
          moved_by_others("parquet")),
    Fault("a", "what has no time is in every epoch", filters.RowsOfEpoch, "_holds", "True, False,",
          "True, value is None,", moved_by_others("rows")),
    Fault("b", "a period holds the first moment of the next", Epoch, "bounds", "else (start, end)",
          "else (start, end + 1)", traps.test_b_a_row_is_in_one_epoch_and_no_other),
    Fault("b", "an epoch takes what comes later too", Epoch, "holds", "first <= value < end", "first <= value",
          traps.test_b_a_row_is_in_one_epoch_and_no_other),
    Fault("b", "weeks are numbered from new year", epochs, "_text", "moment.isocalendar()[:2]",
          'map(int, moment.strftime("%Y %W").split())', traps.test_b_a_row_is_in_one_epoch_and_no_other),
    Fault("c", "an epoch has several labels, and so accounts", epochs, "_index",
          "_text(every, _moment(every, index)) == label and", "", traps.test_c_other_labels_are_no_epochs,
          ("2026-11-27T05",)),
    Fault("c", "there are epochs before the first", Epoch, "number", "if number < 1:", "if number < -999:",
          traps.test_c_other_labels_are_no_epochs, ("2025-12-31",)),
    Fault("c", "a stream without rows is refused", sources, "table_relation", "table.consumed and kept is None",
          "table.consumed", traps.test_c_no_late_row_decides_whether_an_epoch_is_protected, ("a stream",)),
    Fault("c", "without a file an epoch is refused", publish, "_data", "[] if found == _MISSING", "[] if False",
          published.test_an_epoch_without_a_file_is_published_as_any_other),
    Fault("c", "a failed epoch leaves its reason", publish, "publish", "write_atomically(failed, FAILED)",
          "write_atomically(failed, repr(__import__('sys').exc_info()).encode())",
          published.test_a_refused_epoch_publishes_one_constant_file, ("c,,2026-11-27T05:00:00\n",)),
    Fault("c", "a failed epoch leaves nothing", publish, "publish", "write_atomically(failed, FAILED)", "pass",
          published.test_a_failed_evaluation_publishes_the_same_file),
    Fault("d", "another version replays the answers of the first", prepare, "prepare", "repr(sorted(versions))", "''",
          traps.test_d_another_version_pays_anew_from_the_same_account),
    Fault("d", "other content passes under one version", publish, "_data", "read.get(version, found) != found", "False",
          published.test_other_content_under_one_version_is_refused_in_every_process),
    Fault("d", "half of a line is a version", publish, "_data", 'and line.endswith("\\n")', "",
          published.test_a_line_that_was_never_written_whole_is_no_version),
    Fault("d", "an epoch's digest is in the ledger's folder for all to read", publish, "_data", "0o600", "0o644",
          published.test_other_content_under_one_version_is_refused_in_every_process),
    Fault("e", "a failure suspends its epoch alone", accounts, "set_suspended", "name.partition(SEPARATOR)[0]", "name",
          traps.test_e_a_failure_suspends_all_epochs_to_come),
    Fault("f", "a node is the query of the sum", RunningTotal, "node",
          "concat_all([*map(self.query, epochs)])", "self.query(concat_all(epochs))",
          traps.test_a_node_is_the_sum_of_the_query_of_each_epoch),
    Fault("f", "a share is taken twice", prepaid, "prepaid_charges",
          "held[TAKEN] += cost if level == place.level else 0", "held[TAKEN] = max(held[TAKEN], cost)",
          traps.test_no_claim_of_a_share_costs_less_than_the_nodes),
    Fault("f", "the first node pays its level alone", prepaid, "prepaid_charges", "range(place.levels)",
          "(place.level,)", traps.test_the_first_node_pays_all_levels_and_later_ones_find_them_paid),
    Fault("f", "a plain count pays for a node", RunningTotal, "node", "whole.reading, None, share", "whole.reading",
          traps.test_a_plain_count_before_the_first_node_leaves_no_level_unpaid),
    Fault("f", "a person pays the dearest epoch, and not all", demand, "charges",
          "owed[over_all(source.epoch.series)] += asked[name] * source.unit_weight",
          "every = over_all(source.epoch.series); owed[every] = max(owed[every], asked[name] * source.unit_weight)",
          traps.test_budget_all_bounds_one_person_over_epochs),
    Fault("f", "answers of another query pass for nodes", RunningTotal, "total", "_identity(own.measurement) !=",
          "False and _identity(own.measurement) !=", traps.test_totals_are_sums_of_few_nodes_and_their_noise_is_known),
    Fault("g", "periods are those of a local clock", Epoch, "bounds", "- _UNIX)",
          "- _UNIX + datetime.timedelta(hours=5))", traps.test_g_bounds_are_in_utc, ("rows",)),
    Fault("h", "of two epochs one is billed", demand, "charges", "in declared.items()", "in [*declared.items()][:1]",
          traps.test_h_a_join_of_two_epochs_is_billed_on_both),
    Fault("accounts", "an epoch pays from the account of another", Epoch, "check",
          "source != self.source or account != source", "False",
          traps.test_a_declaration_by_hand_has_the_name_and_the_account_of_its_epoch),
    Fault("accounts", "epochs read their rows by different columns", Epoch, "check", "if columns and", "if False and",
          traps.test_all_epochs_read_their_rows_by_one_column),
    Fault("accounts", "a table has the name of a series", accounts, "check_single", "known.name not in ours",
          "not ours", traps.test_a_table_and_a_series_never_share_a_name),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.trap}: {fault.name}")
def test_a_planted_fault_is_found(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"tmp_path": tmp_path, "monkeypatch": monkeypatch, "folder": tmp_path}
    published.prepare(tmp_path)
    names = [*inspect.signature(fault.finder).parameters]
    fixtures = {name: given[name] for name in names if name in given}
    fixtures |= dict(zip([name for name in names if name not in given], fault.case, strict=True))
    mutant = Mutant(fault.name, fault.owner, fault.function, ((fault.old, fault.new),))
    with planted(mutant), pytest.raises((AssertionError, WpinqError, OSError, ValueError, pytest.fail.Exception)):
        fault.finder(**fixtures)


def test_each_trap_has_a_fault() -> None:
    assert {fault.trap for fault in FAULTS} == {*"abcdefgh", "accounts"}
