"""Join: pairs of records with equal keys, scaled down where there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, product
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import TupleOf, Type, is_record_type, unify
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import SUM_ROUNDING_UNITS, Arithmetic, NoLattice, Weight, Weights
from wpinq.plan.domain import Counted, Domain, Inference, NoCount, RowBounds, Sized, both, kept, overlaid, times
from wpinq.plan.operator import InputChange, Parameter, Parameters, PartsRead, function_type, register
from wpinq.plan.operators.families import Keyed
from wpinq.plan.operators.group_by import HALF_A_KEY
from wpinq.plan.sensitivity.change import NOTHING, Change, ChangeBounds, Term, added, any_record, applied, matching
from wpinq.plan.sensitivity.weights import Fields, KnownProportions, WeightBound, followed, least, lower, ratio_of, some

#: The most keys of a side that are put together with those of the other.
SIDE_KEYS = 8


@register
@dataclass(frozen=True, slots=True)
class Join(Keyed):
    """Pair the records of two datasets whose keys are equal.

    Per key k, every pair `r(x, y)` weighs `A_k(x) · B_k(y) / (‖A_k‖ + ‖B_k‖)`; equal results add.
    (paper, section 2.7 and appendix A)

    Keys compare as records: null equals null. Without a result function the output is the pair.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    >>> wp.evaluate(paths, {"edges": {(1, 2): 1.0, (2, 3): 1.0}})
    WeightedDataset({(1, 2, 3): 0.5})
    """

    name: ClassVar[str] = "Join"
    method: ClassVar[str] = "join"
    arity: ClassVar[int] = 2
    parameters: ClassVar[Parameters] = (
        Parameter("other", "query"),
        Parameter("left_key", "function"),
        Parameter("right_key", "function", of=(1,)),
        Parameter("result", "function", of=(0, 1), optional=True),
    )
    stability: ClassVar[str] = "‖A_k‖·‖B_k‖/(‖A_k‖+‖B_k‖) grows by at most 1 per unit of either (appendix A)"

    left_key: Lambda
    right_key: Lambda
    result: Lambda

    def output_type(self, *inputs: Type) -> Type:
        left, right = self.left_key.type, self.right_key.type
        if not _same_shape(left, right):
            raise PlanError(f"Join: the keys have types {left} and {right}; make them agree")
        if not (is_record_type(left) and is_record_type(right)):
            raise PlanError(f"Join: {left} cannot be a key")
        return function_type(self.name, self.result)

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        left, right = inputs
        return left * right / (left + right) if left + right else Fraction(0)

    def unit_records(self, inputs: tuple[int, ...], norm_bound: Fraction) -> int:
        return inputs[0] * inputs[1]

    def rounding_units(self) -> Fraction:
        return 7 + SUM_ROUNDING_UNITS  # a product, a sum of norms, a quotient: 3; norms: 3, and 1 for their grid

    def dominating_partitions(self, *inputs: PartsRead) -> frozenset[bytes]:
        return frozenset[bytes]().union(*(below.dominating for below in inputs))  # it weighs no more than either side

    def nonnegative(self, *inputs: bool) -> bool:
        return all(inputs)  # two negative weights have a positive product, but not with every partner

    def lattice(self, *inputs: Fraction) -> NoLattice:
        return NoLattice(self.name, "divides by norms of the data; leave it out")

    def counted(self, *inputs: Counted) -> NoCount:
        return NoCount(self.name, "divides by the total weight of each key")

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.of_function(self.result, inputs)

    def change(self, *inputs: InputChange) -> Change:
        left, right = inputs
        signed = not (left.nonnegative and right.nonnegative)
        limit = None if signed else self._at_key(left.weight_bound, right.weight_bound)
        rules = set(left.change.rules | right.change.rules)
        sides = [dict(moved.change.by(key)) for moved, key in zip(inputs, self._keys, strict=True)]
        atoms: list[tuple[Term, ChangeBounds]] = []
        for key in dict.fromkeys(term for side in sides for term in side):
            one, other = (side.get(key, NOTHING) for side in sides)
            if not key.known:  # many keys, each with a scale of its own
                unknown = [ChangeBounds.any_sign(m.total) if signed else at_unknown_keys(m) for m in (one, other)]
                atoms += [(self._record(key), move) for move in unknown]
                continue
            move = at_one_key_of_any_sign(one.total, other.total) if signed else at_one_key(one, other)
            if move.total < one.total + other.total:
                rules.add(ONE_KEY)
            if limit is not None and limit < max(move.increase, move.decrease):
                rules.add(HALF_A_KEY)
                move = ChangeBounds.of(min(move.increase, limit), min(move.decrease, limit), move.total)
            atoms.append((self._record(key), move))
        found, sharper = added(atoms, rules), None if signed else self._in_ratio(left, right)
        return found if sharper is None or sharper.total >= found.total else sharper

    def _in_ratio(self, left: InputChange, right: InputChange) -> Change | None:
        """The change of the output where the ratio of the sides is the same at every key (rule R).

        A record that changes on one side has the partners that it has; the scale moves all pairs of a key.
        """
        ratio = ratio_of(left.proportions, right.proportions, self._keys)
        if ratio is None:
            return None
        atoms = [
            *((self._of_left(term), move * ratio.left) for term, move in left.change.atoms.items()),
            *((self._of_right(term), move * ratio.right) for term, move in right.change.atoms.items()),
            *((self._record(key), move) for key, move in ratio.scale.atoms.items()),
        ]
        return added(atoms, left.change.rules | right.change.rules | ratio.scale.rules | {RATIO})

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        left, right = inputs
        ratio = ratio_of(left.proportions, right.proportions, self._keys)
        if ratio is None:
            return ()
        by_left = (of.mapped(self._of_left).times(ratio.left) for of in left.proportions)
        by_right = (of.mapped(self._of_right).times(ratio.right) for of in right.proportions)
        return some(chain(by_left, by_right))

    @property
    def _keys(self) -> list[Callable[[Term], Term]]:
        return [partial(_key_of, key) for key in (self.left_key, self.right_key)]

    def _of_left(self, term: Term) -> Term:
        """The pairs of a record of the left side: its partners share its key."""
        return applied(self.result, [term, matching(self.right_key, _key_of(self.left_key, term))])

    def _of_right(self, term: Term) -> Term:
        return applied(self.result, [matching(self.left_key, _key_of(self.right_key, term)), term])

    def _record(self, key: Term) -> Term:
        # The scale of a key moves all pairs there, not only those of the record that changed.
        return applied(self.result, [matching(self.left_key, key), matching(self.right_key, key)])

    def rows(self, *inputs: Sized) -> RowBounds:
        left, right = (below.rows for below in inputs)
        key = self._any_key()
        matches = [matching(function, key) for function in (self.left_key, self.right_key)]
        partners = [side.at_key(match) for side, match in zip((left, right), matches, strict=True)]
        pairs = least([times(left.records, partners[1]), times(right.records, partners[0])])
        records = [
            overlaid(any_record(name, function.core.parameters[0].type), match)
            for name, function, match in zip(("left", "right"), (self.left_key, self.right_key), matches, strict=True)
        ]
        image = applied(self.result, records)
        shown = [followed(side.a_key, record, image) for side, record in zip((left, right), records, strict=True)]
        a_key: dict[Fields, int] = {}
        for found, matched in zip(shown, partners[::-1], strict=True):
            if matched is not None:
                for fields, most in found.items():
                    lower(a_key, fields, most * matched)
        for fields, most in kept(shown[0], SIDE_KEYS).items():
            for others, more in kept(shown[1], SIDE_KEYS).items():
                lower(a_key, fields | others, most * more)
        return RowBounds(pairs, kept(a_key), both(both(left.records, right.records), pairs))

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        """The weight of a join at a key: no more than that of either side.

        It is `M·M′/(M + M′)` where both sides are bounded.
        """
        limit = self._at_key(*inputs)
        if limit is None:
            return WeightBound()
        shown = {term: path for path, term in reversed(list(self._record(self._any_key()).paths()))}
        leaves = list(self._any_key().leaves())
        if not all(part in shown for part in leaves):
            return WeightBound()
        return WeightBound(limit, {frozenset(shown[part] for part in leaves): limit})

    def _at_key(self, left: WeightBound, right: WeightBound) -> Fraction | None:
        key = self._any_key()
        bounds = left.at_key(matching(self.left_key, key)), right.at_key(matching(self.right_key, key))
        known = [bound for bound in bounds if bound is not None]
        if len(known) == 2:
            one, other = known
            return one * other / (one + other)
        return min(known, default=None)

    def _any_key(self) -> Term:
        """A key, with distinct parts where neither side can be null."""
        return any_record("key", self.left_key.core.type, self.right_key.core.type)

    def keys(self) -> tuple[Callable[[Value], Value], ...]:
        return compile_lambda(self.left_key), compile_lambda(self.right_key)

    def part_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        result, total = compile_lambda(self.result), arithmetic.total

        def evaluate_part(key: Value, left: Weights, right: Weights) -> Iterable[tuple[Value, Weight]]:
            if not left or not right:
                return
            norm = total([*map(abs, left.values()), *map(abs, right.values())])
            for x, a in left.items():
                for y, b in right.items():
                    yield result(x, y), a * b / norm

        return evaluate_part


ONE_KEY = "both sides of a join at one key (J)"
RATIO = "sides of a join in one ratio at every key (R)"


def _key_of(key: Lambda, term: Term) -> Term:
    return applied(key, [term])


def _same_shape(left: Type, right: Type) -> bool:
    """Whether keys agree but for the names of their fields, which do not matter to a key."""
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        return len(left.elements) == len(right.elements) and all(
            _same_shape(a, b) for a, b in zip(left.elements, right.elements, strict=True)
        )
    return unify(left, right) is not None


# What a Join does to changes of its inputs: rule J where weights have any sign, rule S where none is negative.
#
# At one key, with a = ‖A_k‖, b = ‖B_k‖ and p = a/(a + b), every rate of `A_k ⊗ B_k / (a + b)` along the straight line
# between two inputs is a function of p and of the rates of the inputs; its largest value over p and over what the
# inputs may do is the bound. docs/proofs/stability.md derives the forms.

_ZERO, _ONE = Fraction(0), Fraction(1)


@lru_cache(maxsize=4096)
def at_one_key(left: ChangeBounds, right: ChangeBounds) -> ChangeBounds:
    """The change of a Join's output at one key, where no input weight is negative (rule S).

    With d = p_L − n_L + p_R − n_R, the rates of gain, loss and both are at most

        p_L(1−p) + p_R·p + p(1−p)·max(0, −d)        n_L(1−p) + n_R·p + p(1−p)·max(0, d)
        (p_L+n_L)(1−p) + (p_R+n_R)·p + p(1−p)·|d|

    They are convex in (p_L, n_L, p_R, n_R), so the largest value is at a corner of what the inputs may do.

    Examples
    --------
    >>> from wpinq.plan.sensitivity.change import ONE
    >>> at_one_key(ONE, ONE)
    ChangeBounds(increase=Fraction(1, 1), decrease=Fraction(1, 2), total=Fraction(3, 2))
    """
    gain = loss = both = _ZERO
    for (gained, lost), (won, missed) in product(_corners(left), _corners(right)):
        drift = gained - lost + won - missed
        gain = max(gain, _largest(gained, won, max(_ZERO, -drift)))
        loss = max(loss, _largest(lost, missed, max(_ZERO, drift)))
        both = max(both, _largest(gained + lost, won + missed, abs(drift)))
    return ChangeBounds.of(gain, loss, both)


@lru_cache(maxsize=4096)
def at_one_key_of_any_sign(left: Fraction, right: Fraction) -> ChangeBounds:
    """The change at one key where weights may be negative, of either sign (rule J).

    It is `α + β − αβ/(α + β)`.
    """
    if not left + right:
        return ChangeBounds.any_sign(_ZERO)
    return ChangeBounds.any_sign(left + right - left * right / (left + right))


@lru_cache(maxsize=4096)
def at_unknown_keys(move: ChangeBounds) -> ChangeBounds:
    """The change of the output where one input changes at unknown keys, perhaps many.

    At each key, up to a quarter of the gain can be lost at once, as the scale of the key moves. Each key has a scale of
    its own: `max (p + n/4)` over all changes that the input may make.
    """
    gain = max(gained + lost / 4 for gained, lost in _corners(move))
    loss = max(lost + gained / 4 for gained, lost in _corners(move))
    return ChangeBounds.of(gain, loss, move.total)


def _corners(move: ChangeBounds) -> Iterator[tuple[Fraction, Fraction]]:
    """The corners of `0 ≤ gained ≤ increase, 0 ≤ lost ≤ decrease, gained + lost ≤ total`."""
    yield _ZERO, _ZERO
    yield move.increase, _ZERO
    yield _ZERO, move.decrease
    yield move.increase, move.total - move.increase
    yield move.total - move.decrease, move.decrease


def _largest(left: Fraction, right: Fraction, scale: Fraction) -> Fraction:
    """The largest value over 0 ≤ p ≤ 1 of `left·(1−p) + right·p + scale·p(1−p)`."""
    ends = max(left, right)
    if abs(right - left) >= scale:  # the slope has one sign between the ends
        return ends
    return (left + right) / 2 + scale / 4 + (right - left) ** 2 / (4 * scale)
