"""SelectMany and Shave: a record becomes rows, elements of a list or numbered pieces.

**SelectMany.** Elements of weight 1: each occurrence adds `w / L`, which is what merging repeats first gives. Weighted
elements are merged first, exactly, for opposite signs may cancel: a list of one by a formula, longer ones by a function
of the engine (`sums.share`), unless constants tell them apart and the plan knows their shares. Rounds the quotient and
the product: 2 u.

**Shave.** Of one width s: `w % s` is exact, so every piece is exact: nothing is rounded. Of widths per record: on the
grid of `sums`, lowered so that a running total of as many widths as the plan allows does not overflow, remainders are
integers; a piece that is a whole width is that width, another is off by two steps of the grid at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

from wpinq.columns.records import column_names, column_types, leaf_types, plain
from wpinq.engines.sql import blocks as b, sums, terms as t
from wpinq.engines.sql.blocks import Block, Relation, SqlTable, column_list, derived, output_keys
from wpinq.engines.sql.dialect import Dialect
from wpinq.engines.sql.rules.lowering import lower
from wpinq.engines.sql.rules.paths import legs_of_paths
from wpinq.engines.sql.script import Script, numbered, share
from wpinq.expr.nodes import Constant, Lambda
from wpinq.expr.types import FLOAT, ListOf, TupleOf, Type, Weighted
from wpinq.plan.operators import SelectMany, Shave

#: The most weighted elements, and the most blocks of known shares, that are rows without a list: the rows below are
#: read once for each, and lists of lists multiply.
_FEW, _MOST = 2, 8


def select_many(operator: SelectMany, script: Script, given: Relation, output: Relation) -> Relation:
    """The elements of every record's list, each row with its share of the weight."""
    wanted = operator.bounded_function(operator.function)
    type_ = wanted.type
    assert isinstance(type_, ListOf)
    blocks, dialect, element = list[Block](), script.emitter.dialect, type_.element
    weighted, record = (True, element.record) if isinstance(element, Weighted) else (False, element)
    given = script.once(given) if weighted else given  # the shares of a list run in Python: once for each record
    for block in given.blocks:
        items = t.as_term(lower(script, wanted, block.output))
        apart = _items_apart(items) if weighted and operator.bound == type_.bound else ()
        if 0 < len(apart) <= _FEW:
            blocks += _few_weighted(script, block, apart, record)
            continue
        # the shares of elements, all different where they are weighted, as far as the plan has them
        known = operator.written_shares() if apart or not weighted else None
        shares = [share for _, share in known or () if apart or Fraction(float(share)) == share]
        written = [item.arguments[0] for item in apart] or _written(items)[: operator.bound]
        if 0 < len(shares) * len(given.blocks) <= _MOST and (few := _few_known(block, written, shares, record)):
            blocks += few
            continue
        if type_.bound is None or operator.bound < type_.bound:
            items = t.call("first", items, t.literal(str(operator.bound)))
        inner, read = script.select(block, [items, block.weight], ["items", "w"])
        if weighted:
            sql = _weighted(script, inner, operator.bound, [t.number(float(share)) for share in shares])
        else:
            length = f"CAST({dialect.write('list_length', 'items')} AS DOUBLE)"
            norm = f"greatest({length}, {operator.least_norm}.0)"
            sql = f"SELECT {dialect.unnest({'item': 'items'})}, w / {norm} AS w FROM ({inner})"
        scan = script.scan(derived(sql, [("item", True)], read))
        item = t.column(scan.tables[0][0], "item", True)
        blocks.append(replace(scan, output=t.unpack(t.call("struct_field:0", item) if weighted else item, record)))
    return replace(output, blocks=tuple(blocks))


def _few_known(block: Block, items: Sequence[t.SqlTerm], shares: Sequence[Fraction], record: Type) -> list[Block]:
    """The elements of a written list as blocks over the rows of one table, without the list.

    A join reads columns then, and not fields of a struct. A product with a share has the bits of the quotient: shares
    that are not written are powers of 2. None for several tables and nested functions.
    """
    shapes = [t.aligned(_unpacked(item, record), record) for item in items]
    nested = any(below.arguments for shape in shapes for term in t.leaves(shape) for below in term.arguments)
    if len(block.tables) > 1 or nested or len(shares) != len(items) or not all(shares):
        return []
    weights = [t.times(block.weight, t.number(float(share))) for share in shares]
    return [replace(block, output=shape, weight=each) for shape, each in zip(shapes, weights, strict=True)]


def _items_apart(items: t.SqlTerm) -> tuple[t.SqlTerm, ...]:
    """The elements of a written list, if constants distinguish them; else none.

    Elements are pairs of a record and its weight. No two records are equal, so there is nothing to merge.
    """
    written = _written(items)
    records = [item.arguments[0] for item in written if item.text == "struct:2"]
    apart = len(records) < 2 or len({*zip(*_constants(records), strict=True)}) == len(records)
    return written if apart and len(records) == len(written) else ()


def _written(items: t.SqlTerm) -> tuple[t.SqlTerm, ...]:
    """The elements of a list that is written out; else none."""
    while items.text.startswith("cast:"):
        (items,) = items.arguments
    return items.arguments if items.text.startswith("list:") else ()


def _constants(terms: Sequence[t.SqlTerm]) -> Iterator[list[str]]:
    """The constants of terms of one type, place by place.

    A place counts where all terms have one there that is not null.
    """
    if all(term.kind == "literal" and not term.nullable for term in terms):
        yield [term.text for term in terms]
    elif terms[0].text.startswith("struct:") and len({term.text for term in terms}) == 1:
        for parts in zip(*(term.arguments for term in terms), strict=True):
            yield from _constants(parts)


def _few_weighted(script: Script, block: Block, items: Sequence[t.SqlTerm], record: Type) -> list[Block]:
    """The one or two elements of each row's list, without a list: blocks over the same rows.

    Their weights are the shares of `_weighted`, in the same steps. Of two the norm is a sum of two floats. Where that
    is at most 1, the share is the weight itself. Had the sum been rounded down to 1, it is off by no more than the
    quotient would have been. Where it is more, the norm has to be exact. Of one, rows of weight 0 are left out; of two
    they add nothing.
    """
    dialect = script.emitter.dialect
    packed, owns = zip(*(item.arguments for item in items), strict=True)
    records = [[*t.leaves(t.aligned(_unpacked(each, record), record))] for each in packed]
    columns = [*zip(column_types(record), [nullable for _, nullable in leaf_types(record)], *records, strict=True)]
    # what is no constant, once for all elements, with its type and whether it can be null
    held = {term: (kind, null) for kind, null, *terms in columns for term in terms if term.kind != "literal"}
    typed = [t.call(f"cast:{kind}", term) for term, (kind, _) in held.items()]
    names, own = numbered("c", typed), numbered("own", owns)
    inner, read = script.select(block, [*typed, *owns, block.weight], [*names, *own, "w"])
    listed = [(name, null) for name, (_, null) in zip(names, held.values(), strict=True)]
    weighed = [*names, f"w * ({share('own0')}) AS w"]
    if len(items) > 1:
        zero, one, places = "CAST(0 AS DOUBLE)", "CAST(1 AS DOUBLE)", [f"CAST({i} AS BIGINT)" for i in (1, 2)]
        exact = [dialect.write("shares", dialect.list_of(places), dialect.list_of(pair)) for pair in (own, own[::-1])]
        norm = f"coalesce(abs(own0), {zero}) + coalesce(abs(own1), {zero})"
        share_of = f"w * (CASE WHEN {norm} <= {one} THEN {{}} ELSE {{}} END) AS {{}}"
        shares = [dialect.write("first_item", each) for each in exact]
        weighed = [*names, *map(share_of.format, own, shares, ("w0", "w1"))]
    table = derived(f"SELECT {', '.join(weighed)} FROM ({inner})", listed, read)
    if len(items) == 1:
        # the condition says nothing of `own`: the database would compute that once for it and once for the row
        below = replace(block, output=t.RecordShape(None, tuple(held)))
        table = replace(table, source=f"(SELECT * FROM {table.source} WHERE w <> 0)", shares=(below, owns[0]))
    scan = script.scan(table)
    ((alias, _),), at = scan.tables, dict(zip(held, t.leaves(scan.output), strict=True))
    weights = ("w",) if len(items) == 1 else ("w0", "w1")
    shapes = [t.shape_of(record, iter([at.get(term, term) for term in terms])) for terms in records]
    read_as = zip(shapes, (t.column(alias, weight, False) for weight in weights), strict=True)
    return [replace(scan, output=shape, weight=weight) for shape, weight in read_as]


def _unpacked(term: t.SqlTerm, type_: Type) -> t.Shape:
    """The value that one term holds, from the terms that it was packed of where these are there."""
    type_ = plain(type_)
    if not isinstance(type_, TupleOf) or term.text != f"struct:{len(type_.elements)}":
        return t.unpack(term, type_)
    return t.RecordShape(None, tuple(map(_unpacked, term.arguments, type_.elements)))


def _weighted(script: Script, inner: str, bound: int, known: Sequence[t.SqlTerm]) -> str:
    """Rows of elements with weights of their own; those of weight 0 are left out."""
    dialect = script.emitter.dialect
    if known:
        return _shared_out(dialect, dialect.list_of([script.emitter.term(share) for share in known]), inner)
    if bound == 1:
        item = dialect.write("first_item", "items")
        own = dialect.field(item, "f1")
        return f"SELECT {item} AS item, w * ({share(own)}) AS w FROM ({inner}) WHERE {own} <> 0"
    element = t.call("struct:1", t.call("struct_field:0", t.parameter("x")))
    wrapped = t.call("map", t.literal("items"), t.function("x", element))
    weights = t.call("map", t.literal("items"), t.function("x", t.call("struct_field:1", t.parameter("x"))))
    write = script.emitter.term
    keyed = f"SELECT items, {write(wrapped)} AS keys, {write(weights)} AS own, w FROM ({inner})"
    found = dialect.write("shares", dialect.write("places", "keys"), "own")
    return _shared_out(dialect, found, keyed)


def _shared_out(dialect: Dialect, shares: str, inner: str) -> str:
    rows = f"SELECT {dialect.unnest({'item': 'items', 'share': shares})}, w FROM ({inner})"
    return f"SELECT item, w * share AS w FROM ({rows}) WHERE share <> 0"


# Shave: a heavy record cut into numbered pieces.


def shave(operator: Shave, script: Script, given: Relation, output: Relation) -> Relation:
    """The pieces of every record, and the rest."""
    added, given = given, script.once(given)
    block, names, few = script.single(given), column_names(given.type), operator.bound
    record, by_number = replace(block, output=t.aligned(block.output, given.type)), None
    if isinstance(operator.widths, Lambda):
        assert few is not None
        items = _widths(operator, operator.widths, script, block)
        power = sums.exponent(given.mass) - few.bit_length() - 1
        before = _running_totals(operator.widths, few, power)
        table = _pieces_of_widths(items, before, script, record, names, power)
        if before and any(map(b.grows, added.blocks)):
            by_number = _sums_by_number(items, before, script, added, output, power)
    else:
        whole = output.each == Fraction(operator.widths)
        table = _pieces_of_one_width(operator.widths, few, whole, script, record, names)
    keys = tuple(key | {"i"} for key in output_keys(record, names) or (frozenset(names),))
    columns = (*column_list(given.type), ("i", False))
    scan = script.scan(replace(table, columns=columns, keys=keys, few=() if few is None else (("i", few),)))
    terms = t.leaves(scan.output)
    shape = t.RecordShape(None, (t.shape_of(given.type, terms), next(terms)))
    blocks, (alias, _) = (replace(scan, output=shape),), scan.tables[0]
    if by_number is not None:
        held = replace(blocks[0], tables=((alias, by_number),), weight=t.column(alias, "h", False))
        output = replace(output, partial=b.PartialSums(blocks, held, ("h",), output.mass))
    return replace(output, blocks=blocks)


def _sums_by_number(
    items: t.SqlTerm, before: Sequence[float], script: Script, given: Relation, output: Relation, power: int
) -> SqlTable:
    """The sums of pieces by their number alone, without a table of the records that are cut.

    Records of one weight have equal pieces. So one of each weight is cut, and the integer of a piece on the grid of
    `sums` counts as often as there are such records: the totals are those of all pieces, to the last bit. A statement
    for a part of the rows has all rows of its records, so totals of parts add up.
    """
    blocks, in_parts = given.blocks, len(given.blocks) == 1  # in several, equal numbers may be of several SQL types
    if in_parts:
        first = next(t.leaves(t.aligned(blocks[0].output, given.type)), t.TRUE)
        blocks = (b.restricted(blocks[0], t.call("in_part", first)),)
    sql, held = script.grouped(replace(given, blocks=blocks, partial=None))
    legs, reads = legs_of_paths(script, given)
    query = f"SELECT count(*) AS n, w FROM ({sql}) GROUP BY w"
    table = script.table(query, [*held.reads, *reads], in_parts=in_parts, legs=legs)
    counted = SqlTable(table, (("n", False),))
    pieces = _pieces_of_widths(items, before, script, script.scan(counted), ["n"], power)
    piece = script.emitter.term(sums.on_grid([t.column("", b.WEIGHT, False)], output.mass))
    total = script.emitter.dialect.write("int_multiply", "n", piece)
    query = f"SELECT i, sum({total}) AS h FROM {pieces.source} GROUP BY i"
    return SqlTable(script.table(query, pieces.reads), (("i", False),))


def _pieces_of_one_width(
    width: float, most: int | None, whole_pieces: bool, script: Script, block: Block, names: list[str]
) -> SqlTable:
    """Pieces of one width, and the rest.

    There is no rest where the plan says that all pieces weigh the width: the weight is as near to a multiple as a float
    is.
    """
    dialect = script.emitter.dialect
    s = f"CAST({width!r} AS DOUBLE)"
    inner, read = script.rows(block)
    rest = "CAST(0 AS DOUBLE)" if whole_pieces else f"w % {s}"
    cut = f"SELECT {', '.join([*names, f'{rest} AS rest', 'w'])} FROM ({inner}) WHERE w > 0"
    whole = f"CAST(round((w - rest) / {s}) AS BIGINT)"
    pieces = "whole + CAST(rest > 0 AS BIGINT)"
    if most is not None:
        whole = f"CAST(least(round((w - rest) / {s}), {most}) AS BIGINT)"
        pieces = f"least({pieces}, {most})"
    counted = f"SELECT {', '.join([*names, 'rest', f'{whole} AS whole'])} FROM ({cut})"
    numbers = dialect.unnest({"i": dialect.write("numbers_below", pieces)})
    spread = f"SELECT {', '.join([*names, 'rest', 'whole', numbers])} FROM ({counted})"
    weighed = f"SELECT {', '.join([*names, 'i', f'CASE WHEN i < whole THEN {s} ELSE rest END AS w'])} FROM "
    one = f"{weighed}(SELECT *, ", f" AS i FROM ({counted})) WHERE i < {pieces}"
    weight = t.number(width) if whole_pieces else None
    return replace(derived(f"{weighed}({spread})", (), read), weight=weight, piece=one, cut=block)


def _widths(operator: Shave, widths: Lambda, script: Script, block: Block) -> t.SqlTerm:
    """The widths that a function gives, as a list of floats."""
    widths = operator.bounded_function(widths)
    type_ = widths.type
    assert isinstance(type_, ListOf)
    items = t.as_term(lower(script, widths, block.output))
    if type_.element != FLOAT:
        items = t.call("cast:DOUBLE[]", items)
    return t.call("first", items, t.literal(str(operator.bound)))


def _running_totals(widths: Lambda, most: int, power: int) -> list[float]:
    """The total of the constant widths before each; nothing where one is no float on the grid."""
    items = body.value[:most] if isinstance(body := widths.body.core, Constant) and body.value is not None else ()
    numbers, step = [Fraction(max(each or 0, 0)) for each in items], Fraction(2) ** -power
    for each in (*numbers, *accumulate(numbers)):
        if each >= 2**900 or Fraction(float(each)) != each or each % step:
            return []
    return [float(total) for total in accumulate(numbers, initial=Fraction(0))][: len(items)]


def _pieces_of_widths(
    items: t.SqlTerm, before: Sequence[float], script: Script, block: Block, names: list[str], power: int
) -> SqlTable:
    """Pieces of these widths as long as there is weight, on the grid of a power of two.

    What is taken off before a piece is a window over the pieces of the record; of constant widths, a constant each. The
    weight is more than that as long as any remains, and each width before is less than the weight: so their integers
    are their own, and add up to the integer of their total.
    """
    dialect = script.emitter.dialect
    grid, back = sums.power_of_two(power), sums.power_of_two(-power)
    inner, read = script.select(block, [*t.leaves(block.output), items, block.weight], [*names, "widths", "w"])
    first = "".join(f"{name}, " for name in names)
    lists = {"s": "widths", "i": dialect.write("numbers_below", dialect.write("list_length", "widths"))}
    part, there = f"PARTITION BY {', '.join(names)} " if names else "", ""
    taken = f"coalesce(sum(step) OVER ({part}ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)"
    if before:
        lists["b"], there = dialect.table([*map(repr, before)], "DOUBLE[]"), " WHERE b < w"
        taken = dialect.write("to_grid", f"b * {grid}")
    total, step = (dialect.write("to_grid", f"{each} * {grid}") for each in ("w", "least(s, w)"))
    spread = f"SELECT {first}w, {dialect.unnest(lists)} FROM ({inner}) WHERE w > 0"
    on_grid = f"SELECT *, {total} AS total, CASE WHEN s > 0 THEN {step} ELSE 0 END AS step FROM ({spread}){there}"
    running = f"SELECT *, total - {taken} AS remaining FROM ({on_grid})"
    piece = f"CASE WHEN step < remaining THEN s ELSE {dialect.write('from_grid', 'remaining')} * {back} END AS w"
    sql = f"SELECT {first}i, {piece} FROM ({running}) WHERE s > 0 AND remaining > 0"
    return derived(sql, (), read)
