"""What a notebook shows of released marginals: how many cells each has, and how exact they are."""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.runtime.markup import block, element, table, title


def marginals_html(head: str, rows: Sequence[tuple[str, int, float]], many: int) -> str:
    """Marginals as HTML: title, cells and half-width of each, and how many more there are."""
    cells = [[name, f"{count:,}", f"{half:.4g}"] for name, count, half in rows]
    parts = [title(head), table(["marginal", "cells", "± at 95 %, each cell"], list(map(list, cells)), {1, 2})]
    if many > len(rows):
        parts.append(element("div", f"… {many - len(rows)} more: to_pandas() has all"))
    return block(*parts)
