"""Errors planted in the rules of the sharp bound: each a change of a line or two in the real code.

A line that is no longer in the code fails, and the plant must be written anew.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from wpinq.plan import node as nodes, properties
from wpinq.plan.operators import Concat, GroupBy, Intersect, Join, Select, Shave, Source, Union, join, select_many
from wpinq.plan.operators.families import Combination, Extreme
from wpinq.plan.properties import plan_properties
from wpinq.plan.sensitivity import change, closed_wedges, stability, weights


@dataclass(frozen=True)
class Mutant:
    """An error: where it is, and the changes of the text there."""

    name: str
    owner: Any
    function: str
    changes: tuple[tuple[str, str], ...]
    also: Mutant | None = None
    """A second change that it takes, where two lines guard against the error."""


LISTED_WHOLE = ("items = elements[: self.bound]", "items = elements")
ANY_FIELD = ("if body.type.nullable or not isinstance(place, int):", "if not isinstance(place, int):")
KNOWN_ANYWAY = (
    "if not all(argument.known for argument in arguments):",
    'if expression.name != "list" and not all(argument.known for argument in arguments):',
)
KEPT_AS_IT_CAME = (
    "atoms += [(self._record(key), move) for move in unknown]",
    "atoms += [(applied(self.result, [t, matching(self.right_key, key)]), m) for t, m in left.change.atoms.items() "
    "if _key_of(self.left_key, t) == key] + [(self._record(key), unknown[1])]",
)
ONE_SCALE = (
    ("gain = max(gained + lost / 4 for gained, lost in _corners(move))", "gain = move.increase"),
    ("loss = max(lost + gained / 4 for gained, lost in _corners(move))", "loss = move.decrease"),
)
TWICE_IS_ONCE = ("left.oriented == (right.oriented[0], not right.oriented[1])", "left.oriented[0] == right.oriented[0]")
ABOVE_A_PART = (
    "type(NO_WEIGHT_BOUND)(Fraction(1)) if isinstance(node.operator, Partition) else "
    "node.operator.weight_bound(*(moved.weight_bound for moved in below))"
)
FIRST_FIELDS = ("list(self._any_key().leaves())", "[part for _, part in self._any_key().paths() if not part.fields]")

UNKNOWN_BELOW = Mutant("a list of something unknown is known", change, "_of_expression", (KNOWN_ANYWAY,))
NULLABLE_INSIDE = Mutant("", change, "_with", ((" and not type_.nullable:", ":"),))
NULLABLE_PATH = Mutant(
    "a key says what is in a record that may be null", change, "_path", (ANY_FIELD,), NULLABLE_INSIDE
)
CLOSURE_IS_BODY = Mutant(
    "a closure is its body",
    change,
    "_closure",
    (("if not all(term.known for term in taken):", "if False:"), (", *(term.digest for term in taken))", ")")),
)
LIMIT_IGNORED = Mutant("shares of a list as if it were not cut", select_many.SelectMany, "_shares", (LISTED_WHOLE,))
RECORD_KEPT = Mutant("a join's records are those that changed", Join, "change", (KEPT_AS_IT_CAME,))
ONE_UNKNOWN_KEY = Mutant("an unknown key is one key", join, "at_unknown_keys", ONE_SCALE)
SAME_EDGES_APART = Mutant("edges twice weigh what edges weigh", Concat, "weight_bound", (TWICE_IS_ONCE,))
LARGER_OF_KEYS = Mutant(
    "of two sides a key weighs what the heavier does",
    Union,
    "weight_bound",
    (
        (
            "of_both(left.a_key, right.a_key)",
            "{f: max(w, right.a_key[f]) for f, w in left.a_key.items() if f in right.a_key}",
        ),
    ),
)
EITHER_DIRECTION = Mutant(
    "edges and their reverse are edges", Union, "weight_bound", ((" if left.oriented == right.oriented else None", ""),)
)
PART_OF_A_KEY = Mutant(
    "a key is known by one of its fields",
    weights,
    "at_key",
    (("if all(record.at(path).known", "if any(record.at(path).known"),),
)
BOUND_OF_ANY_SIGN = Mutant(
    "bounds on weights that may be negative", Join, "change", (("limit = None if signed else self", "limit = self"),)
)
BESIDE_A_RATIO = Mutant(
    "what is beside a ratio is part of it",
    weights,
    "_multiple",
    (("one.keys() != other.keys()", "not one.keys() <= other.keys()"),),
)
TWO_RATIOS = Mutant("one key in a ratio: all keys", weights, "_multiple", (("if len(found) == 1 else None", ""),))
FREE_CLOSING = Mutant(
    "an edge closes wedges for nothing",
    stability,
    "_by_form",
    ((" + form.of_closing(found[form.closing.digest].change)", ""),),
)
PAIRS_BY_FORM = Mutant(
    "closed wedges of pairs come and go in the same records",
    closed_wedges,
    "_by_tag",
    (("if applied(node.operator.function, [pair]) == pair.fields[tag]:", "if True:"),),
)
LEAST_WEIGHT = Mutant(
    "what closes under an unknown tag weighs the least that any does",
    closed_wedges.ClosedWedges,
    "of_closing",
    (("Fraction(1))", "min(self.weights))"),),
)
NO_TAG = Mutant(
    "what closes under no tag weighs the most that any tag does",
    closed_wedges.ClosedWedges,
    "of_closing",
    (("Fraction(1))", "max(self.weights))"),),
)
NEXT_TAG = Mutant(
    "what closes weighs what it would under the tag before",
    closed_wedges.ClosedWedges,
    "of_closing",
    (("enumerate(self.weights)", "enumerate(self.weights, 1)"),),
)
SET_OFF = Mutant(
    "what a tag becomes is set off, gain against loss",
    closed_wedges,
    "closed_wedges",
    (("sum(abs(weight) for", "sum(weight for"),),
)
WIDE_KEY = Mutant("a key's first fields are the key", Join, "weight_bound", (FIRST_FIELDS,))

DEMAND = sys.modules["wpinq.plan.demand"]
"""The module, whose name its function takes."""

MUTANTS = (
    Mutant(
        "one part pays for all of its batch",
        DEMAND,
        "demand",
        (
            (
                "owed[alone] += max(held.values()) - largest",
                "owed[alone] = max(owed[alone], max(held.values()) - largest)",
            ),
            (
                "by_source[operator.source] += asked_here",
                "by_source[operator.source] = max(by_source[operator.source], asked_here)",
            ),
        ),
    ),
    Mutant(
        "what is above a part moves half as far",
        DEMAND,
        "demand",
        (("rate(found)", "rate(found) / (1 if isinstance(cut.operator, Source) else 2)"),),
    ),
    UNKNOWN_BELOW,
    NULLABLE_PATH,
    LIMIT_IGNORED,
    RECORD_KEPT,
    ONE_UNKNOWN_KEY,
    SAME_EDGES_APART,
    LARGER_OF_KEYS,
    EITHER_DIRECTION,
    PART_OF_A_KEY,
    BOUND_OF_ANY_SIGN,
    Mutant(
        "half of a GroupBy is forgotten", GroupBy, "change", (("half, half, move.total)", "half, half * 0, half)"),)
    ),
    Mutant(
        "a GroupBy only gains", GroupBy, "change", (("half, half, move.total)", "move.total, half * 0, move.total)"),)
    ),
    Mutant(
        "a reducer's value is known",
        GroupBy,
        "change",
        (("changes.record((key, UNKNOWN))", "changes.record((key, key))"),),
    ),
    Mutant("weights of 1 without the fact", Source, "exact", (('"unit_weights" in self.facts', "True"),)),
    Mutant(
        "bounds on weights above a part",
        stability,
        "_at",
        (
            ("if exact and nonnegative and not isinstance(node.operator, Partition):", "if nonnegative:"),
            ("node.operator.weight_bound(*(moved.weight_bound for moved in below))", ABOVE_A_PART),
        ),
    ),
    Mutant(
        "edges are simple without the fact",
        Source,
        "weight_bound",
        (('if "simple" in self.facts else None', "if True else None"),),
    ),
    Mutant(
        "an edge in both directions is never a loop",
        Source,
        "steps",
        (
            (
                "return (pair, Fraction(2)), (added([(record((one, one)), ONE)]), Fraction(1))",
                "return ((pair, Fraction(2)),)",
            ),
        ),
    ),
    Mutant(
        "a symmetric edge is one record",
        Source,
        "steps",
        (("record((other, one)), ONE)])", "record((other, one)), ONE * Fraction(0))])"),),
    ),
    Mutant("what is taken away is added", Combination, "change", (("side if sign > 0 else", "side if sign else"),)),
    Mutant("what falls on records of one form falls on one", change, "added", (("if term.known and", "if"),)),
    Mutant("an unknown key is a known one", Join, "change", (("if not key.known:", "if False:"),)),
    Mutant(
        "weights below zero join as others do",
        Join,
        "change",
        (("signed = not (left.nonnegative and right.nonnegative)", "signed = False"),),
    ),
    Mutant("a scale stands still", join, "at_one_key", (("abs(drift)", "abs(drift) * 0"),)),
    Mutant("a scale takes nothing away", join, "at_one_key", (("max(_ZERO, drift)", "_ZERO"),)),
    Mutant("a scale gives nothing back", join, "at_one_key", (("max(_ZERO, -drift)", "_ZERO"),)),
    Mutant(
        "of two sides of any sign the larger",
        join,
        "at_one_key_of_any_sign",
        (("left + right - left * right / (left + right)", "max(left, right)"),),
    ),
    Mutant(
        "negative shares",
        select_many,
        "_element",
        (("if size >= 0 else None", ""), ("element, size)", "element, abs(size))")),
    ),
    Mutant(
        "weights of the record are 1",
        select_many,
        "_element",
        (
            (
                "return None\n    size = Fraction(float(weight.value or 0))",
                "return element, Fraction(1)\n    size = Fraction(float(weight.value or 0))",
            ),
        ),
    ),
    Mutant(
        "a norm below 1 is made 1",
        select_many.SelectMany,
        "_shares",
        (("max(Fraction(self.least_norm), sum((weight for _, weight in whole), Fraction(0)))", "max(1, len(whole))"),),
    ),
    Mutant(
        "elements of weights that are not known keep apart what is gained and lost",
        select_many.SelectMany,
        "change",
        (("signed = self.weighted and shares is None", "signed = False"),),
    ),
    Mutant(
        "two bounds a key: the smaller",
        Concat,
        "weight_bound",
        (
            (
                "of_both(left.a_key, right.a_key)",
                "{f: min(w, right.a_key[f]) for f, w in left.a_key.items() if f in right.a_key}",
            ),
        ),
    ),
    Mutant(
        "two weights: the larger",
        Concat,
        "weight_bound",
        (
            (
                "max(left.largest, right.largest) if apart else left.largest + right.largest",
                "max(left.largest, right.largest)",
            ),
        ),
    ),
    Mutant("what merges keeps its weight", Select, "weight_bound", (("if injective(before, after) else None", ""),)),
    Mutant(
        "a bound outlives its key",
        weights,
        "followed",
        (
            (
                "if all(term.known and term in shown for term in terms):",
                "terms = [term for term in terms if term in shown]\n        if True:",
            ),
        ),
    ),
    Mutant("both sides at records of one form: the larger", Extreme, "change", (("if term.known and", "if"),)),
    Mutant(
        "an Intersect moves as one side does",
        Extreme,
        "change",
        (("for side in (left, right) for", "for side in (left,) for"),),
    ),
    Mutant("a piece has a known number", Shave, "change", (("record((term, UNKNOWN))", "record((term, term))"),)),
    Mutant(
        "what is static in a call is no part of it",
        change,
        "_of_expression",
        (
            (
                "static = [expression.name, repr(expression.attributes), signature(expression.type)]",
                "static = [expression.name]",
            ),
        ),
    ),
    Mutant("a constant is its type", change, "constant", (("return leaf(value.digest)", "return leaf(str(type_))"),)),
    Mutant("both pieces of a pair hold its first", change, "any_record", (("path=(*path, place))", "path=path)"),)),
    Mutant("a null key is a record", change, "any_record", (("and not type_.nullable]", "]"),)),
    Mutant("weight that is cut off is in the ratio", Shave, "proportions", ((" or self.bound is not None", ""),)),
    Mutant(
        "every element descends with all of the weight",
        select_many.SelectMany,
        "proportions",
        ((".times(share) for element", ".times(Fraction(1)) for element"),),
    ),
    TWO_RATIOS,
    BESIDE_A_RATIO,
    FREE_CLOSING,
    PAIRS_BY_FORM,
    Mutant(
        "pairs of neighbours gain nothing",
        closed_wedges,
        "_of_one_end",
        (("Fraction(3 * degree + 1, 2)", "(degree + 1)"),),
    ),
    LEAST_WEIGHT,
    NO_TAG,
    NEXT_TAG,
    SET_OFF,
    *(
        Mutant(name, closed_wedges.ClosedWedges, "of_both_ends", (change,))
        for name, change in (
            ("the form of one end", ("2 * most", "most")),
            ("the tags below are empty", ("full + weight * width", "weight * width")),
            ("a tag moves most where it begins", ("at(turn)", "at(limit)")),
            ("nothing moves beyond the last limit", ("full / (3 * (limit + 1))", "0")),
        )
    ),
    Mutant(
        "keys that are not known are the same",
        weights,
        "_multiple",
        ((" or not all(term.known for _, term in one)", ""),),
    ),
    Mutant(
        "each side takes its own share",
        weights,
        "ratio_of",
        (("(of_left, 1 - of_left,", "(1 - of_left, of_left,"),),
    ),
    Mutant(
        "the scale of a ratio moves half as far",
        weights,
        "ratio_of",
        (("one.times(of_left)", "one.times(of_left / 2)"),),
    ),
    Mutant("a scale that grows adds", weights, "ratio_of", ((".change.each(lambda move: move.reversed)", ".change"),)),
    Mutant(
        "pairs descend with the weight of one side",
        Join,
        "proportions",
        (("of.mapped(self._of_left).times(ratio.left)", "of.mapped(self._of_left)"),),
    ),
    Mutant(
        "a ratio of weights that may be negative",
        stability,
        "_at",
        (("if way.ratios and nonnegative:", "if way.ratios:"),),
        Mutant("", Join, "change", (("None if signed else self._in_ratio", "self._in_ratio"),)),
    ),
    Mutant(
        "what is put together descends as the first does",
        Concat,
        "proportions",
        (("return summed(product(left.proportions, right.proportions))", "return left.proportions"),),
    ),
    Mutant("paths alone, counted once", nodes, "paths_from", (("counts.get(child.digest, 0) + counts", "counts"),)),
    Mutant("half a way", stability, "_bound", (("moved.total / weight)", "moved.total / (2 * weight))"),)),
    Mutant(
        "of two bounds the larger would do",
        Intersect,
        "weight_bound",
        (("least([left.largest, right.largest])", "left.largest and left.largest / 2"),),
    ),
)


PATCHED = ("wpinq.", "tests.support")
"""Modules that may have taken a function by its name."""


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The rules with an error, until the end of the block."""
    if mutant.also is not None:
        with planted(mutant.also), planted(replace(mutant, also=None)):
            yield
        return
    original = inspect.getattr_static(mutant.owner, mutant.function)
    is_property = isinstance(original, property)
    function: Any = inspect.unwrap(original.fget if is_property else original)
    text = textwrap.dedent(inspect.getsource(function)).removeprefix("@property\n")
    for old, new in mutant.changes:
        assert old in text, f"the code has changed: write the plant anew ({old!r})"
        text = text.replace(old, new)
    defined: dict[str, Any] = {}
    exec(compile("from __future__ import annotations\n" + text, "planted", "exec"), function.__globals__, defined)
    error = property(defined[mutant.function]) if is_property else defined[mutant.function]
    with pytest.MonkeyPatch.context() as patch:
        if inspect.ismodule(mutant.owner):
            for module in [m for name, m in sys.modules.items() if name.startswith(PATCHED)]:
                for name, held in list(vars(module).items()):
                    if held is original:
                        patch.setattr(module, name, error)
        else:
            patch.setattr(mutant.owner, mutant.function, error)
        forget()
        try:
            yield
        finally:
            forget()


def forget() -> None:
    """Nothing found before is remembered."""
    stability._KNOWN.clear()
    for remembered in (
        stability.stability,
        stability._ways,
        plan_properties,
        properties._slack,
        join.at_one_key,
        join.at_one_key_of_any_sign,
        join.at_unknown_keys,
        closed_wedges.closed_wedges,
    ):
        getattr(remembered, "cache_clear", lambda: None)()
