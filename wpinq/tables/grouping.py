"""Groups of records: by which columns, and which of them are asked for.

Which groups there are in the data is private. They are given, or public by what the query is (categories, bools,
`x % n`), or asked for one by one, or listed: those of a public domain whose noisy count is above a threshold. Records
in groups that nobody asked for count nowhere, or in one more group of their own, which is measured as the others are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from itertools import product
from typing import Any, cast

from wpinq.errors import ExpressionError, PlanError, described, suggest, warn_of_column
from wpinq.expr import build, catalogue
from wpinq.expr.declare import Column
from wpinq.expr.nodes import Constant, Expr, Lambda
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, trace
from wpinq.expr.types import ListOf, TupleOf, Type, physical
from wpinq.expr.values import KeyPairs, Value, presenter
from wpinq.functions import map as map_elements
from wpinq.measure.measurement import check_domain
from wpinq.plan.construct import construct
from wpinq.plan.node import Node
from wpinq.plan.operators import Select
from wpinq.plan.properties import plan_properties
from wpinq.sinks.count_above import Listing, listing_of
from wpinq.sinks.keys import GivenKeys, KeyDomain, ProductKeys, key_domain, product as product_of

# --- functions of records by the names of columns ---------------------------------------------------------------------

#: Columns by the names that they are to have.
NamedColumns = Mapping[str, UserFunction]


def named_columns(columns: Sequence[RecordFunction], named: Mapping[str, object], where: str) -> NamedColumns:
    """Columns with their names: those that have one, then those that are given one.

    A constant may be given a name, too.

    Raises
    ------
    PlanError
        When a function comes without a name, or two columns have the same.
    """
    found: dict[str, UserFunction] = {}
    for column in columns:
        name = column if isinstance(column, str) else column.column_name if isinstance(column, Column) else None
        if name is None:
            raise PlanError(f"{where}: give each function a name, as in {where}(decade=lambda p: p.age // 10)")
        if name in found or name in named:
            raise PlanError(f"{where}: there are two columns {name!r}; name them apart, with .alias(...) or name=...")
        found[name] = as_function(column)
    for name, given in named.items():
        found[name] = as_function(given) if isinstance(given, str) or callable(given) else _constant(given)
    return found


def _constant(value: object) -> UserFunction:
    return lambda record: value


def record_of(columns: NamedColumns) -> UserFunction:
    """The function to a record of these columns."""

    def function(record: Symbol) -> Any:
        return Symbol(build.record(tuple(columns), tuple(lift(value(record)) for value in columns.values())))

    return function


def selected(columns: Sequence[RecordFunction], named: Mapping[str, object]) -> UserFunction | Lambda:
    """The result of a select: one column or function by itself, several as a record."""
    if not columns and not named:
        raise PlanError('select needs a function or columns: select("city"), select("city", "age")')
    if len(columns) == 1 and not named:
        return columns[0] if isinstance(columns[0], Lambda) else as_function(columns[0])
    return record_of(named_columns(columns, named, "select"))


def with_columns(columns: Sequence[RecordFunction], named: Mapping[str, object], type_: Type) -> UserFunction:
    """The function to the same record with further columns, or others under the same names."""
    return record_of({**_fields(type_, "with_columns"), **named_columns(columns, named, "with_columns")})


def unnested(items: UserFunction, named: Mapping[str, object], type_: Type) -> tuple[UserFunction | Lambda, int]:
    """The function to the elements of a list with further columns, and the bound of the list."""
    whole = trace(items, (type_,))
    bound = whole.type.bound if isinstance(whole.type, ListOf) else None
    if bound is None:
        raise PlanError(f"unnest needs a list with a public bound, and this is {whole.type}")
    if not named:
        return whole, max(bound, 1)
    columns = named_columns([], named, "unnest")

    def rows(record: Symbol) -> Any:
        own = {name: lift(column(record)) for name, column in columns.items()}

        def row(element: Symbol) -> Any:
            fields = _fields(lift(element).type, "unnest")
            if doubled := sorted({*own} & {*fields}):
                raise PlanError(f"unnest: the rows have a column {doubled[0]!r} already; name yours apart")
            values = [*(lift(value(element)) for value in fields.values()), *own.values()]
            return Symbol(build.record((*fields, *own), tuple(values)))

        return map_elements(items(record), row)

    return rows, max(bound, 1)


def joined(left: Type, right: Type, on: RecordFunction) -> tuple[UserFunction, UserFunction]:
    """The key of a join on columns that both sides have, and its result: the columns of both.

    Those that it is joined on are there once; others of the right side whose names the left side has, too, end in
    `_right`.
    """
    names = [on] if isinstance(on, str) else on
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise PlanError('join: on is the name of a column that both sides have, or a list of names: on="city"')
    here, there = _fields(left, "join"), _fields(right, "join")
    added: dict[str, UserFunction] = {}
    for name, value in there.items():
        if name not in names:
            shown = f"{name}_right" if name in here else name
            if shown in added or (shown in here and shown != name):
                raise PlanError(f"join: both sides would give a column {shown!r}; rename one with select(...) first")
            added[shown] = value

    def result(one: Symbol, other: Symbol) -> Any:
        values = [*(value(one) for value in here.values()), *(value(other) for value in added.values())]
        return Symbol(build.record((*here, *added), tuple(map(lift, values))))

    return as_function(names[0] if len(names) == 1 else list(names)), result


def _fields(type_: Type, where: str) -> dict[str, Callable[..., Any]]:
    """Every column of a record by its name."""
    if not isinstance(type_, TupleOf) or None in type_.names:
        raise ExpressionError(f"{where}: the records are of type {type_}, and need columns with names")
    return {str(name): as_function(str(name)) for name in type_.names}


#: The groups that are asked for: in all, by column, or as the query fixes them. Domains are listed out of.
GroupKeys = KeyDomain | Iterable[object] | Mapping[str, KeyDomain | Iterable[object]] | None


class Omitted(Enum):
    """The mark of a missing argument where null is a possible value."""

    OTHER = "no group of all others"


#: That records of other groups count nowhere.
NO_OTHER = Omitted.OTHER


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of a plan's records.

    Attributes
    ----------
    plan : Node
        Whose records.
    columns : mapping
        Name to function, for each column that they are grouped by.
    traced : dict
        The same as nodes: what tells groups from others.
    keys : tuple or None
        The groups that are asked for, in canonical form; None where they are asked for one by one, or listed.
    type : Type
        Of a key: that of the column, a record where there are several.
    other : value or NO_OTHER
        The group of all other records, in canonical form: then it is the last of the keys.
    listing : Listing or None
        Out of which domain the groups are listed, and above which noisy count.
    """

    plan: Node
    columns: NamedColumns
    traced: dict[str, Lambda]
    keys: tuple[Value, ...] | None
    type: Type
    other: Any = NO_OTHER
    listing: Listing | None = None

    @property
    def public_keys(self) -> tuple[Value, ...] | None:
        """The keys without that of all other records."""
        return self.keys if self.keys is None or self.other is NO_OTHER else self.keys[:-1]

    def key(self, record: Symbol) -> Any:
        """The key of a record."""
        found = _key_of(self.columns)(record)
        if self.other is NO_OTHER:
            return found
        among = _among(found, self.public_keys or (), self.type)
        return catalogue.apply("where", among, lift(found), Constant(self.type, self.other))

    def label(self, record: Symbol, part: Any, alone: bool = False) -> Any:
        """The record for a part of an aggregate: with its key, or the key itself if it is alone."""
        if not self.columns:
            return part
        return self.key(record) if alone else (self.key(record), part)

    def labels(self, keys: tuple[Value, ...], parts: Sequence[Value], type_: Type | None = None) -> tuple[Value, ...]:
        """The records that carry some groups' parts, group by group.

        Those of canonical keys are checked already for the type of the plan's records, if that is given.
        """
        if not self.columns:
            return tuple(parts)
        if len(parts) == 1 and isinstance(parts[0], str):  # the label of a part that is alone
            return keys
        return cast("tuple[Value, ...]", KeyPairs((keys, parts), type_))

    def listed(self, least: object) -> Groups:
        """The same groups, of which those with a noisy count from so much on are listed."""
        if self.other is not NO_OTHER or not self.columns or (self.keys is None and self.listing is None):
            raise PlanError("agg: k_rule hides groups of given keys: by(..., keys=[...]), without other=...")
        domain = self.listing.domain if self.listing is not None else GivenKeys(self.keys or ())
        listing = listing_of(domain, least, self.type)
        above = max(listing.above, 0.0 if self.listing is None else self.listing.above)
        return replace(self, keys=None, listing=replace(listing, above=above))

    def checked(self, keys: Iterable[object]) -> tuple[Value, ...]:
        """Keys of groups in canonical form, each once."""
        return _checked(keys, self.type, self.columns)

    def shown(self, keys: Sequence[Value]) -> tuple[Value, ...]:
        """GroupKeys as Python has them."""
        plain = not self.columns or physical(self.type) is self.type
        return tuple(keys if plain else map(presenter(self.type), keys))


#: The keys where there is no column: one group, of all records.
ALL: tuple[Value, ...] = ((),)


def find_groups(
    plan: Node,
    columns: Sequence[RecordFunction],
    named: Mapping[str, RecordFunction],
    keys: GroupKeys,
    other: object,
    above: object = None,
) -> Groups:
    """The groups that are asked for.

    Raises
    ------
    PlanError, ExpressionError
        When there is no such column, or a key is none of its values.
    """
    found = named_columns(columns, named, "by")
    if not found:
        if above is not None:
            raise PlanError(
                'by: above= lists groups, and there is no column to group by: by("zip", keys=..., above=20)'
            )
        return Groups(plan, {}, {}, ALL, plan.type)
    traced = {name: trace(function, (plan.type,)) for name, function in found.items()}
    type_ = trace(_key_of(found), (plan.type,)).type
    if above is not None:
        if other is not NO_OTHER:
            raise PlanError(
                "by: listed groups have no row of all others, which is another question and costs its own epsilon: "
                "release the listing, and then by(..., keys=table.keys, other=...)"
            )
        listing = listing_of(_domain(plan, found, traced, keys), above, type_)
        return Groups(plan, found, traced, None, type_, listing=listing)
    listed = _listed(plan, found, traced, type_, keys)
    if other is NO_OTHER:
        return Groups(plan, found, traced, listed, type_)
    if listed is None:
        raise PlanError("by: a group of all others needs the keys that it is not: give keys=[...]")
    (rest,) = check_domain([other], type_)
    if rest in listed:
        raise PlanError(f"by: other={other!r} is one of the keys; name the group of all others apart")
    return Groups(plan, found, traced, (*listed, rest), type_, rest)


def _key_of(columns: NamedColumns) -> UserFunction:
    """The function to the key: the one column, or a record of them."""
    return next(iter(columns.values())) if len(columns) == 1 else record_of(columns)


def _domain(
    plan: Node, columns: NamedColumns, traced: Mapping[str, Lambda], keys: GroupKeys
) -> KeyDomain | Iterable[object]:
    """The domain out of which the groups are listed, as a whole or of each column.

    Domains that the query fixes need not be given.
    """
    if keys is None:
        raise PlanError("by: above= lists groups out of a public domain: give it, by(..., keys=wp.digits(5), above=20)")
    if not isinstance(keys, Mapping):
        if len(columns) > 1 and isinstance(keys, KeyDomain) and not isinstance(keys, ProductKeys):
            each = ", ".join(f"{name!r}: ..." for name in columns)
            raise PlanError(
                f"by: {keys} are no domain of {len(columns)} columns; give that of each column: keys={{{each}}}"
            )
        return keys
    _check_columns(keys, columns)
    parts = []
    for name, function in columns.items():
        type_ = traced[name].type
        public = () if name in keys else _of_column(plan, name, function, type_, {})
        parts.append(key_domain(keys[name] if name in keys else map(presenter(type_), public)))
    return parts[0] if len(parts) == 1 else product_of(*parts)


def _check_columns(keys: Mapping[str, object], columns: NamedColumns) -> None:
    for name in keys:
        if name not in columns:
            raise PlanError(
                f"by: keys are given for {name!r}, which is no column of the groups; {suggest(name, columns)}"
            )


def _listed(
    plan: Node, columns: NamedColumns, traced: Mapping[str, Lambda], type_: Type, keys: GroupKeys
) -> tuple[Value, ...] | None:
    if not isinstance(keys, Mapping):
        return _public(plan, _key_of(columns)) if keys is None else _checked(keys, type_, columns)
    _check_columns(keys, columns)
    each = {name: _of_column(plan, name, columns[name], traced[name].type, keys) for name in columns}
    return next(iter(each.values())) if len(each) == 1 else tuple(product(*each.values()))


def _enumerated(keys: KeyDomain | Iterable[object]) -> Iterable[object]:
    """The same keys, which must be given one by one."""
    if isinstance(keys, KeyDomain):
        raise PlanError(f"by: groups are listed out of {keys} above a threshold: by(..., keys=..., above=20)")
    return keys


def _checked(keys: KeyDomain | Iterable[object], type_: Type, columns: NamedColumns) -> tuple[Value, ...]:
    keys = _enumerated(keys)
    if isinstance(keys, (str, Mapping)) or not isinstance(keys, Iterable):
        raise PlanError(f"by: keys are a list of public groups, not {described(keys)}: keys=[...]")
    warn_of_column(keys, "keys")
    listed = list(keys)
    if len(columns) > 1 and any(isinstance(key, (str, int)) or key is None for key in listed):
        raise PlanError(
            f"by: a key of {len(columns)} columns is a tuple of as many values; for all combinations give those of "
            f"each: keys={{{', '.join(f'{name!r}: [...]' for name in columns)}}}"
        )
    return check_domain(listed, type_)


def _of_column(
    plan: Node, name: str, function: UserFunction, type_: Type, keys: Mapping[str, KeyDomain | Iterable[object]]
) -> tuple[Value, ...]:
    if name in keys:
        warn_of_column(keys[name], f"keys of {name!r}")
        return check_domain(_enumerated(keys[name]), type_)
    found = _public(plan, function)
    if found is None:
        raise PlanError(f"by: the values of {name!r} are not public by the query: give them, too, in keys={{...}}")
    return found


def _public(plan: Node, function: UserFunction) -> tuple[Value, ...] | None:
    return plan_properties(construct(Select, (plan,), {"function": function}, trace)).domain


def _among(key: object, keys: Sequence[Value], type_: Type) -> Expr:
    """Whether a key is one of some, in as few levels as there can be."""
    tests = [_same(lift(key), value, type_) for value in keys] or [lift(False)]
    while len(tests) > 1:
        pairs = [tests[i : i + 2] for i in range(0, len(tests), 2)]
        tests = [catalogue.apply("or", *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return tests[0]


def _same(key: Expr, value: Value, type_: Type) -> Expr:
    """Whether a key has a value; never null."""
    if isinstance(type_, TupleOf) and value is not None:
        fields = [build.field(key, i) for i in range(len(type_.elements))]
        parts = [_same(*part) for part in zip(fields, value, type_.elements, strict=True)]
        return reduce(lambda one, other: catalogue.apply("and", one, other), parts)
    if value is None:
        return catalogue.apply("is_null", key)
    equal = catalogue.apply("equal", key, Constant(type_.with_nullable(False), value))
    return catalogue.apply("where", catalogue.apply("is_null", key), lift(False), equal) if type_.nullable else equal
