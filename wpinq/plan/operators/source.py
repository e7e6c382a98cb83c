"""Source: the protected dataset, by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.declarations import Person, check_facts, is_column_name
from wpinq.expr.epochs import Epoch
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import VALUES_LIMIT, ListOf, TupleOf, Type, check_field_name
from wpinq.plan.arithmetic import Arithmetic, NoLattice, Weights
from wpinq.plan.domain import KEYS_LIMIT, Counted, Domain, Inference, NoCount, RowBounds, Sized, Sizes, of_type
from wpinq.plan.operator import Operator
from wpinq.plan.sensitivity.change import ONE, Change, added, any_record, record
from wpinq.plan.sensitivity.weights import WeightBound, lower


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """A protected dataset, without data: name, record type and declarations about neighbours.

    Attributes
    ----------
    schema : str
        The record type with its nullability, as text: part of the source's identity.
    unit : str
        What one protected unit is, in words.
    unit_weight : Fraction
        The total weight by which one protected unit can change the source.
    cap : Fraction
        A public bound on the norm of the source, from which the rounding slack is computed.
    facts : tuple of str
        What every dataset offered for this source must satisfy; it narrows the neighbours that are covered.
    person : Person, optional
        Whose rows its rows are, where the unit is a person: the unit weight then follows.
    sizes : Sizes, optional
        Upper bounds on its records, checked as the facts are.
    columns : tuple of str, optional
        The columns of the data that hold the fields, where names differ: layout, and no part of the identity.
    epoch : Epoch, optional
        Of a series, the epoch to which its rows belong; without a label it is the template, and no source.
    """

    name: ClassVar[str] = "Source"
    method: ClassVar[str] = "source"
    arity: ClassVar[int] = 0
    stability: ClassVar[str] = "it is the input"
    later: ClassVar[frozenset[str]] = frozenset({"person", "sizes", "columns", "epoch"})

    source: str
    record: Type
    schema: str
    unit: str
    unit_weight: Fraction
    cap: Fraction
    facts: tuple[str, ...]
    person: Person | None = None
    sizes: Sizes | None = None
    columns: tuple[str, ...] | None = field(default=None, compare=False)
    epoch: Epoch | None = None

    def __post_init__(self) -> None:
        for what, text in (("name", self.source), ("unit", self.unit)):
            # Bills print them: a line end or an escape character could forge what a curator reads there.
            if not isinstance(text, str) or not text.isprintable():
                raise PlanError(f"the {what} of a source must be printable text on one line")
        if self.epoch is None or self.epoch.source != self.source:
            check_field_name(self.source)  # with a "/" it could be taken for a table of an account
        if self.person is not None:
            self._check_person(self.person)
        if self.sizes is not None:
            self.sizes.check(self.record)
        if self.columns is not None:
            self._check_columns(self.columns)

    def check(self) -> None:
        """Refuse a declaration that `wp.source` would refuse, before anything is billed or read.

        Not all come from there. Unpickling builds them without `__post_init__`. A plan may be read that was written
        when a smaller unit weight was allowed with `symmetric`: its answers can be read, and nothing new is bought.

        Raises
        ------
        PlanError
            With what to declare instead.
        """
        if self.person is not None:
            self.person.__post_init__()
        self.__post_init__()
        if self.epoch is not None:
            self.epoch.check(self.source, self.account, self.row, self.columns or (), self.person)
        check_facts(self.facts, self.record, self.unit_weight)
        self.check_size()

    def check_size(self) -> None:
        """Refuse a source with more values in one person's rows than a unit may have in a plan.

        Raises
        ------
        PlanError
            Saying how many rows it may take.
        """
        if self.person is None or isinstance(self.person, PersonTables):  # the type of such records has the limit
            return
        if self.person.at_most * self.row.values <= VALUES_LIMIT:
            return
        raise PlanError(
            f"source {self.source!r}: {self.person.at_most:,} rows of one person hold up to "
            f"{self.person.at_most * self.row.values:,} values; at most {VALUES_LIMIT:,} keep a person's presence from "
            f"showing in time and memory: declare at_most={VALUES_LIMIT // self.row.values} or less, or fewer fields"
        )

    def _check_person(self, person: Person) -> None:
        """Check the unit weight against the person, for a declaration of any origin.

        A weight below the change that a person can make would leak for every user.
        """
        if self.unit_weight != person.weight:
            raise PlanError(
                f"source {self.source!r}: one person changes it by a weight of up to {person.weight}, so that is its "
                "unit weight: leave unit_weight out"
            )
        if isinstance(person, PersonTables):
            person.table_rows(self.record)
            if self.facts or self.columns is not None:
                raise PlanError(f"source {self.source!r}: people with several tables declare no facts and no columns")
            return
        if person.nested and not (
            isinstance(self.record, ListOf) and self.record.bound == person.at_most and not self.record.nullable
        ):
            raise PlanError(f"source {self.source!r}: its records are lists of at most {person.at_most} rows")
        person.id_field(self.row)

    def _check_columns(self, columns: tuple[str, ...]) -> None:
        fields = self.row.names if isinstance(self.row, TupleOf) and not self.row.nullable else ()
        named = None not in fields and all(map(is_column_name, columns))
        if not named or not len({*columns}) == len(columns) == len(fields):
            raise PlanError(
                f"source {self.source!r}: columns gives each named field a column of its own, as a text in UTF-8 that "
                "is not empty and has no NUL"
            )
        column = "" if self.person is None else self.person.column
        if column in columns and column not in fields:
            raise PlanError(
                f"source {self.source!r}: the column {column!r} of the ids of people holds the field "
                f"{fields[columns.index(column)]!r}: name this field as the person"
            )

    @property
    def offered(self) -> tuple[Type, Person | None]:
        """The row and the person by the names of the columns of the data."""
        if self.columns is None or not isinstance(self.row, TupleOf):
            return self.row, self.person
        named = dict(zip(self.row.names, self.columns, strict=True))
        person = self.person and replace(self.person, column=named.get(self.person.column, self.person.column))
        return replace(self.row, names=self.columns), person

    @property
    def row(self) -> Type:
        """The declared type of a row of the data.

        It is that of a record, but where a record is one person's rows of one table.
        """
        if self.person is not None and self.person.nested and not isinstance(self.person, PersonTables):
            assert isinstance(self.record, ListOf)
            return self.record.element
        return self.record

    @property
    def account(self) -> str:
        """The account that pays for the source: its own, or one shared with other tables."""
        return (self.person.account if self.person is not None else "") or self.source

    @property
    def rows_of_unit(self) -> str:
        """The rest of the unit in words, where it is a person: `, at most 20 rows`."""
        if self.person is None:
            return ""
        if isinstance(self.person, PersonTables):
            each = [f"{t.at_most:,} of {t.name}" for t in self.person.tables]
            return f", at most {', '.join(each)} in one record"
        rows = "1 row" if self.person.at_most == 1 else f"{self.person.at_most:,} rows"
        return f", at most {rows}" + (" in one record" if self.person.nested else "")

    def output_type(self, *inputs: Type) -> Type:
        return self.record

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        return self.cap

    def rounding_units(self) -> Fraction:
        return Fraction(0)  # it is what was given

    def nonnegative(self, *inputs: bool) -> bool:
        return self.whole or "nonnegative" in self.facts

    def lattice(self, *inputs: Fraction) -> Fraction | NoLattice:
        if self.whole:
            return Fraction(1)
        return NoLattice(f"Source({self.source})", "is declared with weights=True; leave that out where data are rows")

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        if isinstance(self.person, PersonTables):
            return Counted(Fraction(1), f"people in {self.source}", self.exact)
        if self.person is not None:
            rows = f"at most {self.person.at_most:,}"
            nested = f"people in {self.source}, with {rows} rows each"
            kept = nested if self.person.nested else f"rows of {self.source}, {rows} per person"
            return Counted(Fraction(1), kept, self.exact)
        if not self.whole:
            return NoCount(f"Source({self.source})", "is declared with weights=True")
        return Counted(Fraction(1), f"rows of {self.source}", self.exact)

    def rows(self, *inputs: Sized) -> RowBounds:
        whole = any_record("field", self.record)
        leaves = [path for path, part in whole.paths(KEYS_LIMIT) if not part.fields]
        a_key = {frozenset(leaves): 1} if len(leaves) == len(list(whole.leaves())) else {}  # each record is there once
        if self.sizes is None:
            return RowBounds(None, a_key)
        names = self.record.names if isinstance(self.record, TupleOf) else ()
        for fields_, most in self.sizes.keys:
            places = [(names.index(name),) for name in fields_]
            lower(a_key, frozenset(places), most)
            parts = [(place, whole.at(place)) for place in places]
            inside = [(*place, *path) for place, part in parts for path, leaf in part.paths() if not leaf.fields]
            if len(inside) == sum(len(list(part.leaves())) for _, part in parts):  # fewer would be another key
                lower(a_key, frozenset(inside), most)
        return RowBounds(self.sizes.records, a_key, self.sizes.records)

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return of_type(self.record)

    @property
    def exact(self) -> bool:
        """Whether a unit is made of whole records of weight 1, and no record ever weighs more."""
        return "unit_weights" in self.facts

    @property
    def whole(self) -> bool:
        """Whether every weight is a number of rows: 0, 1, 2 and so on."""
        return self.person is not None or not {"unit_weights", "whole_weights"}.isdisjoint(self.facts)

    def steps(self) -> tuple[tuple[Change, Fraction], ...]:
        """The ways in which it changes by one step, each with the weight of that step.

        Two datasets that keep the facts differ by such steps, through datasets that keep them, and the weights of the
        steps add up to their distance. With `symmetric` a step is a pair of records, or a loop.
        """
        if "symmetric" in self.facts:
            one, other = any_record("unit", self.record).fields
            pair = added([(record((one, other)), ONE), (record((other, one)), ONE)])
            return (pair, Fraction(2)), (added([(record((one, one)), ONE)]), Fraction(1))
        return ((added([(any_record("unit", self.record), ONE)]), Fraction(1)),)

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        if not self.exact:
            return WeightBound()
        return WeightBound(Fraction(1), {}, (self.source, False) if "simple" in self.facts else None)

    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        raise PlanError(f"the source {self.source!r} has no data here")
