"""Protected datasets by name: declarations of sources, and a release of rows per person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from numbers import Integral, Number
from typing import Any

from wpinq.api.query import Query
from wpinq.errors import EpsilonError, PlanError, described
from wpinq.expr.declarations import Person, check_facts, check_listed
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import type_from_annotation
from wpinq.functions import count
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.domain import sizes_of
from wpinq.plan.node import Node
from wpinq.plan.operators import Source

#: The bound on a source's norm unless one is declared: public, never computed from data.
DEFAULT_CAP = 2**30

#: What is protected unless it is said, without and with a declared person.
DEFAULT_UNIT, DEFAULT_PERSON = "one record", "one person"

_OF_PERSONS = ("person", "at_most", "nested", "account")


def source(
    name: str,
    schema: object = None,
    /,
    *,
    unit: str | None = None,
    unit_weight: object = None,
    weights: bool = False,
    cap: object = DEFAULT_CAP,
    facts: Iterable[str] = (),
    records_at_most: object = None,
    keys_at_most: object = None,
    columns: Mapping[str, str] | None = None,
    **fields: object,
) -> Query:
    """Declare a protected dataset; `Session.protect` gives its data.

    Parameters
    ----------
    name : str
        Its name in bills, ledgers and text programs.
    schema : type, optional
        The type of a record: `int`, `str`, `list[str]`, or a mapping from field names to types. Instead, fields
        can be given as keywords: `source("edges", src=int, dst=int)`.
    unit : str
        The protected unit in words, as every bill prints it. By default "one record" or "one person".
    unit_weight : number
        The total weight by which one protected unit can change the dataset: more than 0, by default 1. For a person
        it follows from `at_most` and cannot be given.
    weights : bool
        Whether a mapping may give records any weights, also negative ones. Otherwise the weight of a record is its
        number of equal rows, and data with other weights are refused.
    cap : number
        A public bound on the total weight of the dataset. It sets the slack that covers floating-point error, and
        data beyond it are refused.
    facts : iterable of str
        Properties of all data of this source: "nonnegative", "unit_weights", "symmetric", "simple", "simple_digraph".
        They are checked when data are protected. Each narrows the guarantee to datasets with the property.
    records_at_most : int
        A public upper bound on the number of records. Like `keys_at_most`, it is checked when data are protected and
        fixed with the account. It bounds the work of plans (`explain`), cuts no rows and changes no bill. Take it from
        public knowledge: a bound that equals the true number publishes it.
    keys_at_most : mapping
        From fields to the largest number of records with one value of them: `{"src": 500, ("src", "dst"): 3}`.
    columns : mapping
        From fields to the columns of the data that hold them, where the names differ: `{"first_name": "First Name"}`.
        It is layout: a plan, an account and a price are the same without it.
    person : str
        The column with the ids of people, int or str and never null. The protected unit is then one person with all
        rows. Records contain the ids only if a field has this name, too; of such a field `columns` gives the column.
    at_most : int
        The number of rows that count for one person; required with `person`. Further rows are left out, by a fixed rule
        that reads the declared fields of that person's rows alone. One person then weighs up to `at_most`, the unit
        weight. Choose it from public knowledge, or buy it (`rows_per_person`), never from the data.
    nested : bool
        Whether a record is one person of weight 1: the list of that person's rows in canonical order.
    account : str
        The account that several tables of the same people share; a release pays it the sum over the tables.
    **fields : type
        The fields. The four names above are fields if their value is a type, as in `account=int`.

    Returns
    -------
    Query
        The dataset, unchanged.

    Raises
    ------
    ExpressionError, PlanError
        For an unfit schema or declaration.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, unit="one directed edge")
    >>> edges.uses()
    {'edges': 1}
    >>> purchases = wp.source("purchases", shop=str, price=float, person="customer_id", at_most=20)
    >>> print(purchases.bill(epsilon="1/100"))
    purchases: 0.2
      protects one person, at most 20 rows, of weight 20
      NoisyCount(0.01), spent once: 0.01 x 1 x 20 = 0.2
    """
    if not isinstance(name, str):
        raise PlanError(
            f'a source begins with its name, as in wp.source("people", age=int), not {described(name)}; data are given '
            "to session.protect"
        )
    if not isinstance(unit, str | None):
        raise PlanError(f'source {name!r}: unit says in words what one protected unit is, as in unit="one person"')
    of_person = {key: fields.pop(key) for key in _OF_PERSONS if isinstance(fields.get(key), (str, Number))}
    if (schema is None) == (not fields):
        raise PlanError(f"source {name!r}: give a schema or fields such as src=int, dst=int, one of the two")
    record = type_from_annotation(fields if schema is None else schema)
    person, bound = _person(name, of_person), positive(cap, f"source {name!r}: cap")
    record = record if person is None else person.record(record)
    implied = Fraction(1 if person is None else person.weight)
    weight = implied if unit_weight is None else positive(unit_weight, f"source {name!r}: unit_weight")
    words = unit if unit is not None else DEFAULT_UNIT if person is None else DEFAULT_PERSON
    declared = set(check_listed(facts))
    if not isinstance(weights, bool) or (weights and person is not None):
        raise PlanError(
            f"source {name!r}: weights is True or False, and False where a person is the unit; a field of this name "
            'stands in a schema, {"weights": float}'
        )
    if not weights and weight < 1:
        raise PlanError(f"source {name!r}: a row weighs 1, above the unit weight {weight}: declare weights=True")
    if not weights and person is None and "unit_weights" not in declared:
        declared.add("whole_weights")
    if "simple_digraph" in declared and "undirected" in words.lower():
        raise PlanError(
            f"source {name!r}: a record of a simple_digraph is one directed edge, and both directions are two units: "
            "declare simple for undirected edges, or name one directed edge as the unit"
        )
    try:
        check_facts(declared, record, weight)
    except PlanError as error:
        raise PlanError(f"source {name!r}: {error}") from None
    sizes = sizes_of(records_at_most, keys_at_most)
    facts = tuple(sorted(declared))
    declaration = Source(name, record, repr(record), words, weight, bound, facts, person, sizes)
    declaration = replace(declaration, columns=_columns(declaration, {} if columns is None else columns))
    declaration.check_size()
    return Query(Node(declaration))


def positive(number: object, what: str) -> Fraction:
    """A number of more than 0, exactly."""
    try:
        return parse_epsilon(number)
    except EpsilonError:
        asked = 'a number of more than 0 and at most 2**31, such as 1 or "1/2"'
        raise PlanError(f"{what} is {asked}, not {described(number)}") from None


def _columns(declared: Source, columns: Mapping[str, str]) -> tuple[str, ...] | None:
    """The column of each field; None where all have the names of the fields."""
    fields = [str(field) for field in getattr(declared.row, "names", ()) if field is not None]
    if not isinstance(columns, Mapping) or not {*columns} <= {*fields}:
        raise PlanError(
            f"source {declared.source!r}: columns gives fields ({', '.join(fields) or 'none has a name'}) the columns "
            'that hold them, as columns={"first_name": "First Name"}; a field of this name stands in a schema'
        )
    named = tuple(columns.get(field, field) for field in fields)
    return None if named == tuple(fields) else named


def _person(name: str, of_person: Mapping[str, Any]) -> Person | None:
    if not of_person:
        return None
    if "person" not in of_person or "at_most" not in of_person:
        raise PlanError(
            f"source {name!r}: where a person is the unit, name the column of the ids and how many rows of one person "
            'count, together: person="customer_id", at_most=20'
        )
    at_most = of_person["at_most"]
    if isinstance(at_most, Integral) and not isinstance(at_most, bool):  # numpy's too
        at_most = int(at_most)
    return Person(of_person["person"], at_most, of_person.get("nested", False), of_person.get("account", ""))


def rows_per_person(
    source: Query, epsilon: EpsilonLike, quantile: object = "0.95", *, tables: Iterable[str] | None = None
) -> Any:
    """A noisy quantile of the rows per person, to choose `at_most`, at a cost in epsilon.

    Parameters
    ----------
    source : Query
        A source of people in nested form, `wp.source(..., person=..., at_most=..., nested=True)`. Its public `at_most`
        is the largest possible result: people with more rows count as people with that many. A large bound costs
        nothing, because a person is one record of weight 1.
    epsilon : number
        More than 0: the cost, once.
    quantile : number
        Between 0 and 1: the share of people with all their rows kept.
    tables : iterable of str, optional
        Of a source made by `people`, the tables whose bounds are to be chosen, by default all; each gets an equal share
        of epsilon.

    Returns
    -------
    Measurement
        A choice (permute-and-flip) among 1, …, `at_most`; its answer's `value` is the number. Of a source made by
        `people`, a dict of one for each table.

    Raises
    ------
    PlanError
        For a source that has no people in nested form.

    Notes
    -----
    Privacy cost: epsilon. Declare the source under the `account` of the tables whose `at_most` is to be chosen.

    Examples
    --------
    >>> import wpinq as wp
    >>> visits = wp.source("visits", page=str, person="user", at_most=1000, nested=True)
    >>> print(wp.bill(wp.rows_per_person(visits, epsilon=0.1)))
    visits: 0.1
      protects one person, at most 1,000 rows in one record, of weight 1
      Choose(0.1), spent once: 0.1 x 1 = 0.1
    """
    declared = source.plan.operator if isinstance(source, Query) else None
    person = declared.person if isinstance(declared, Source) else None
    if isinstance(person, PersonTables):
        bounds = {table.name: table.at_most for table in person.tables if table.at_most > 1}
        wanted = [*bounds] if tables is None else [*tables]
        if isinstance(tables, str) or not wanted or not {*wanted} <= {*bounds}:
            raise PlanError(f"rows_per_person: tables is a list of names out of {', '.join(bounds) or 'no tables'}")
        share = parse_epsilon(epsilon) / len(wanted)
        return {
            name: source.select(lambda person, name=name: count(getattr(person, name))).quantile(
                epsilon=share, q=quantile, candidates=range(1, bounds[name] + 1)
            )
            for name in wanted
        }
    if person is None or not person.nested or tables is not None:
        raise PlanError(
            "rows_per_person takes a source of people in nested form: declare the data with person=..., nested=True, "
            "and for at_most a public bound that hardly anybody exceeds"
        )
    rows = source.select(lambda rows: count(rows))
    return rows.quantile(epsilon=epsilon, q=quantile, candidates=range(1, person.at_most + 1))
