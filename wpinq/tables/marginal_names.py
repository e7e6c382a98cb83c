"""Names in what is shown of marginals: those of their attributes, and of columns beside them."""

from __future__ import annotations

from collections.abc import Container, Sequence

from wpinq.errors import AnswersError
from wpinq.expr.near_names import suggest
from wpinq.marginals.measured_views import View


def view_of(names: Sequence[object], known: Sequence[str]) -> View:
    """The view of some attributes, each named once, among those of a table; AnswersError for what is none."""
    for name in names:
        if not isinstance(name, str):
            raise AnswersError(f"a marginal is named by its attributes, one by one: counts('age', 'sex'), not {name!r}")
        if name not in known:
            raise AnswersError(f"there is no attribute {name!r}; {suggest(name, known)}")
    if len(set(names)) < len(names):
        raise AnswersError("a marginal names each attribute once")
    return tuple(sorted(list(known).index(str(name)) for name in names))


def free_name(name: str, taken: Container[str]) -> str:
    """A name for a column of ours that no attribute has."""
    while name in taken:
        name = f"marginal_{name}"
    return name
