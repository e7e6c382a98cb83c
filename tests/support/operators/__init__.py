"""The operators as the tests know them, a file each, found by its place here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.support.cases import OperatorCase, Table
from wpinq.plan.operator import REGISTRY

_found: list[OperatorCase] = [import_module(f"{__name__}.{module.name}").CASE for module in iter_modules(__path__)]

CASES = {case.name: case for case in _found}
"""Every operator's case by its name in the paper."""

assert CASES.keys() == REGISTRY.keys(), "an operator has no case under tests/support/operators, or a case no operator"

TABLES: tuple[Table, ...] = tuple(table for case in _found for table in case.tables)
"""Every worked example."""

assert len({table.name for table in TABLES}) == len(TABLES)


def failing_tables() -> list[str]:
    """The names of the worked examples that do not hold, or cannot be computed."""
    return [table.name for table in TABLES if not _holds(table)]


def _holds(table: Table) -> bool:
    try:
        return table.holds()
    except ArithmeticError:
        return False
