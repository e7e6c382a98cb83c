"""Bounds on the work of a function on one record, from its lists and the text it builds.

They are static. Counts are relative to the content of the record: a string or an unbounded list of the data counts as
one. The rest is what the query adds, so that no record costs more than its own size times a public number. So unbounded
lists are not nested: over pairs of their elements the work would grow faster than the record.

Engines make every list in full, but for what `list_prefix` has left out, and compute the body of a mapped function
anew. So nothing inside it is taken for known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from wpinq.errors import ExpressionError
from wpinq.expr.definition import Amount, most, primitive_named
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, below_first
from wpinq.expr.types import STR, ListOf, TupleOf, Type, Weighted, uneven_columns
from wpinq.expr.values import Value

#: The most calls that a function may have, with each function that is mapped written out where it is used.
CALLS_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class CallWork:
    """The most work of one call of a function.

    Attributes
    ----------
    steps : int
        Values and code points that it handles.
    text : int
        The longest string in what it gives, or the most elements of a list without a bound there.
    calls : int
        The calls that it is written of, with each function that is mapped written out where it is used.
    fixed_steps : int
        The part of `steps` that is the same for records of any content.
    content : tuple of int
        a and b: the largest column of its result holds at most a + b times the content of its largest argument, all
        elements of a list together.
    """

    steps: int
    text: int
    calls: int
    fixed_steps: int
    content: tuple[int, int]


@lru_cache(maxsize=4096)
def work(function: Lambda, texts: tuple[int, ...]) -> CallWork:
    """The work of a closed function of records whose longest strings are these.

    Raises
    ------
    ExpressionError
        When the function, with all that it maps written out, is too large to compile; or when lists without a bound
        stand inside one another.
    """
    return _Measure().of_function(function.core, texts)


@dataclass(frozen=True, slots=True)
class _Held:
    """Bounds on the content of a value.

    Attributes
    ----------
    text : Amount
        Its longest string.
    content : Amount
        The code points of its largest part, and the elements of its lists that nothing bounds; of a list, those of
        all its elements.
    counts : tuple of Amount
        Of a list, its elements; then, of a list of lists, the elements of these together; and so on.
    """

    text: Amount
    content: Amount
    counts: tuple[Amount, ...] = ()


class _Measure:
    def __init__(self) -> None:
        self.calls = 0
        self.sizes = count()

    def of_function(self, function: Lambda, texts: tuple[int, ...]) -> CallWork:
        bound = {
            variable.digest: _of_size(variable.type, Amount({(next(self.sizes),): text}))
            for variable, text in zip(function.parameters, texts, strict=True)
        }
        steps, held = self.of_body(function.body, bound)
        if steps.degree > 1:
            raise ExpressionError(
                "lists or texts without a bound are nested, so the work would grow faster than the size of a "
                "record: bound one of them, as in F.first(items, 20), or give a limit"
            )
        content = held.content.factor if _unbounded(function.type) else 0
        fixed = held.content.terms.get((), 0)
        inside = (fixed, held.content.factor - fixed)
        return CallWork(steps.factor, max(held.text.factor, content), self.calls, steps.terms.get((), 0), inside)

    def of_body(self, body: Expr, bound: dict[bytes, _Held]) -> tuple[Amount, _Held]:
        """Each distinct expression once; the functions that are mapped, where they are used."""
        known, steps = dict(bound), Amount.of(1)
        for expr in below_first([body], lambda expr: [c for c in expr.children if not isinstance(c, Lambda)], known):
            taken, known[expr.digest] = self.of_call(expr, known, bound)
            steps = steps + taken
        return steps, known[body.digest]

    def of_call(self, expr: Expr, known: dict[bytes, _Held], bound: dict[bytes, _Held]) -> tuple[Amount, _Held]:
        self.calls += 1
        if self.calls > CALLS_LIMIT:
            raise ExpressionError(f"the function has more than {CALLS_LIMIT:,} calls, with those of mapped functions")
        if isinstance(expr, Constant):
            content = Amount.of(content_of(expr.value))
            return Amount.of(1), _Held(Amount.of(_longest(expr.value)), content, _counts(expr.type, content))
        assert isinstance(expr, Call)
        if expr.name == "map":
            return self.of_map(expr, known, bound)
        given = [known[argument.digest] for argument in expr.arguments]
        sizes = tuple(_size(argument.type, held) for argument, held in zip(expr.arguments, given, strict=True))
        if expr.name == "length" and isinstance(expr.arguments[0].type, ListOf):
            sizes = ()  # every list knows its length
        taken, text = primitive_named(expr.name).work(sizes, tuple(held.text for held in given), expr.type)
        steps, held = Amount.of(taken), _result(expr, given, Amount.of(text))
        if expr.name == "range_list" and expr.attributes == (None,):
            held = replace(held, counts=(self.of_unlimited(expr, known),))
            steps = steps + held.counts[0]
        return most(1, steps), held

    def of_unlimited(self, expr: Call, known: dict[bytes, _Held]) -> Amount:
        """The length of a range that ends at the length of a list."""
        stop = expr.arguments[1]
        if not (isinstance(stop, Call) and stop.name == "length"):
            raise ExpressionError("a range needs a limit")
        (items,) = stop.arguments
        return (known[items.digest].counts or (known[items.digest].text,))[0]

    def of_map(self, expr: Call, known: dict[bytes, _Held], bound: dict[bytes, _Held]) -> tuple[Amount, _Held]:
        """The work of a function of every element of a list.

        Elements of data have, together, no more content than the list.
        """
        items, function = expr.arguments
        assert isinstance(function, Lambda)
        (parameter,), held, size = function.parameters, known[items.digest], next(self.sizes)
        element = _of_size(parameter.type, Amount({(size,): 1}))
        # what was computed outside is computed anew for each element: only variables are known inside
        steps, value = self.of_body(function.body, {**bound, parameter.digest: element})

        def together(amount: Amount) -> Amount:
            return amount.over(size, held.counts[0], held.content)

        taken, _ = primitive_named("map").work((held.counts[0], together(steps)), (held.text, value.text), expr.type)
        text = value.text.over(size, Amount.of(1), held.text)
        made = together(value.content)  # engines copy what each element is given, be it but a value from outside
        content = made + (Amount() if held.counts[0].known else held.counts[0])
        return taken + made, _Held(text, content, (held.counts[0], *map(together, value.counts)))


def _size(type_: Type, held: _Held) -> Amount:
    """The steps to read all of a value: its elements, its code points."""
    if isinstance(type_, ListOf):
        return most(held.counts[0], held.content)
    return held.text if type_ == STR else held.content


def _unbounded(type_: Type) -> bool:
    """Whether values of a type contain lists without a bound."""
    if isinstance(type_, ListOf):
        return type_.bound is None or _unbounded(type_.element)
    if isinstance(type_, Weighted):
        return _unbounded(type_.record)
    return isinstance(type_, TupleOf) and any(map(_unbounded, type_.elements))


def _of_size(type_: Type, size: Amount) -> _Held:
    """The content of a value of a type with texts and unbounded lists of this size."""
    content = size if uneven_columns(type_) else Amount()
    return _Held(content, content, _counts(type_, content))


def _counts(type_: Type, content: Amount) -> tuple[Amount, ...]:
    """The elements of a list and of the lists in it, by bounds, else its whole content."""
    counts: list[Amount] = []
    while isinstance(type_, ListOf):
        counts.append(content if type_.bound is None else (counts or [Amount.of(1)])[-1] * type_.bound)
        type_ = type_.element
    return tuple(counts)


def _result(expr: Call, given: list[_Held], text: Amount) -> _Held:
    """The content of a call's result, from that of its arguments."""
    type_, content = expr.type, most(*(held.content for held in given))
    if not isinstance(type_, ListOf):
        if not uneven_columns(type_):
            return _Held(Amount(), Amount())
        return _Held(text, text if type_ == STR else content)
    counts: tuple[Amount, ...] = ()
    if expr.name == "list":
        inside = [held.counts for held in given]
        counts = (Amount.of(len(given)), *(sum(some, Amount()) for some in zip(*inside, strict=True)))
        content = sum((held.content for held in given), Amount())
    elif expr.name == "split":
        counts = (given[0].text + 1,)
        content = given[0].text + counts[0]
    elif expr.name in ("flatten", "element"):
        counts = given[0].counts[1:]
    elif expr.name in ("sort_list", "where"):
        lists = [held.counts for held in given if held.counts]
        counts = tuple(most(*some) for some in zip(*lists, strict=False))
    if not counts:
        counts = _counts(type_, content)
    if type_.bound is not None:
        counts = (Amount.of(type_.bound), *counts[1:])
    return _Held(text, content, counts)


def _longest(value: Value) -> int:
    """The longest string in a public value."""
    if isinstance(value, tuple):
        return max(map(_longest, value), default=0)
    return len(value) if isinstance(value, str) else 0


def content_of(value: Value) -> int:
    """The code points and the elements in a public value."""
    if isinstance(value, tuple):
        return len(value) + sum(map(content_of, value))
    return len(value) if isinstance(value, str) else 0
