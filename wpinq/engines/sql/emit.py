"""Terms and blocks to SQL text; a term that is used often is written once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter

from wpinq.columns.records import column_names
from wpinq.engines.contract import WantedRanges
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.blocks import Block, SqlTable, classes
from wpinq.engines.sql.dialect import DUCKDB, Dialect, Unsupported
from wpinq.expr.nodes import below_first
from wpinq.expr.types import Type
from wpinq.expr.values import Value

#: Characters of one list of terms beyond which shared terms are computed as columns of an inner query.
TEXT_LIMIT = 4000

#: The length below which a shared term is just written again.
_SHARE_LIMIT = 40

_PLACES = re.compile(r"(?<!\{)\{(\d+)\}(?!\})")


@dataclass(frozen=True, slots=True)
class Emitter:
    """Writes terms in a dialect."""

    dialect: Dialect = DUCKDB

    def term(self, root: t.SqlTerm, names: Mapping[t.SqlTerm, str] | None = None) -> str:
        """The text of a term; those in `names` are written as their name."""
        return self.terms([root], names or {})[0]

    def terms(self, roots: Sequence[t.SqlTerm], names: Mapping[t.SqlTerm, str]) -> list[str]:
        """The texts of terms."""
        written: dict[bytes, str] = {term.digest: name for term, name in names.items()}
        for root in roots:
            self._write(root, written)
        return [written[root.digest] for root in roots]

    def _write(self, root: t.SqlTerm, written: dict[bytes, str]) -> None:
        stack = [(root, False)]
        while stack:
            term, ready = stack.pop()
            if term.digest in written:
                continue
            if term.kind == "call" and term.text in ("map", "filter"):
                items, function = term.arguments
                if items.digest in written:
                    written[term.digest] = self._each(term.text, written[items.digest], function, written)
                else:
                    stack += [(term, False), (items, False)]
            elif not ready and term.arguments:
                stack.append((term, True))
                stack.extend((argument, False) for argument in term.arguments)
            else:
                written[term.digest] = self._text(term, [written[argument.digest] for argument in term.arguments])

    def _text(self, term: t.SqlTerm, arguments: list[str]) -> str:
        if term.kind == "column":
            return f"{term.scope}.{self.dialect.quote(term.text)}" if term.scope else self.dialect.quote(term.text)
        if term.kind == "parameter":
            return term.text
        if term.kind == "literal":
            return self.dialect.literal(term.text)
        if term.parameters and term.text in self.dialect.outer_only:
            raise Unsupported("a sum of floats, inside of a function over the elements of a list")
        return self.dialect.write(term.text, *arguments)

    def _each(self, template: str, items: str, function: t.SqlTerm, written: dict[bytes, str]) -> str:
        """A function of each element of a list: its values, or the elements for which it is true.

        Its frequent terms are put beside the element first, step by step.
        """
        name, (body,) = function.text, function.arguments
        levels = _levels(self.shared([body], set(written), inside=name), [body])
        held = {t.parameter(name).digest: "v"}
        for number, level in enumerate([*levels, [body]]):
            fields = {digest: self.dialect.field(name, place) for digest, place in held.items()} if number else {}
            inner = written | fields
            for term in [t.parameter(name), *level]:
                self._write(term, inner)
            result = inner[body.digest] if number == len(levels) else ""
            if not result:
                held |= {term.digest: f"s{len(held) + i}" for i, term in enumerate(level)}
                result = self.dialect.struct({place: inner[digest] for digest, place in held.items()})
            last = template if number == len(levels) else "map"
            items = self.dialect.write(last, items, self.dialect.lambda_.format(name=name, body=result))
        if template == "filter" and levels:
            body_ = self.dialect.field(name, "v")
            items = self.dialect.write("map", items, self.dialect.lambda_.format(name=name, body=body_))
        return items

    def shared(self, roots: Sequence[t.SqlTerm], known: set[bytes], inside: str | None = None) -> list[t.SqlTerm]:
        """The terms to name so that the text does not blow up.

        All that are shared, or none while the text is short. With `inside`, those in which that parameter is free and
        no parameter of a function deeper down. Without it, those in which no parameter is free.
        """
        sizes = self.lengths(roots, known)
        if sum(sizes[root.digest] for root in roots) <= TEXT_LIMIT:
            return []
        uses: Counter[bytes] = Counter(root.digest for root in roots)
        order = [term for term in t.walk(roots) if term.digest not in known]
        deeper = {term.text for term in order if term.kind == "function"}
        for term in order:
            for place in self._places(term):
                uses[term.arguments[place].digest] += 1
        return [
            term
            for term in order
            if term.kind == "call"
            and uses[term.digest] > 1
            and sizes[term.digest] > _SHARE_LIMIT
            and (not term.parameters if inside is None else inside in term.parameters and not term.parameters & deeper)
        ]

    def _places(self, term: t.SqlTerm) -> list[int]:
        """The argument at each place of a term's text."""
        if term.kind != "call":
            return list(range(len(term.arguments)))
        return [int(place) for place in _PLACES.findall(self.dialect.template(term.text))]

    def lengths(self, roots: Iterable[t.SqlTerm], known: set[bytes]) -> dict[bytes, int]:
        """The length of each term's text, were nothing shared."""
        sizes: dict[bytes, int] = {}
        for term in t.walk(roots):
            own = len(self.dialect.template(term.text)) if term.kind == "call" else len(term.text) + 10
            if term.digest in known:
                own, places = 8, []
            else:
                places = self._places(term)
            sizes[term.digest] = own + sum(sizes[term.arguments[place].digest] for place in places)
        return sizes

    # --- blocks -------------------------------------------------------------------------------------------------------

    def select(self, block: Block, outputs: Sequence[t.SqlTerm], names: Sequence[str]) -> str:
        """Terms over the rows of a block, under these names."""
        # aliases by position: equal blocks are equal text, whatever they were called while they were built
        rename = {alias: f"a{i}" for i, (alias, _) in enumerate(block.tables)}
        rewrite = t.renamed(rename)
        outputs, conditions = [rewrite(term) for term in outputs], t.conjuncts(rewrite(block.condition))
        source = {alias: table.source for alias, table in block.tables}
        for key in (term.arguments[0] for term in t.conjuncts(block.condition) if term.text == "in_part"):
            if key.scope:
                source[key.scope] = self.dialect.write("in_order", source[key.scope], self.dialect.quote(key.text))
        tables = ", ".join(f"{source[alias]} AS {name}" for alias, name in rename.items())
        shared = self.shared([*outputs, *conditions], set())
        if not shared:
            chosen = self._named(outputs, names, {})
            return f"SELECT {chosen} FROM {tables}{self._where(conditions, {})}"
        return self._staged(tables, conditions, outputs, names, shared)

    def _staged(
        self,
        tables: str,
        conditions: Sequence[t.SqlTerm],
        outputs: Sequence[t.SqlTerm],
        names: Sequence[str],
        shared: Sequence[t.SqlTerm],
    ) -> str:
        """Shared terms level by level, each level the columns of one query inside the next."""
        early = [term for term in conditions if self.lengths([term], set())[term.digest] <= TEXT_LIMIT // 8]
        late = [term for term in conditions if term not in early]
        known = {term: f"k{i}" for i, term in enumerate(sorted(t.columns(*outputs, *late), key=attrgetter("digest")))}
        inner = f"SELECT {self._named(list(known), list(known.values()), {}) or '1'} FROM {tables}"
        inner += self._where(early, {})
        for level in _levels(shared, [*outputs, *late]):
            new = {term: f"s{len(known) + i}" for i, term in enumerate(level)}
            inner = f"SELECT *, {self._named(list(new), list(new.values()), known)} FROM ({inner})"
            known |= new
        return f"SELECT {self._named(outputs, names, known)} FROM ({inner}){self._where(late, known)}"

    def _named(self, terms: Sequence[t.SqlTerm], names: Sequence[str], known: Mapping[t.SqlTerm, str]) -> str:
        texts = self.terms(terms, known)
        return ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))

    def _where(self, conditions: Sequence[t.SqlTerm], known: Mapping[t.SqlTerm, str]) -> str:
        return f" WHERE {' AND '.join(self.terms(conditions, known))}" if conditions else ""


def _levels(shared: Sequence[t.SqlTerm], roots: Sequence[t.SqlTerm]) -> list[list[t.SqlTerm]]:
    """Shared terms in rounds, each made of those before."""
    held = set(shared)
    depth: dict[bytes, int] = {}
    for term in t.walk(roots):
        below = max((depth[argument.digest] for argument in term.arguments), default=0)
        depth[term.digest] = below + (term in held)
    levels: dict[int, list[t.SqlTerm]] = {}
    for term in shared:
        if term.digest in depth:
            levels.setdefault(depth[term.digest], []).append(term)
    return [levels[number] for number in sorted(levels)]


# Keys and ranges, pushed into the query of an output.
#
# A condition of the keys on a record is one on the rows that make it. It stands after every statement, and so above all
# norms, groups and pieces, but before rows are joined and added up. A row is left out only where its record is no key.
# So the rows of a key are all there, with the weights that they have in the whole output, and their sum, exact on its
# grid, is turned into the same float. Only outputs whose joins can grow are narrowed.
#
# A value that a record always shows, be it in this column or in that (see `visible_columns`), is among those that the
# keys have there. So each of the degrees of a triangle is one of three. Where the least of some values is at least x,
# each of them is, and likewise for the greatest. The condition on a lookup filters the first table that looks up there:
# the others are joined to rows that passed it.
#
# The values are parameters of the query: `values0`, all that the keys have in the first column but null, `null0`,
# whether they have it, `low0` and `high0`.

#: How many terms are looked at, over all ways in which comparisons can go; where there are more, none is followed.
STEPS = 2**14

#: What tells a comparison: the digest of a condition, or those of the two terms that are put in order.
_Decision = frozenset[bytes]


def visible_columns(record: Mapping[int, t.SqlTerm]) -> list[tuple[t.SqlTerm, frozenset[int]]]:
    """Terms over one table, each with places of a record, one of which it equals in every row.

    A record of sorted values has each of them in one of its columns. In general: comparisons decide between two terms
    (`CASE`, `least`, `greatest`), and one comparison decides alike in all columns. Where a term over one table stands
    in some column however all of them go, its value is one of the record's. It may be computed, as the bucket of a
    degree is.

    `least` and `greatest` decide between terms that are never null: of two that can be, they give the one that is not.
    A comparison for each element of a list decides nothing for the row.

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
    ways: list[dict[t.SqlTerm, set[int]]] = []
    for way in product((False, True), repeat=len(different)):
        goes = dict(zip(different, way, strict=True))
        taken = {digest: goes[decision] for digest, decision in decisions.items()}
        places: dict[t.SqlTerm, set[int]] = {}
        for place, term in spread.items():
            value = _decided(term, taken)
            if t.columns(value) and not _spread(value):
                places.setdefault(value, set()).add(place)
        ways.append(places)
    first, *others = ways
    always = [value for value in first if all(value in places for places in others)]
    return [*single, *((value, frozenset().union(*(places[value] for places in ways))) for value in always)]


def _spread(term: t.SqlTerm) -> bool:
    """Whether a term is over several tables."""
    return len({held.scope for held in t.columns(term)}) > 1


def _decision(term: t.SqlTerm) -> _Decision | None:
    if term.kind != "call" or term.text not in ("where", "least", "greatest") or term.parameters or not _spread(term):
        return None
    if term.text == "where":
        return frozenset((term.arguments[0].digest,))
    return None if term.nullable else frozenset(argument.digest for argument in term.arguments)


def _below(term: t.SqlTerm) -> tuple[t.SqlTerm, ...]:
    """What a value is made of; how what decides is made is of no concern."""
    return term.arguments if _decision(term) is None or term.text != "where" else term.arguments[1:]


def _decided(root: t.SqlTerm, taken: Mapping[bytes, bool]) -> t.SqlTerm:
    """What a term is where comparisons go some way."""
    done: dict[bytes, t.SqlTerm] = {}
    for term in below_first([root], _below):
        if term.digest not in taken:
            done[term.digest] = t.refilled(term, tuple(done[argument.digest] for argument in term.arguments))
            continue
        if term.text == "where":
            yes, no = term.arguments[1:]
        else:  # where it is taken, the one with the least digest is the least value
            yes, no = sorted(term.arguments, key=lambda argument: argument.digest, reverse=term.text == "greatest")
        done[term.digest] = done[(yes if taken[term.digest] else no).digest]
    return done[root.digest]


#: The types whose values DuckDB and Python put in one order.
_ORDERED = frozenset(("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN"))


def can_narrow(blocks: Sequence[Block]) -> bool:
    """Whether each of some blocks has a column of its record that could be narrowed."""
    return all(any(t.columns(term) for term in t.leaves(block.output)) for block in blocks)


def narrowed(emitter: Emitter, block: Block, types: Sequence[str]) -> Block | None:
    """The rows of a block whose record may be among the keys; None where that filters no table.

    Parameters
    ----------
    types : sequence of str
        The types of the columns of a record, which come first in the block's output.
    """
    terms = zip(t.leaves(block.output), types, strict=False)
    record = {place: term for place, (term, type_) in enumerate(terms) if type_ in _ORDERED and t.columns(term)}
    of_table: dict[str, list[t.SqlTerm]] = {}
    found = visible_columns(record)
    for value, places in found:
        if len({types[place] for place in places}) == 1:
            of_table.setdefault(_scope(value), []).append(_among(value, places, types[min(places)]))
    for place, term in record.items():
        low, high = (t.literal(f"CAST(${end}{place} AS {types[place]})") for end in ("low", "high"))
        for part, condition in _bounds(term, low, high):
            if all(value != part for value, _ in found):
                of_table.setdefault(_scope(part), []).append(condition)
    if not of_table:
        return None
    tables = dict(block.tables)
    for alias, filters in of_table.items():
        if tables[alias].lookup:
            tables = _looking_up(emitter, block, tables, alias, filters)
    filters = [condition for held in of_table.values() for condition in held]
    whole = [_among(term, {place}, types[place]) for place, term in record.items()]
    condition = t.both(dict.fromkeys([block.condition, *filters, *whole]))
    return replace(block, tables=tuple(tables.items()), condition=condition)


def _scope(term: t.SqlTerm) -> str:
    (scope,) = {held.scope for held in t.columns(term)}
    return scope


def _among(term: t.SqlTerm, places: Collection[int], type_: str) -> t.SqlTerm:
    """Whether a term has one of the values that are asked for in some columns, null being one."""
    first, *more = (f"CAST($values{place} AS {type_}[])" for place in sorted(places))
    for other in more:
        first = f"list_concat({first}, {other})"
    condition = t.call("among", t.literal(first), term)
    if not term.nullable:
        return condition
    nulls = " OR ".join(f"CAST($null{place} AS BOOLEAN)" for place in sorted(places))
    return t.call("where", t.call("is_null", term), t.literal(f"({nulls})"), condition)


def _bounds(term: t.SqlTerm, low: t.SqlTerm | None, high: t.SqlTerm | None) -> Iterator[tuple[t.SqlTerm, t.SqlTerm]]:
    """What bounds of a term say of terms over single tables."""
    if term.nullable:
        return
    if len({held.scope for held in t.columns(term)}) == 1:
        if low is not None:
            yield term, t.call("not", t.call("less", term, low))
        if high is not None:
            yield term, t.call("not", t.call("less", high, term))
    elif term.kind == "call" and term.text in ("least", "greatest"):
        ends = (low, None) if term.text == "least" else (None, high)
        for part in term.arguments:
            yield from _bounds(part, *ends)


def _looking_up(
    emitter: Emitter, block: Block, tables: dict[str, SqlTable], alias: str, filters: Sequence[t.SqlTerm]
) -> dict[str, SqlTable]:
    """The tables, the first that has the key of a lookup with only the rows that find one in it.

    Where that is the table that the others are joined to, the lookup comes next, and is the filter.
    """
    lookup, find = tables[alias], classes(block)
    if len(lookup.keys) != 1 or len(lookup.keys[0]) != 1:
        return tables
    (key,) = lookup.keys[0]
    wanted = find(t.column(alias, key, dict(lookup.columns)[key]))
    held = ((other, at) for other, table in tables.items() if not table.lookup for at in table.at(other))
    other, at = next((each for each in held if find(each[1]) == wanted), (alias, None))
    first, *_ = tables
    if at is None or other == first:
        return {first: tables[first], alias: lookup} | tables if at is not None else tables
    quote, rename = emitter.dialect.quote, t.renamed({alias: "l"})
    found = " AND ".join(emitter.terms([rename(condition) for condition in dict.fromkeys(filters)], {}))
    keys = f"SELECT l.{quote(key)} FROM {lookup.source} AS l WHERE {found}"
    table = tables[other]
    source = f"(SELECT s.* FROM {table.source} AS s WHERE s.{quote(at.text)} IN ({keys}))"
    return tables | {other: replace(table, source=source, reads=table.reads or (table.source,))}


def in_ranges(query: str, type_: Type, within: WantedRanges) -> str:
    """The query of an output without the records outside of some ranges.

    Only ends that can be written plainly are used.
    """
    wanted = [
        f"{name} BETWEEN {_plain(ends[0])} AND {_plain(ends[1])}"
        for name, ends in zip(column_names(type_), within, strict=False)
        if ends is not None and all(map(_plain, ends))
    ]
    return f"SELECT * FROM ({query}) AS q WHERE {' AND '.join(wanted)}" if wanted else query


def _plain(end: Value) -> str:
    """An int or a text as SQL; empty for all that would need care."""
    if isinstance(end, str):
        return f"'{end}'" if end.isascii() and end.isalnum() else ""
    return str(end) if type(end) is int else ""
