"""Values that a record always shows, in this column or in that, whichever way its comparisons go.

A record of sorted values has each of them in one of its columns. In general: comparisons decide between two terms
(`CASE`, `least`, `greatest`), and one comparison decides alike in all columns. Where a term over one table stands in
some column however all of them go, its value is one of the record's. It may be computed, as the bucket of a degree is.

`least` and `greatest` decide between terms that are never null: of two that can be, they give the one that is not. What
is compared for each element of a list decides nothing for the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from wpinq.engines.relational.blocks.term import SqlTerm, columns, refilled
from wpinq.expr.nodes import below_first

STEPS = 2**14
"""How many terms are looked at, over all ways in which comparisons can go; where there are more, none is followed."""

_Decision = frozenset[bytes]
"""What tells a comparison: the digest of a condition, or those of the two terms that are put in order."""


def shown(record: Mapping[int, SqlTerm]) -> list[tuple[SqlTerm, frozenset[int]]]:
    """Terms over one table, each with places of a record, in one of which it stands for every row.

    Parameters
    ----------
    record : mapping of int to SqlTerm
        The columns by place.
    """
    single = [(term, frozenset((place,))) for place, term in record.items() if not _spread(term)]
    spread = {place: term for place, term in record.items() if _spread(term)}
    terms = list(below_first(spread.values(), _below))
    decisions = {term.digest: found for term in terms if (found := _decision(term)) is not None}
    different = list(dict.fromkeys(decisions.values()))
    if not different or len(terms) << len(different) > STEPS:
        return single
    ways: list[dict[SqlTerm, set[int]]] = []
    for way in product((False, True), repeat=len(different)):
        goes = dict(zip(different, way, strict=True))
        taken = {digest: goes[decision] for digest, decision in decisions.items()}
        places: dict[SqlTerm, set[int]] = {}
        for place, term in spread.items():
            value = _decided(term, taken)
            if columns(value) and not _spread(value):
                places.setdefault(value, set()).add(place)
        ways.append(places)
    first, *others = ways
    always = [value for value in first if all(value in places for places in others)]
    return [*single, *((value, frozenset().union(*(places[value] for places in ways))) for value in always)]


def _spread(term: SqlTerm) -> bool:
    """Whether a term is over several tables."""
    return len({held.scope for held in columns(term)}) > 1


def _decision(term: SqlTerm) -> _Decision | None:
    if term.kind != "call" or term.text not in ("where", "least", "greatest") or term.parameters or not _spread(term):
        return None
    if term.text == "where":
        return frozenset((term.arguments[0].digest,))
    return None if term.nullable else frozenset(argument.digest for argument in term.arguments)


def _below(term: SqlTerm) -> tuple[SqlTerm, ...]:
    """What a value is made of; how what decides is made is of no concern."""
    return term.arguments if _decision(term) is None or term.text != "where" else term.arguments[1:]


def _decided(root: SqlTerm, taken: Mapping[bytes, bool]) -> SqlTerm:
    """What a term is where comparisons go some way."""
    done: dict[bytes, SqlTerm] = {}
    for term in below_first([root], _below):
        if term.digest not in taken:
            done[term.digest] = refilled(term, tuple(done[argument.digest] for argument in term.arguments))
            continue
        if term.text == "where":
            yes, no = term.arguments[1:]
        else:  # where it is taken, the one with the least digest is the least value
            yes, no = sorted(term.arguments, key=lambda argument: argument.digest, reverse=term.text == "greatest")
        done[term.digest] = done[(yes if taken[term.digest] else no).digest]
    return done[root.digest]
