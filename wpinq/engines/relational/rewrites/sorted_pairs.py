"""A pair that is sorted to be looked up in a table is looked up in either order.

`least(x, y) = p` and `greatest(x, y) = q`, with p and q of one table and x and y of two others, can only be seen to
hold once both others are joined: the ends of a wedge a–b–c, looked up among undirected edges that stand there once.
Either `x = p` and `y = q`, and y is not before x, or `x = q` and `y = p`, and it is: two blocks that exclude each
other, in each of which the table of the pair can be joined to one of the others before the second is there. So the
wedges of an edge are found from the edge, as triangles are (`join_order_by_row`). A block that a condition
rules out, for it says which way round the values come, is left out.

Every choice of rows that satisfied the condition satisfies that of one of the two blocks, with the same values in all
terms; records and weights keep their bits, whatever is summed is summed without regard to order, and the error bound
stays. x and y cannot be null, for a null has no place in an order. The same holds where any condition that cannot be
null says which way round two values come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wpinq.engines.relational.blocks.block import Block, equates
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, conjuncts, negated, same
from wpinq.engines.relational.sql.script import Script


@dataclass(frozen=True, slots=True)
class _EitherColumn:
    """One of two columns: the first where a condition holds, else the second."""

    first_if: SqlTerm
    first: SqlTerm
    second: SqlTerm


def look_up_either_way(script: Script, rows: QueryRows) -> QueryRows:
    """The blocks, each with such a pair as two; left alone where their start is set."""
    if rows.started:
        return rows
    return replace(rows, blocks=tuple(part for block in rows.blocks for part in _either_way(block)))


def _either_way(block: Block) -> list[Block]:
    held: dict[tuple[_EitherColumn, str], tuple[SqlTerm, SqlTerm]] = {}
    for part in conjuncts(block.condition):
        for column, term in (part.arguments, part.arguments[::-1]) if equates(part) else ():
            choice = _choice(term) if column.kind == "column" else None
            if choice is None or column.scope in (choice.first.scope, choice.second.scope):
                continue
            other = held.get((_EitherColumn(choice.first_if, choice.second, choice.first), column.scope))
            if other is not None:
                return _two(block, choice, (column, part), other)
            held[choice, column.scope] = (column, part)
    return [block]


def _choice(term: SqlTerm) -> _EitherColumn | None:
    """A term as a choice among columns of two tables that are never null."""
    if term.kind != "call" or term.nullable:
        return None
    if term.text == "where":
        choice = _EitherColumn(*term.arguments)
        if choice.first_if.nullable:  # where it is null the second is taken, and neither it nor its negation holds
            return None
    elif term.text in ("least", "greatest"):
        one, other = sorted(term.arguments, key=lambda argument: argument.digest)
        first, second = (one, other) if term.text == "least" else (other, one)
        choice = _EitherColumn(call("not", call("less", other, one)), first, second)
    else:
        return None
    pair = (choice.first, choice.second)
    return choice if all(side.kind == "column" for side in pair) and pair[0].scope != pair[1].scope else None


def _two(
    block: Block, choice: _EitherColumn, one: tuple[SqlTerm, SqlTerm], other: tuple[SqlTerm, SqlTerm]
) -> list[Block]:
    (chosen, said), (left, said_too) = one, other
    rest = [part for part in conjuncts(block.condition) if part not in (said, said_too)]
    first, second = choice.first, choice.second
    ways = (
        [same(chosen, first), same(left, second), choice.first_if],
        [same(chosen, second), same(left, first), negated(choice.first_if)],
    )
    possible = [way for way in ways if not _excludes(rest, way[-1])]
    return [replace(block, condition=both([*rest, *way])) for way in possible or ways]


def _excludes(held: list[SqlTerm], condition: SqlTerm) -> bool:
    """Whether conditions say that a further one does not hold: one of two values comes before the other, not after."""
    return negated(condition) in held or (
        condition.text == "less" and call("less", *reversed(condition.arguments)) in held
    )
