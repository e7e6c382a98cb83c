"""Of two choices of rows that are mirror images, one is made, and adds the weights of both.

The wedge a–b–c of an undirected graph is found from a and from c, and both give the same sorted ends. In general: let
two tables of a block have the same rows, with each row (x, y) also (y, x) at the same weight: they are mirrored, which
the plan proves of a SelectMany that lists both directions of a pair. Let the map from columns to columns that
exchanges both tables and, in each, the two columns leave the condition and every column of the output as they are. It
then takes choices of rows to choices of rows with the same record, and done twice it takes them back. Where the
condition says that a column differs from its image, no choice is its own image, and in one of each two the column comes
before its image. That one is made, with its weight and the weight of its image.

Needs: two tables that are mirrored; such a column; an output that is added up; choices of rows that can be more than
the rows of each table. Nothing is asked of the weights, nor of the other tables, whose rows stay the same.

Weights: every choice of rows is counted once, with the weight that it had, on the same grid (`sums`); only the order
of the sum changes, which does not show. So all bits stay, and the error bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from wpinq.engines.sql.blocks import Block, SqlTable, classes, grows, links, restricted
from wpinq.engines.sql.rewrite_targets import Addend, Addends
from wpinq.engines.sql.rewrites.symmetry import NormalForms
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import SqlTerm, call, column, conjuncts, leaves, substitute

Exchange = Callable[[SqlTerm], SqlTerm]
"""A term, read from the mirrored rows."""


def one_of_two(script: Script, addends: Addends) -> Addends:
    """Each block that has mirror images with one row for two choices, and the weights of both.

    Before: `SELECT …, sum(w) FROM e AS a, e AS b WHERE a.y = b.x AND NOT a.x = b.y`.
    After: `SELECT …, sum(w) + sum(w1) FROM e AS a, e AS b WHERE a.y = b.x AND a.x < b.y`.
    """
    return replace(addends, parts=tuple(_part(*part) for part in addends.parts))


def _part(block: Block, weights: tuple[SqlTerm, ...]) -> Addend:
    if len(weights) > 1 or not grows(block):
        return block, weights
    for image in _exchanges(block):
        first = _told_apart(block, image)
        if first is not None:
            return restricted(block, call("less", first, image(first))), (*weights, *map(image, weights))
    return block, weights


def _exchanges(block: Block) -> Iterator[Exchange]:
    """The exchanges of two mirrored tables under which a block gives the same."""
    parts, find = conjuncts(block.condition), classes(block)
    forms = NormalForms(find)
    held = {forms.number(part) for part in parts}
    for (one, table), (other, twin) in combinations(block.tables, 2):
        if table != twin or not table.mirrored or len(table.columns) != 2:  # a pair may still be packed in one
            continue
        image = substitute((_crossed(table, one, other) | _crossed(table, other, one)).get)
        if any(forms.number(image(leaf)) != forms.number(leaf) for leaf in leaves(block.output)):
            continue
        if all(_holds(image(part), find) or forms.number(image(part)) in held for part in parts):
            yield image


def _crossed(table: SqlTable, one: str, other: str) -> dict[SqlTerm, SqlTerm]:
    """The columns of a table under an alias, each with the one that it goes to under another."""
    (left, nullable), (right, _) = table.columns
    pairs = ((left, right), (right, left), ("w", "w"))
    return {column(one, a, nullable): column(other, b, nullable and a != "w") for a, b in pairs}


def _holds(part: SqlTerm, find: Callable[[SqlTerm], SqlTerm]) -> bool:
    """Whether a condition says no more than that columns are equal that are."""
    return links(part) and len(set(map(find, part.arguments))) == 1


def _told_apart(block: Block, image: Exchange) -> SqlTerm | None:
    """A column that the condition says is not its image."""
    find = classes(block)
    for part in conjuncts(block.condition):
        if part.kind == "call" and part.text == "not" and part.arguments[0].text == "equal":
            first, second = part.arguments[0].arguments
            if first.kind == second.kind == "column" and find(image(first)) == find(second):
                return first
    return None
