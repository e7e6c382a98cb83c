"""What is fuzzed: for each target, what is tried and what is asked of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import documents, files, kept, offered, texts
from tests.fuzz.programs import check_plan, check_program, plans
from wpinq.errors import WpinqError

SECONDS = 20.0
"""Of processor time, which no example may take; the worst that is known takes two."""


@dataclass(frozen=True)
class Target:
    """What is tried, and what is done with each example: anything raised but WpinqError is a fault."""

    examples: Callable[[], st.SearchStrategy[Any]]
    check: Callable[[Any], None]

    def run(self, example: Any) -> None:
        """Try one example."""
        began = time.process_time()
        with contextlib.suppress(WpinqError):
            self.check(example)
        taken = time.process_time() - began
        assert taken < SECONDS, f"{taken:.0f} s of processor time"


TARGETS = {
    "programs": Target(lambda: texts.TEXTS, check_program),
    "plans": Target(lambda: documents.mutated(plans()), check_plan),
    "answers": Target(lambda: documents.mutated(kept.answers()), kept.check_answers),
    "tables": Target(files.files, offered.check_file),
    "rows": Target(lambda: offered.ROWS, offered.check_rows),
    "notes": Target(lambda: documents.mutated(kept.notes()), kept.check_note),
    "bytes": Target(lambda: kept.any_bytes(), kept.check_bytes),
    "ledgers": Target(lambda: kept.ledger_bytes(), kept.check_ledger),
}
