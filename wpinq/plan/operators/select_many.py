"""SelectMany: a list for every record, scaled to at most the record's weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import ClassVar

from wpinq.errors import PlanError, described
from wpinq.expr.compile import compile_lambda, limited
from wpinq.expr.functions import LIST_LIMIT
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, show
from wpinq.expr.types import ListOf, Type, Weighted, is_record_type
from wpinq.expr.values import Value
from wpinq.plan import arithmetic
from wpinq.plan.arithmetic import EXACT, SUM_ROUNDING_UNITS, Arithmetic, NoLattice, Weight, accumulate, written_list
from wpinq.plan.domain import Counted, Domain, Inference, NoCount, RowBounds, Sized, both, times
from wpinq.plan.operator import InputChange, Parameter, Parameters, register
from wpinq.plan.operators.families import PerRecord
from wpinq.plan.sensitivity import change as changes
from wpinq.plan.sensitivity.change import ATOMS_LIMIT, UNKNOWN, Change, ChangeBounds, Term, added, any_record, evaluated
from wpinq.plan.sensitivity.weights import KnownProportions, WeightBound, summed

#: The longest list of a length that depends on the record: the lattice is divided by the lcm of 1 … that.
_LONGEST = 64


@register
@dataclass(frozen=True, slots=True)
class SelectMany(PerRecord):
    """Map each record to a list that shares its weight.

    The longer the list, the lighter its elements.

    `out = Σ_x A(x) · f(x) / max(d, ‖f(x)‖)`, with d = 1 unless a divisor is given   (paper, section 2.4)

    Elements weigh 1 unless the function gives them a weight of either sign with `F.weighted(x, w)`. Repeats
    are merged before the norm is taken. The list needs a static bound or a public `limit`. Longer lists are
    cut. The cut is a function of the record alone, so it costs nothing. A null list is empty; a null weight is 0. With
    a `divisor` of at least the bound, every element gets the same share, 1/divisor, however long its list is.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> numbers = wp.source("numbers", int, weights=True)
    >>> many = numbers.select_many(lambda x: F.range(1, x + 1, limit=10))
    >>> wp.evaluate(many, {"numbers": {2: 2.0}})
    WeightedDataset({1: 1.0, 2: 1.0})
    """

    name: ClassVar[str] = "SelectMany"
    method: ClassVar[str] = "select_many"
    parameters: ClassVar[Parameters] = (
        Parameter("function", "function"),
        Parameter("limit", "limit", optional=True),
        Parameter("divisor", "limit", optional=True),
    )
    later: ClassVar[frozenset[str]] = frozenset({"divisor"})
    stability: ClassVar[str] = "each record passes on its weight, shared out over a list of norm at most 1"

    function: Lambda
    limit: int | None = None
    divisor: int | None = None

    @property
    def bound(self) -> int:
        """The most elements that one record can have."""
        assert isinstance(self.function.type, ListOf)
        return required_bound(self.name, self.function.type.bound, self.limit, "the list")

    def output_type(self, *inputs: Type) -> Type:
        type_ = self.function.type
        if not isinstance(type_, ListOf):
            raise PlanError(f"SelectMany: the function gives {type_}, not a list; write [a, b], not (a, b)")
        element = type_.element.record if isinstance(type_.element, Weighted) else type_.element
        if not is_record_type(element):
            raise PlanError(f"SelectMany: {element} cannot be a record")
        assert self.bound > 0 or type_.bound == 0
        sound = isinstance(self.divisor, int) and not isinstance(self.divisor, bool) and 1 <= self.divisor <= LIST_LIMIT
        if self.divisor is not None and (self.weighted or not sound):
            raise PlanError(f"SelectMany: divisor is 1 to {LIST_LIMIT:,}, for elements without weights of their own")
        return element

    @property
    def least_norm(self) -> int:
        """The least number that the elements of a list are divided by."""
        return self.divisor or 1

    def bounded_function(self, function: Lambda) -> Lambda:
        return limited(function, self.bound)

    def unit_records(self, inputs: tuple[int, ...], norm_bound: Fraction) -> int:
        return inputs[0] * self.bound

    def rows(self, *inputs: Sized) -> RowBounds:
        below = inputs[0].rows
        made = times(below.records, self.bound)
        return RowBounds(made, {}, both(below.records, made))

    @property
    def weighted(self) -> bool:
        """Whether the function gives its elements weights."""
        return isinstance(self.function.type, ListOf) and isinstance(self.function.type.element, Weighted)

    def rounding_units(self) -> Fraction:
        return 2 + SUM_ROUNDING_UNITS  # the share of an element, and its product with the weight

    def nonnegative(self, *inputs: bool) -> bool:
        return inputs[0] and not self.weighted

    def lattice(self, *inputs: Fraction) -> Fraction | NoLattice:
        share = self._divisor_of_shares()
        return NoLattice(f"SelectMany({show(self.function)})", share) if isinstance(share, str) else inputs[0] * share

    def _divisor_of_shares(self) -> Fraction | str:
        """A divisor of every share, or the reason why there is none.

        A share is the weight of an element over the norm of its list.
        """
        items = written_list(self.function.core.body)
        if self.weighted:
            if items is None:
                return "has weights in a list whose elements depend on the record; write the list in place"
            return _divisor_of_weights(items[: self.bound])
        if items is not None:
            return Fraction(1, max(self.least_norm, min(len(items), self.bound)))
        if self.bound <= max(_LONGEST, self.least_norm):
            return Fraction(1, math.lcm(*range(self.least_norm, max(self.least_norm, self.bound) + 1)))
        return f"divides by lengths up to {self.bound}; give a limit of at most {_LONGEST}"

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        (things,) = inputs
        items = written_list(self.function.core.body)
        if items is None and not self.weighted and self.bound <= self.least_norm:
            return Counted(things.factor / self.least_norm, f"{self._elements} of {things.of}")
        shares = None if items is None else self._shares(items)
        if shares is None or len({share for _, share in shares}) != 1 or not shares[0][1]:
            return NoCount(self.name, "divides weight among lists of different lengths or weights")
        (_, share), *others = shares
        of = things.of if not others else f"elements of {things.of} ({len(shares)} each)"
        return Counted(things.factor * share, of)

    @property
    def _elements(self) -> str:
        """The elements in words: rows of a field, where the list is one."""
        body, (parameter,) = self.function.body, self.function.parameters
        if isinstance(body, Call) and body.name == "map":
            body = body.arguments[0]
        field = isinstance(body, Call) and body.name == "field" and body.arguments[0].digest == parameter.digest
        names = getattr(parameter.type, "names", ()) if field else ()
        name = names[body.attributes[0]] if names and isinstance(body, Call) else None
        return f"rows of {name}" if name else "list elements"

    def disjoint_images(self, *inputs: WeightBound) -> bool:
        """Whether the images are the pairs of a simple source, or of a part, and their reverses.

        None of these is a loop, and none the reverse of another.
        """
        (below,) = inputs
        if below.oriented is None:
            return False
        pair = any_record("field", self.function.core.parameters[0].type)
        elements = [self._element_of(element, pair) for element, _ in self.written_shares() or ()]
        return len(elements) == 2 and {*elements} == {pair, changes.record(pair.fields[::-1])}

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.of_function(self.function, inputs, elements=True)

    def change(self, *inputs: InputChange) -> Change:
        (below,) = inputs
        shares = self.written_shares()
        if shares is not None and len(shares) * len(below.change.atoms) <= ATOMS_LIMIT:
            atoms = (
                (self._element_of(element, term), move * share)
                for term, move in below.change.atoms.items()
                for element, share in shares
            )
            return added(atoms, below.change.rules)
        # Weights of either sign may cancel before the norm is taken: their total is all that is sure. Where each is at
        # least 0 and the same for a record in all data, what is gained and lost stays apart.
        signed = self.weighted and shares is None
        moves = (ChangeBounds.any_sign(move.total) if signed else move for move in below.change.atoms.values())
        return added(((UNKNOWN, move) for move in moves), below.change.rules)

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        shares = [(element, share) for element, share in self.written_shares() or () if share]
        if not shares:
            return ()
        return summed(
            [of.mapped(partial(self._element_of, element)).times(share) for element, share in shares]
            for of in inputs[0].proportions
            if len(shares) * len(of.parts) <= ATOMS_LIMIT
        )

    def _element_of(self, element: Expr, term: Term) -> Term:
        return evaluated(element, {self.function.core.level: term})

    def written_shares(self) -> list[tuple[Expr, Fraction]] | None:
        """The elements of a list that is written in place, with their shares, or None."""
        body = self.function.core.body
        return self._shares(body.children) if isinstance(body, Call) and body.name == "list" else None

    def _shares(self, elements: tuple[Expr, ...]) -> list[tuple[Expr, Fraction]] | None:
        """The elements of a list written in place, cut to the limit, with their shares.

        None where the plan does not show the elements' weights, or one is negative.
        """
        items = elements[: self.bound]
        pairs = [_element(item) for item in items] if self.weighted else [(item, Fraction(1)) for item in items]
        whole = [pair for pair in pairs if pair is not None]
        if len(whole) < len(items):
            return None
        norm = max(Fraction(self.least_norm), sum((weight for _, weight in whole), Fraction(0)))
        return [(element, weight / norm) for element, weight in whole]

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        function, bound, number = compile_lambda(self.bounded_function(self.function)), self.bound, arithmetic.number
        weighted, least = self.weighted, self.least_norm

        def images(record: Value) -> Iterable[tuple[Value, Weight]]:
            elements = islice(function(record) or (), bound)
            if weighted:  # exact in either arithmetic: weights of the query's own may be so large that floats overflow
                pairs = ((item, Fraction(weight)) for item, weight in elements if weight is not None)
                merged = accumulate(pairs, EXACT)
                norm = max(Fraction(1), EXACT.total(map(abs, merged.values())))
                return ((item, number(weight / norm)) for item, weight in merged.items())
            merged = accumulate(((item, number(1)) for item in elements), arithmetic)
            norm = max(number(least), arithmetic.total(merged.values()))
            return ((item, weight / norm) for item, weight in merged.items())

        return images


def _divisor_of_weights(items: tuple[Expr, ...]) -> Fraction | str:
    """A divisor of the shares of elements with these weights, or why there is none."""
    sizes: list[Fraction] = []
    signed = False
    for item in items:
        values = (
            arithmetic.public_numbers(item.arguments[1]) if isinstance(item, Call) and item.name == "weighted" else None
        )
        magnitudes = set(map(abs, values or ()))
        if len(magnitudes) != 1:
            return "has weights that depend on the record beyond their sign; make them constants"
        signed = signed or any(value < 0 for value in values or ())
        sizes.append(magnitudes.pop())
    if signed and not _distinct([item.children[0] for item in items]):
        return "may merge elements of opposite sign; tell its records apart by a constant field"
    nonzero = [size for size in sizes if size]
    return arithmetic.common_divisor(*nonzero) / max(Fraction(1), sum(nonzero, Fraction(0))) if nonzero else Fraction(1)


def _distinct(records: list[Expr]) -> bool:
    """Whether a field has another constant in every record."""
    if not all(isinstance(record, Call) and record.name == "record" for record in records):
        return False
    columns = zip(*(record.children for record in records), strict=False)
    return any(
        all(isinstance(field, Constant) for field in column) and len({field.digest for field in column}) == len(records)
        for column in columns
    )


def _element(item: Expr) -> tuple[Expr, Fraction] | None:
    """An element with its public weight; None where that is negative or depends on the record."""
    if not (isinstance(item, Call) and item.name == "weighted"):
        return None
    element, weight = item.arguments
    if isinstance(weight, Call) and weight.name == "to_float":
        (weight,) = weight.arguments
    if not isinstance(weight, Constant) or isinstance(weight.value, (str, tuple)):
        return None
    size = Fraction(float(weight.value or 0))  # a float, also where an integer was written: it may be rounded
    return (element, size) if size >= 0 else None


def required_bound(operator: str, bound: int | None, limit: int | None, what: str) -> int:
    """The static bound that a list's length must have, from its type or a public limit."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise PlanError(f"{operator}: limit must be a positive integer, not {described(limit)}")
    if limit is not None and limit > LIST_LIMIT:
        raise PlanError(f"{operator}: limit must be at most {LIST_LIMIT:,}; declare a smaller one")
    known = [value for value in (bound, limit) if value is not None]
    if not known:
        raise PlanError(
            f"{operator}: nothing bounds the length of {what}; give a public limit=…, "
            "so that one record cannot blow up time and memory (longer lists are cut)"
        )
    if min(known) > LIST_LIMIT:
        raise PlanError(f"{operator}: {what} may be longer than {LIST_LIMIT:,}; give a public limit=…")
    return min(known)
