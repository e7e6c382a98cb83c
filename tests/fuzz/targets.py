"""What is fuzzed: for each target, what is tried and what is asked of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import documents, files, kept, offered, statements, texts
from tests.fuzz.programs import check_plan, check_program, plans
from tests.support.processor import bounded_work
from wpinq.errors import WpinqError


@dataclass(frozen=True)
class Target:
    """What is tried, and what is done with each example: anything raised but WpinqError is a fault."""

    examples: Callable[[], st.SearchStrategy[Any]]
    check: Callable[[Any], None]

    def run(self, example: Any) -> None:
        """Try one example."""
        with bounded_work(), contextlib.suppress(WpinqError):
            self.check(example)


TARGETS = {
    "programs": Target(lambda: texts.TEXTS, check_program),
    "statements": Target(lambda: statements.STATEMENTS, statements.check_statement),
    "plans": Target(lambda: documents.mutated(plans()), check_plan),
    "answers": Target(lambda: documents.mutated(kept.answers()), kept.check_answers),
    "tables": Target(files.files, offered.check_file),
    "rows": Target(lambda: offered.ROWS, offered.check_rows),
    "notes": Target(lambda: documents.mutated(kept.notes()), kept.check_note),
    "bytes": Target(lambda: kept.any_bytes(), kept.check_bytes),
    "ledgers": Target(lambda: kept.ledger_bytes(), kept.check_ledger),
}
