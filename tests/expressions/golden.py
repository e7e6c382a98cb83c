"""The golden table: what every expression means, edge cases included. Every engine is run against it.

A case is a function of one record, the type of the record, a record, and what the function gives: what any engine
must give for `source.select(function)` over that record alone. `case.source()` declares the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.expr.types import ListOf, record_type, type_from_annotation

LEAST, MOST = -(2**63), 2**63 - 1
HUGE = 1.7976931348623157e308
TINY = 5e-324
FACE = "\U0001f600"  # one code point, two UTF-16 units, four bytes
LONG = "x" * 600_000


@dataclass(frozen=True)
class Case:
    """A function, the type of its record, a record, and the output."""

    group: str
    number: int
    schema: Any
    function: Callable[[Any], Any]
    given: Any
    output: Any

    @property
    def name(self) -> str:
        """For people: what it is about and which of those it is."""
        return f"{self.group}-{self.number}"

    def source(self) -> Query:
        """A source of records of the type; the query is `case.source().select(case.function)`."""
        return wp.source("given", type_from_annotation(self.schema))


GOLDEN: list[Case] = []


def table(group: str, schema: Any, function: Callable[[Any], Any], *rows: tuple[Any, Any]) -> None:
    """Enter a function with its rows of record and output."""
    count = sum(case.group == group for case in GOLDEN)
    GOLDEN.extend(Case(group, count + i, schema, function, given, output) for i, (given, output) in enumerate(rows))


N, R, B, S = int | None, float | None, bool | None, str | None
INTS = {"a": N, "b": N}
FLOATS = {"a": R, "b": R}
BOOLS = {"a": B, "b": B}
TEXTS = {"a": S, "b": S}
MIXED = {"i": N, "f": R}

# --- arithmetic -------------------------------------------------------------------------------------------------------

table(
    "add",
    INTS,
    lambda r: r.a + r.b,
    ((2, 3), 5),
    ((MOST, 0), MOST),
    ((MOST, 1), None),
    ((LEAST, -1), None),
    ((MOST, LEAST), -1),
    ((None, 1), None),
    ((1, None), None),
)
table(
    "add",
    FLOATS,
    lambda r: r.a + r.b,
    ((0.1, 0.2), 0.30000000000000004),
    ((HUGE, HUGE), None),
    ((-HUGE, -HUGE), None),
    ((HUGE, -HUGE), 0.0),
    ((-0.0, -0.0), 0.0),
    ((1e16, 1.0), 1e16),
    ((None, 1.0), None),
)
table("add", MIXED, lambda r: r.i + r.f, ((1, 0.5), 1.5), ((2**53 + 1, 0.0), 9007199254740992.0), ((None, 0.5), None))
table("add", int, lambda x: 1 + x, (41, 42), (MOST, None))
table("add", int, lambda x: x + 0.5, (-1, -0.5))
table("add", int, lambda x: x + None, (1, None))
table(
    "subtract",
    INTS,
    lambda r: r.a - r.b,
    ((2, 3), -1),
    ((LEAST, 1), None),
    ((0, LEAST), None),
    ((-1, LEAST), MOST),
    ((None, None), None),
)
table(
    "subtract", FLOATS, lambda r: r.a - r.b, ((0.3, 0.1), 0.19999999999999998), ((0.0, 0.0), 0.0), ((HUGE, -HUGE), None)
)
table("subtract", MIXED, lambda r: r.f - r.i, ((3, 0.5), -2.5), ((3, None), None))
table("subtract", int, lambda x: 10 - x, (4, 6), (LEAST, None))
table(
    "multiply",
    INTS,
    lambda r: r.a * r.b,
    ((6, -7), -42),
    ((2**32, 2**31), None),
    ((2**32, -(2**31)), LEAST),
    ((-1, LEAST), None),
    ((0, None), None),
)
table(
    "multiply",
    FLOATS,
    lambda r: r.a * r.b,
    ((0.1, 3.0), 0.30000000000000004),
    ((1e200, 1e200), None),
    ((1e-200, 1e-200), 0.0),
    ((-1e-200, 1e-200), 0.0),
    ((0.0, -5.0), 0.0),
    ((TINY, 0.75), TINY),
)
table("multiply", MIXED, lambda r: r.i * r.f, ((3, 0.1), 0.30000000000000004), ((0, -1.0), 0.0))
table("negate", N, lambda x: -x, (5, -5), (0, 0), (LEAST, None), (MOST, -MOST), (None, None))
table("negate", R, lambda x: -x, (1.5, -1.5), (0.0, 0.0), (None, None))
table(
    "divide",
    INTS,
    lambda r: r.a / r.b,
    ((7, 2), 3.5),
    ((1, 3), 0.3333333333333333),
    ((0, -5), 0.0),
    ((1, 0), None),
    ((0, 0), None),
    ((None, 2), None),
    ((MOST, 1), 9223372036854775808.0),
    ((2**53 + 1, 1), 9007199254740992.0),
)
table(
    "divide",
    FLOATS,
    lambda r: r.a / r.b,
    ((1.0, 3.0), 0.3333333333333333),
    ((1.0, 0.0), None),
    ((0.0, 0.0), None),
    ((-1.0, 0.0), None),
    ((HUGE, 0.5), None),
    ((TINY, 2.0), 0.0),
    ((-TINY, 2.0), 0.0),
    ((0.0, -1.0), 0.0),
    ((1.0, None), None),
)
table("divide", int, lambda x: 1 / x, (4, 0.25), (0, None))
table(
    "floor_divide",
    INTS,
    lambda r: r.a // r.b,
    ((7, 2), 3),
    ((-7, 2), -4),
    ((7, -2), -4),
    ((-7, -2), 3),
    ((-6, 2), -3),
    ((0, -3), 0),
    ((1, 0), None),
    ((LEAST, -1), None),
    ((LEAST, 1), LEAST),
    ((MOST, LEAST), -1),
    ((LEAST, MOST), -2),
    ((None, 2), None),
    ((2, None), None),
)
table("floor_divide", int, lambda x: 100 // x, (7, 14), (-7, -15), (0, None))
table(
    "modulo",
    INTS,
    lambda r: r.a % r.b,
    ((7, 3), 1),
    ((-7, 3), 2),
    ((7, -3), -2),
    ((-7, -3), -1),
    ((6, -3), 0),
    ((1, 0), None),
    ((LEAST, -1), 0),
    ((LEAST, MOST), MOST - 1),
    ((MOST, LEAST), -1),
    ((None, 3), None),
)
table("modulo", int, lambda x: 100 % x, (7, 2), (-7, -5), (0, None))
table("absolute", N, lambda x: abs(x), (5, 5), (-5, 5), (0, 0), (LEAST, None), (None, None))
table("absolute", R, lambda x: F.absolute(x), (-2.5, 2.5), (0.0, 0.0), (-HUGE, HUGE), (None, None))

# --- comparison and logic ---------------------------------------------------------------------------------------------

table(
    "equal",
    INTS,
    lambda r: r.a == r.b,
    ((1, 1), True),
    ((1, 2), False),
    ((None, None), True),
    ((None, 1), False),
    ((MOST, MOST - 1), False),
)
table("equal", FLOATS, lambda r: r.a == r.b, ((0.1, 0.1), True), ((0.0, -0.0), True), ((None, 0.0), False))
table(
    "equal",
    MIXED,
    lambda r: r.i == r.f,
    ((1, 1.0), True),
    ((1, 1.5), False),
    ((2**53 + 1, 9007199254740992.0), True),  # the int is compared as a float
    ((None, None), True),
    ((None, 0.0), False),
)
table(
    "equal",
    TEXTS,
    lambda r: r.a == r.b,
    (("a", "a"), True),
    (("a", "A"), False),
    (("", None), False),
    (("\u00e9", "e\u0301"), False),
)
table("equal", {"a": list[N], "b": list[N]}, lambda r: r.a == r.b, (((1, None), (1, None)), True), (((1,), ()), False))
table(
    "equal",
    {"a": {"x": N, "y": S}, "b": {"x": N, "y": S}},
    lambda r: r.a == r.b,
    (((1, None), (1, None)), True),
    (((1, "a"), (1, "b")), False),
)
table("equal", N, lambda x: x == None, (None, True), (0, False))  # noqa: E711 - as users write it
table("equal", BOOLS, lambda r: r.a == r.b, ((True, True), True), ((True, False), False), ((None, False), False))
table(
    "not_equal", INTS, lambda r: r.a != r.b, ((1, 1), False), ((1, 2), True), ((None, None), False), ((None, 1), True)
)
table("not_equal", MIXED, lambda r: r.i != r.f, ((1, 1.0), False), ((None, 1.0), True))
table(
    "less",
    INTS,
    lambda r: r.a < r.b,
    ((1, 2), True),
    ((2, 2), False),
    ((None, 2), None),
    ((2, None), None),
    ((LEAST, MOST), True),
)
table(
    "less",
    FLOATS,
    lambda r: r.a < r.b,
    ((-HUGE, HUGE), True),
    ((-0.0, 0.0), False),
    ((0.0, TINY), True),
    ((None, None), None),
)
table(
    "less", MIXED, lambda r: r.i < r.f, ((1, 1.5), True), ((2**53 + 1, 9007199254740992.0), False), ((None, 1.5), None)
)
table(
    "less",
    TEXTS,
    lambda r: r.a < r.b,
    (("a", "b"), True),
    (("Z", "a"), True),
    (("", "a"), True),
    (("a", "ab"), True),
    (("\uffff", FACE), True),  # by code point; UTF-16 would say otherwise
    (("z", "é"), True),
    ((None, ""), None),
)
table(
    "less",
    BOOLS,
    lambda r: r.a < r.b,
    ((False, True), True),
    ((True, False), False),
    ((True, True), False),
    ((None, True), None),
)
table("greater", INTS, lambda r: r.a > r.b, ((2, 1), True), ((1, 1), False), ((None, 1), None))
table("less_equal", INTS, lambda r: r.a <= r.b, ((1, 1), True), ((2, 1), False), ((1, None), None))
table("greater_equal", INTS, lambda r: r.a >= r.b, ((1, 1), True), ((0, 1), False), ((None, None), None))
table("greater_equal", MIXED, lambda r: r.f >= r.i, ((1, 1.0), True), ((2, 1.5), False), ((None, 0.0), None))
PAIRS = {"a": {"x": N, "y": N}, "b": {"x": N, "y": N}}
table(
    "less_record",
    PAIRS,
    lambda r: r.a < r.b,
    (((1, 2), (1, 3)), True),
    (((1, 3), (1, 2)), False),
    (((1, 2), (1, 2)), False),
    (((0, 9), (1, 0)), True),
    (((None, 9), (0, 0)), True),  # null comes first, and the answer is never null
    (((0, 0), (None, 9)), False),
    (((1, None), (1, None)), False),
    (((1, None), (1, 0)), True),
)
table("less_record", PAIRS, lambda r: r.a >= r.b, (((1, 2), (1, 2)), True), (((None, 9), (0, 0)), False))
OPTIONAL_PAIRS = {
    name: type_.with_nullable() for name, type_ in ((n, type_from_annotation({"x": N, "y": N})) for n in "ab")
}
table(
    "less_record",
    OPTIONAL_PAIRS,
    lambda r: r.a < r.b,
    ((None, (None, None)), True),
    (((None, None), None), False),
    ((None, None), False),
    (((1, 2), (1, 3)), True),
)
TRUTH = (True, False, None)
for a in TRUTH:
    for b in TRUTH:
        table(
            "and",
            BOOLS,
            lambda r: r.a & r.b,
            ((a, b), False if a is False or b is False else None if None in (a, b) else True),
        )
        table(
            "or",
            BOOLS,
            lambda r: r.a | r.b,
            ((a, b), True if a is True or b is True else None if None in (a, b) else False),
        )
table("not", B, lambda x: ~x, (True, False), (False, True), (None, None))
table("and", B, lambda x: True & x, (True, True), (None, None))
table("or", B, lambda x: False | x, (False, False), (None, None))
table("and", int, lambda x: (x > 0) & (x < 9), (5, True), (9, False))

# --- choice, null, casts ----------------------------------------------------------------------------------------------

table(
    "where",
    {"c": B, "x": N, "y": N},
    lambda r: F.where(r.c, r.x, r.y),
    ((True, 1, 2), 1),
    ((False, 1, 2), 2),
    ((None, 1, 2), 2),
    ((True, None, 2), None),
)
table(
    "where",
    {"c": B, "i": N, "f": R},
    lambda r: F.where(r.c, r.i, r.f),
    ((True, 1, 2.5), 1.0),
    ((False, 1, 2.5), 2.5),
    ((True, None, 2.5), None),
)
table("where", int, lambda x: F.where(x > 0, x, None), (1, 1), (-1, None))
table("where", int, lambda x: F.where(x > 0, (x, "a"), (0, None)), (1, (1, "a")), (-1, (0, None)))
table("where", int, lambda x: F.where(x > 0, [x, x], []), (1, (1, 1)), (-1, ()))
table("is_null", N, lambda x: F.is_null(x), (None, True), (0, False))
table("is_null", S, lambda x: F.is_null(x), ("", False), (None, True))
table("is_null", list[int], lambda x: F.is_null(F.element(x, 0)), ((), True), ((0,), False))
table(
    "to_int",
    R,
    lambda x: F.cast(x, int),
    (2.9, 2),
    (-2.9, -2),
    (-0.5, 0),
    (9223372036854774784.0, 9223372036854774784),
    (9223372036854775808.0, None),
    (-9223372036854775808.0, LEAST),
    (-9223372036854777856.0, None),
    (HUGE, None),
    (None, None),
)
table(
    "to_int",
    S,
    lambda x: F.cast(x, int),
    ("42", 42),
    ("-42", -42),
    ("+7", 7),
    ("007", 7),
    ("-0", 0),
    ("9223372036854775807", MOST),
    ("9223372036854775808", None),
    ("-9223372036854775808", LEAST),
    ("00000000000000000001", None),  # 20 digits
    (" 42", None),
    ("42 ", None),
    ("42\n", None),
    ("4 2", None),
    ("", None),
    ("-", None),
    ("1.0", None),
    ("1e3", None),
    ("1_000", None),
    ("0x10", None),
    ("٤٢", None),  # digits, but not ASCII
    ("１", None),
    ("abc", None),
    (None, None),
)
table("to_int", B, lambda x: F.cast(x, int), (True, 1), (False, 0), (None, None))
table("to_int", N, lambda x: F.cast(x, int), (MOST, MOST), (None, None))
table(
    "to_float",
    N,
    lambda x: F.cast(x, float),
    (3, 3.0),
    (2**53 + 1, 9007199254740992.0),
    (MOST, 9223372036854775808.0),
    (None, None),
)
table("to_float", R, lambda x: F.cast(x, float), (0.1, 0.1), (None, None))
table(
    "to_float",
    S,
    lambda x: F.cast(x, float),
    ("2.5", 2.5),
    ("-2.5", -2.5),
    ("+.5", 0.5),
    ("5.", 5.0),
    ("1e3", 1000.0),
    ("1E-3", 0.001),
    ("0.1", 0.1),
    ("-0", 0.0),
    ("1e400", None),
    ("1e-400", 0.0),
    ("179769313486231580793e289", None),
    (" 1", None),
    ("1 ", None),
    ("", None),
    (".", None),
    ("1e", None),
    ("nan", None),
    ("inf", None),
    ("Infinity", None),
    ("0x1p3", None),
    ("1_0.0", None),
    ("1,5", None),
    ("٤.٢", None),
    (None, None),
)
table("to_str", N, lambda x: F.cast(x, str), (42, "42"), (LEAST, "-9223372036854775808"), (0, "0"), (None, None))
table("to_str", B, lambda x: F.cast(x, str), (True, "true"), (False, "false"), (None, None))
table("to_str", S, lambda x: F.cast(x, str), (" a ", " a "), (None, None))

# --- strings ----------------------------------------------------------------------------------------------------------

table(
    "concatenate",
    TEXTS,
    lambda r: r.a + r.b,
    (("ab", "c"), "abc"),
    (("", ""), ""),
    ((FACE, "é"), FACE + "é"),
    ((None, "x"), None),
    (("x", None), None),
)
table("concatenate", str, lambda x: x + "!", ("hi", "hi!"))
table("concatenate", str, lambda x: F.length(x + x), ("x" * 500_000, 1_000_000), ("x" * 500_001, None))
table("concatenate", int, lambda x: "n" + F.cast(x, str), (-3, "n-3"))
table(
    "lower",
    S,
    lambda x: F.lower(x),
    ("AbZ", "abz"),
    ("ÉÄ", "ÉÄ"),
    ("İ", "İ"),
    ("ẞ", "ẞ"),
    ("", ""),
    ("@[", "@["),
    (None, None),
)
table(
    "substring",
    {"s": S, "i": N, "n": N},
    lambda r: F.substring(r.s, r.i, r.n),
    (("hello", 1, 3), "ell"),
    (("hello", 0, 99), "hello"),
    (("hello", 5, 1), ""),
    (("hello", 99, 1), ""),
    (("hello", 2, 0), ""),
    (("hello", 2, -1), ""),
    (("hello", -2, 4), "he"),  # positions before the start hold nothing
    (("hello", -2, 2), ""),
    (("hello", MOST, MOST), ""),
    (("hello", 1, MOST), "ello"),
    (("hello", LEAST, MOST), ""),
    (("a" + FACE + "b", 1, 1), FACE),
    (("", 0, 1), ""),
    ((None, 0, 1), None),
    (("hello", None, 1), None),
    (("hello", 0, None), None),
)
table(
    "find",
    TEXTS,
    lambda r: F.find(r.a, r.b),
    (("hello", "l"), 2),
    (("hello", "lo"), 3),
    (("hello", "x"), -1),
    (("hello", ""), 0),
    (("", ""), 0),
    (("", "a"), -1),
    ((FACE + "b", "b"), 1),
    (("aaa", "aaaa"), -1),
    (("50%_", "%_"), 2),
    ((None, "a"), None),
    (("a", None), None),
)
table(
    "contains",
    TEXTS,
    lambda r: F.contains(r.a, r.b),
    (("hello", "ell"), True),
    (("hello", "%"), False),
    (("hello", ""), True),
    ((None, "a"), None),
    (("a", None), None),
)
table(
    "starts_with",
    TEXTS,
    lambda r: F.starts_with(r.a, r.b),
    (("hello", "he"), True),
    (("hello", "el"), False),
    (("he", "hello"), False),
    (("", ""), True),
    ((None, "a"), None),
    (("a", None), None),
)
table(
    "split",
    TEXTS,
    lambda r: F.split(r.a, r.b),
    (("a,b,c", ","), ("a", "b", "c")),
    ((",a,", ","), ("", "a", "")),
    (("", ","), ("",)),
    (("abc", ""), ("abc",)),
    (("a--b---c", "--"), ("a", "b", "-c")),
    (("a|b", "|"), ("a", "b")),
    (("a.b", "."), ("a", "b")),
    ((" a  b ", " "), ("", "a", "", "b", "")),
    ((FACE + "x" + FACE, "x"), (FACE, FACE)),
    ((None, ","), None),
    (("a", None), None),
)
table("length", S, lambda x: F.length(x), ("abc", 3), ("", 0), (FACE, 1), ("e\u0301", 2), (None, None))

# --- records ----------------------------------------------------------------------------------------------------------

TRIPLE = {"a": N, "b": N, "c": N}
table("record", INTS, lambda r: (r.b, r.a), ((1, 2), (2, 1)), ((None, 2), (2, None)))
table("record", int, lambda x: F.record(twice=x * 2, same=x), (3, (6, 3)), (MOST, (None, MOST)))
table("record", int, lambda x: {"x": x, "one": 1}, (3, (3, 1)))
table("record", int, lambda x: (x,), (3, (3,)))
table("record", int, lambda x: (x, (x, None), [x, None]), (3, (3, (3, None), (3, None))))
table("record", int, lambda x: (1, 1.0, True, "1", None), (0, (1, 1.0, True, "1", None)))
table("field", TRIPLE, lambda r: r.c, ((1, 2, 3), 3), ((1, 2, None), None))
table("field", TRIPLE, lambda r: r[-1], ((1, 2, 3), 3))
table("field", TRIPLE, lambda r: r["b"], ((1, 2, 3), 2))
table(
    "field",
    {"p": record_type({"x": type_from_annotation(int)}).with_nullable()},
    lambda r: r.p.x,
    (((1,),), 1),
    ((None,), None),
)
table("field", int, lambda x: (x, x + 1)[1], (1, 2))
table("rotate", TRIPLE, lambda r: F.rotate(r), ((1, 2, 3), (2, 3, 1)), ((None, 2, 3), (2, 3, None)))
table("rotate", TRIPLE, lambda r: F.rotate(r).a, ((1, 2, 3), 2))  # fields of one type: the names stay in place
table("rotate", {"n": int, "s": str}, lambda r: F.rotate(r)[0], ((1, "a"), "a"))  # of several: the names go
table("reverse", TRIPLE, lambda r: F.reverse(r), ((1, 2, 3), (3, 2, 1)))
table("reverse", TRIPLE, lambda r: F.reverse(r).a, ((1, 2, 3), 3))
table("reverse", {"n": int, "s": str}, lambda r: F.reverse(r), ((1, "a"), ("a", 1)))
table(
    "sort",
    TRIPLE,
    lambda r: F.sort(r),
    ((3, 1, 2), (1, 2, 3)),
    ((3, 3, 1), (1, 3, 3)),
    ((3, None, 1), (None, 1, 3)),
    ((None, None, 1), (None, None, 1)),
    ((MOST, LEAST, 0), (LEAST, 0, MOST)),
)
table("sort", TRIPLE, lambda r: F.sort(r).a, ((3, 1, 2), 1))
table(
    "sort",
    {"a": S, "b": S},
    lambda r: F.sort(r),
    (("b", "a"), ("a", "b")),
    ((FACE, "\uffff"), ("\uffff", FACE)),
    (("a", None), (None, "a")),
)
table("sort", {"a": R, "b": R}, lambda r: F.sort(r), ((0.5, -0.5), (-0.5, 0.5)))
table(
    "sort",
    INTS,
    lambda r: F.sort(((r.a, r.b), (r.b, r.a))),
    ((2, 1), ((1, 2), (2, 1))),
    ((1, None), ((None, 1), (1, None))),
)
table("sort", INTS, lambda r: F.sort((r.a, r.b, r.a, r.b, r.a, r.b, r.a, r.b)), ((2, 1), (1, 1, 1, 1, 2, 2, 2, 2)))

# --- lists ------------------------------------------------------------------------------------------------------------

table("list", int, lambda x: [x, x + 1], (1, (1, 2)), (MOST, (MOST, None)))
table("list", int, lambda x: [], (1, ()))
table("list", MIXED, lambda r: [r.i, r.f], ((1, 0.5), (1.0, 0.5)), ((None, None), (None, None)))
table("list", int, lambda x: [[x], []], (1, ((1,), ())))
table("list", int, lambda x: [(x, "a"), (None, "b")], (1, ((1, "a"), (None, "b"))))
table("length", list[N], lambda x: F.length(x), ((), 0), ((1, None), 2))
table("count", list[N], lambda x: F.count(x), ((), 0), ((1, None, 3), 3))
table(
    "count",
    {"l": ListOf(type_from_annotation(int), nullable=True)},
    lambda r: F.count(r.l),
    ((None,), None),
    (((1,),), 1),
)
table(
    "element",
    {"l": list[N], "i": N},
    lambda r: r.l[r.i],
    (((5, 6), 0), 5),
    (((5, 6), 1), 6),
    (((5, 6), 2), None),
    (((5, 6), -1), None),
    (((5, None), 1), None),
    (((), 0), None),
    (((5, 6), None), None),
    (((5, 6), MOST), None),
)
table("element", list[list[int]], lambda x: F.element(F.element(x, 0), 1), (((1, 2),), 2), (((1,),), None), ((), None))
table(
    "range",
    INTS,
    lambda r: F.range(r.a, r.b, limit=3),
    ((0, 2), (0, 1)),
    ((0, 9), (0, 1, 2)),
    ((-1, 1), (-1, 0)),
    ((2, 2), ()),
    ((3, 1), ()),
    ((MOST - 1, MOST), (MOST - 1,)),
    ((LEAST, MOST), (LEAST, LEAST + 1, LEAST + 2)),
    ((None, 2), None),
    ((0, None), None),
)
table("range", int, lambda x: F.count(F.range(0, x, limit=1000)), (10**18, 1000), (7, 7), (-7, 0))
table("range", int, lambda x: F.range(0, x, limit=0), (5, ()))
table("map", list[N], lambda x: F.map(x, lambda v: v * 2), ((1, 2), (2, 4)), ((), ()), ((None, MOST), (None, None)))
table("map", {"l": list[int], "k": int}, lambda r: F.map(r.l, lambda v: (v, r.k)), (((1, 2), 9), ((1, 9), (2, 9))))
table(
    "map",
    list[list[int]],
    lambda x: F.map(x, lambda v: F.map(v, lambda w: w + F.count(v))),
    (((1, 2), (), (3,)), ((3, 4), (), (4,))),
)
table("flatten", list[list[N]], lambda x: F.flatten(x), (((1, 2), (), (None,)), (1, 2, None)), ((), ()))
table(
    "flatten",
    list[int],
    lambda x: F.flatten(F.map(x, lambda v: F.range(0, v, limit=9))),
    ((2, 0, -1, 3), (0, 1, 0, 1, 2)),
)
table("flatten", list[N], lambda x: F.flatten(F.map(x, lambda v: F.range(0, v, limit=9))), ((None, 2), (0, 1)))
table(
    "flatten",
    int,
    lambda x: F.count(F.flatten(F.map(F.range(0, x, limit=2000), lambda i: F.range(0, x, limit=1000)))),
    (2000, 1_000_000),
    (3, 9),
)
table("collect", list[N], lambda x: F.collect(x), ((3, 1, None, 1), (None, 1, 1, 3)), ((), ()))
table("collect", list[int], lambda x: F.collect(x, lambda v: v % 3), ((5, 3, 1), (0, 1, 2)))
table("collect", list[S], lambda x: F.collect(x), ((FACE, "\uffff", "a", ""), ("", "a", "\uffff", FACE)))
table("collect", list[list[int]], lambda x: F.collect(x), (((2,), (1, 5), (1,), ()), ((), (1,), (1, 5), (2,))))
table(
    "collect",
    list[tuple[N, str]],
    lambda x: F.collect(x),
    (((2, "a"), (None, "z"), (1, "b"), (1, "a")), ((None, "z"), (1, "a"), (1, "b"), (2, "a"))),
)
table("sort", list[R], lambda x: F.sort(x), ((2.5, None, -1.0), (None, -1.0, 2.5)))
table("sort", list[bool], lambda x: F.sort(x), ((True, False, True), (False, True, True)))
table(
    "sum",
    list[N],
    lambda x: F.sum(x),
    ((1, 2, 3), 6),
    ((), 0),
    ((None, None), 0),
    ((1, None), 1),
    ((MOST, 1), None),
    ((MOST, 1, -1), MOST),  # the exact total fits, in whatever order
    ((LEAST, -1, 5), LEAST + 4),
)
table(
    "sum",
    list[R],
    lambda x: F.sum(x),
    ((0.5, 0.25), 0.75),
    ((), 0.0),
    ((None,), 0.0),
    ((0.1,) * 10, 1.0),
    ((1e16, 1.0, -1e16), 1.0),
    ((1e308, 1e308, -1e308), 1e308),
    ((1e308, 1e308), None),
    ((-1e308, -1e308), None),
    ((HUGE, 1e291), HUGE),
    ((1.0, 1e100, 1.0, -1e100), 2.0),
    ((TINY, TINY), 1e-323),
    ((0.5, None, 0.5), 1.0),
)
table("sum", list[float], lambda x: F.sum([F.sum(x), 1e16, 1.0, -1e16]), ((), 1.0))
table("sum", list[int], lambda x: F.sum(x, lambda v: v * 0.1), ((1, 2), 0.30000000000000004), ((), 0.0))
table("sum", list[int], lambda x: F.sum(F.map(x, lambda v: F.where(v > 1, v, None))), ((1, 2, 3), 5))
table("min", list[N], lambda x: F.min(x), ((3, 1, 2), 1), ((None, 2), 2), ((), None), ((None,), None))
table("max", list[N], lambda x: F.max(x), ((3, 1, 2), 3), ((None, 2), 2), ((), None))
table("min", list[S], lambda x: F.min(x), (("b", "a"), "a"), ((FACE, "\uffff"), "\uffff"))
table("max", list[bool], lambda x: F.max(x), ((False, True), True), ((False,), False))
table("max", list[int], lambda x: F.max(x, lambda v: -v), ((3, 1, 2), -1), ((), None))
table("min", INTS, lambda r: F.min(r.a, r.b), ((1, 2), 1), ((2, 1), 1), ((None, 1), None), ((1, None), None))
table("max", MIXED, lambda r: F.max(r.i, r.f), ((1, 0.5), 1.0), ((1, 1.5), 1.5), ((None, 1.5), None))
table("max", TRIPLE, lambda r: F.max(r.a, r.b, r.c), ((1, 3, 2), 3), ((1, None, 2), None))
table(
    "subsets",
    list[int],
    lambda x: F.subsets(F.first(x, 9), 2),
    ((1, 2, 3), ((1, 2), (1, 3), (2, 3))),
    ((7, 7), ((7, 7),)),
    ((3, 1), ((3, 1),)),
    ((1,), ()),
    ((), ()),
)
table("subsets", list[S], lambda x: F.subsets(x, 1), (("a", None), (("a",), (None,))))
table(
    "subsets",
    list[int],
    lambda x: F.subsets(F.first(x, 9), 3),
    ((1, 2, 3, 4), ((1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4))),
)
table("subsets", list[int], lambda x: F.count(F.subsets(F.sort(F.first(x, 20)), 3)), (tuple(range(20)), 1140))
table("subsets", int, lambda x: (F.subsets([1, 2, 3], 1), F.element([1, 2, 3], x)), (2, (((1,), (2,), (3,)), 3)))

table("subsets", list[int] | None, lambda x: F.subsets(F.sort(x), 1), (None, None), ((2, 1), ((1,), (2,))))
table("filter", list[int | None], lambda x: F.filter(x, lambda v: v > 1), ((1, None, 3, 2), (3, 2)), ((), ()))
table("any", list[int | None], lambda x: F.any(x, lambda v: v > 1), ((1, None), False), ((1, 2), True), ((), False))
table("all", list[int | None], lambda x: F.all(x, lambda v: v > 1), ((2, None), False), ((2, 3), True), ((), True))
table("pairwise", list[int], lambda x: F.pairwise(x), ((3, 1, 2), ((3, 1), (1, 2))), ((1,), ()), ((), ()))
table("sort_by", list[int], lambda x: F.sort_by(x, lambda v: v % 3), ((5, 3, 1, 2), (3, 1, 2, 5)), ((), ()))
table("first", list[int], lambda x: F.first(x, 2), ((1, 2, 3), (1, 2)), ((1, 2), (1, 2)), ((1,), (1,)), ((), ()))
table("first", S, lambda x: F.first(F.split(x, ","), 2), ("a,b,c", ("a", "b")), ("", ("",)), (None, None))
table("first", list[list[int]], lambda x: F.first(F.map(x, lambda v: F.first(v, 1)), 1), (((1, 2), (3,)), ((1,),)))

# --- numbers to buckets -----------------------------------------------------------------------------------------------

table(
    "bucket",
    INTS,
    lambda r: F.bucket(r.a, r.b),
    ((7, 5), 1),
    ((-1, 5), -1),
    ((-5, 5), -1),
    ((-6, 5), -2),
    ((7, -5), -2),
    ((7, 0), None),
    ((None, 5), None),
)
table(
    "bucket",
    R,
    lambda x: F.bucket(x, 0.5),
    (1.2, 2),
    (-0.1, -1),
    (-0.5, -1),
    (0.0, 0),
    (1e300, None),
    (HUGE, None),
    (None, None),
)
table("bucket", N, lambda x: F.bucket(x, 0.5), (3, 6), (-3, -6), (None, None))
table("bucket", R, lambda x: F.bucket(x, 0), (1.0, None))
table(
    "floor",
    R,
    lambda x: F.floor(x),
    (2.9, 2),
    (-2.1, -3),
    (-2.0, -2),
    (-0.0, 0),
    (9.3e18, None),
    (-9223372036854775808.0, LEAST),
    (None, None),
)

# --- dates, timestamps, times, durations ------------------------------------------------------------------------------

D, T, C, L = date | None, datetime | None, time | None, timedelta | None
LEAP, EVE, FIRST, LAST = date(2024, 2, 29), date(1969, 12, 31), date.min, date.max
NOON = datetime(2024, 2, 29, 12, 30, 1, 5)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999999)
DAYS = {"a": D, "b": D}
MOMENTS = {"a": T, "b": T}
LENGTHS = {"a": L, "b": L}

table("year", D, lambda x: F.year(x), (LEAP, 2024), (EVE, 1969), (FIRST, 1), (LAST, 9999), (None, None))
table("year", T, lambda x: F.year(x), (NOON, 2024), (BEFORE, 1969), (datetime.min, 1), (datetime.max, 9999))
table("quarter", D, lambda x: F.quarter(x), (LEAP, 1), (date(2023, 4, 1), 2), (date(2023, 9, 30), 3), (LAST, 4))
table("month", D, lambda x: F.month(x), (LEAP, 2), (date(1900, 3, 1), 3), (FIRST, 1), (LAST, 12), (None, None))
table("month", T, lambda x: F.month(x), (BEFORE, 12), (datetime(1970, 1, 1), 1))
table(
    "day", D, lambda x: F.day(x), (LEAP, 29), (date(1900, 2, 28), 28), (date(2000, 2, 29), 29), (FIRST, 1), (LAST, 31)
)
table("weekday", D, lambda x: F.weekday(x), (LEAP, 3), (EVE, 2), (FIRST, 0), (LAST, 4), (None, None))
table(
    "week",
    D,
    lambda x: F.week(x),
    (LEAP, 9),
    (date(2021, 1, 3), 53),
    (date(2021, 1, 4), 1),
    (date(2018, 12, 31), 1),
    (FIRST, 1),
    (LAST, 52),
)
table("day_of_year", D, lambda x: F.day_of_year(x), (LEAP, 60), (date(2024, 12, 31), 366), (date(1900, 12, 31), 365))
table("hour", T, lambda x: F.hour(x), (NOON, 12), (BEFORE, 23), (datetime.min, 0), (None, None))
table("hour", C, lambda x: F.hour(x), (time(23, 59), 23), (time(0), 0))
table("minute", T, lambda x: F.minute(x), (NOON, 30), (BEFORE, 59))
table("second", T, lambda x: F.second(x), (NOON, 1), (BEFORE, 59), (datetime.max, 59))
table("microsecond", C, lambda x: F.microsecond(x), (time(1, 2, 3, 4), 4), (time.max, 999999), (None, None))
table("microsecond", T, lambda x: F.microsecond(x), (BEFORE, 999999), (datetime.min, 0))
table(
    "truncate",
    D,
    lambda x: tuple(F.truncate(x, unit) for unit in ("year", "quarter", "month", "week", "day")),
    (LEAP, (date(2024, 1, 1), date(2024, 1, 1), date(2024, 2, 1), date(2024, 2, 26), LEAP)),
    (EVE, (date(1969, 1, 1), date(1969, 10, 1), date(1969, 12, 1), date(1969, 12, 29), EVE)),
    (FIRST, (FIRST,) * 5),
    (LAST, (date(9999, 1, 1), date(9999, 10, 1), date(9999, 12, 1), date(9999, 12, 27), LAST)),
    (None, (None,) * 5),
)
table(
    "truncate",
    T,
    lambda x: tuple(F.truncate(x, unit) for unit in ("month", "day", "hour", "second", "millisecond", "microsecond")),
    (
        BEFORE,
        (
            datetime(1969, 12, 1),
            datetime(1969, 12, 31),
            datetime(1969, 12, 31, 23),
            datetime(1969, 12, 31, 23, 59, 59),
            datetime(1969, 12, 31, 23, 59, 59, 999000),
            BEFORE,
        ),
    ),
)
table("truncate", C, lambda x: F.truncate(x, "minute"), (time(1, 2, 3, 4), time(1, 2)), (time.max, time(23, 59)))
table(
    "offset",
    {"a": D, "n": N},
    lambda r: tuple(F.offset(r.a, r.n, unit) for unit in ("year", "quarter", "month", "week", "day")),
    ((LEAP, 1), (date(2025, 2, 28), date(2024, 5, 29), date(2024, 3, 29), date(2024, 3, 7), date(2024, 3, 1))),
    (
        (date(2024, 1, 31), -2),
        (date(2022, 1, 31), date(2023, 7, 31), date(2023, 11, 30), date(2024, 1, 17), date(2024, 1, 29)),
    ),
    ((LAST, 1), (None,) * 5),
    ((FIRST, -1), (None,) * 5),
    ((LEAP, MOST), (None,) * 5),
    ((LEAP, LEAST), (None,) * 5),
    ((LEAP, None), (None,) * 5),
    ((None, 1), (None,) * 5),
)
table(
    "offset",
    T,
    lambda x: (F.offset(x, 1, "month"), F.offset(x, -25, "hour"), F.offset(x, 1, "microsecond")),
    (NOON, (NOON.replace(month=3), datetime(2024, 2, 28, 11, 30, 1, 5), NOON.replace(microsecond=6))),
    (datetime.max, (None, datetime(9999, 12, 30, 22, 59, 59, 999999), None)),
)
table(
    "moments",
    DAYS,
    lambda r: (r.a - r.b, r.a < r.b, r.a == r.b, F.max(r.a, r.b)),
    ((LEAP, EVE), (LEAP - EVE, False, False, LEAP)),
    ((FIRST, LAST), (FIRST - LAST, True, False, LAST)),
    ((LEAP, None), (None, None, False, None)),
    ((None, None), (None, None, True, None)),
)
table(
    "moments",
    MOMENTS,
    lambda r: (r.a - r.b, (r.a - r.b) // timedelta(hours=1), (r.a - r.b) % timedelta(hours=1), r.a > r.b),
    ((NOON, BEFORE), (NOON - BEFORE, 474780, timedelta(minutes=30, seconds=1, microseconds=6), True)),
    ((datetime.min, datetime.max), (datetime.min - datetime.max, -87649416, timedelta(microseconds=1), False)),
)
table(
    "moments",
    {"a": C, "b": C},
    lambda r: r.a - r.b,
    ((time(1), time(2, 0, 0, 1)), timedelta(hours=-1, microseconds=-1)),
)
table(
    "moments",
    {"a": D, "b": L},
    lambda r: (r.a + r.b, r.b + r.a, r.a - r.b),
    ((LEAP, timedelta(days=1, hours=23)), (date(2024, 3, 1), date(2024, 3, 1), date(2024, 2, 28))),
    ((LEAP, timedelta(hours=-1)), (date(2024, 2, 28), date(2024, 2, 28), date(2024, 3, 1))),
    ((LAST, timedelta(days=1)), (None, None, date(9999, 12, 30))),
    ((FIRST, timedelta(days=1)), (date(1, 1, 2), date(1, 1, 2), None)),
    ((LEAP, None), (None,) * 3),
)
table(
    "moments",
    {"a": T, "b": L},
    lambda r: (r.a + r.b, r.a - r.b),
    ((NOON, timedelta(days=-1, microseconds=-5)), (datetime(2024, 2, 28, 12, 30, 1), NOON + timedelta(1, 0, 5))),
    ((datetime.max, timedelta(microseconds=1)), (None, datetime.max - timedelta(microseconds=1))),
    ((datetime.min, timedelta(microseconds=MOST)), (None, None)),
)
table(
    "moments",
    LENGTHS,
    lambda r: (r.a + r.b, r.a - r.b, -r.a, abs(r.a), r.a * 3, 2 * r.b, r.a // 2, F.sum([r.a, r.b])),
    (
        (timedelta(hours=-3), timedelta(microseconds=5)),
        (
            timedelta(hours=-3, microseconds=5),
            timedelta(hours=-3, microseconds=-5),
            timedelta(hours=3),
            timedelta(hours=3),
            timedelta(hours=-9),
            timedelta(microseconds=10),
            timedelta(hours=-1.5),
            timedelta(hours=-3, microseconds=5),
        ),
    ),
    (
        (timedelta(microseconds=LEAST), timedelta(microseconds=-1)),
        (
            None,
            timedelta(microseconds=LEAST + 1),
            None,
            None,
            None,
            timedelta(microseconds=-2),
            timedelta(microseconds=LEAST // 2),
            None,
        ),
    ),
    ((None, timedelta(1)), (None, None, None, None, None, timedelta(2), None, timedelta(1))),
)
table(
    "moments", D, lambda x: (x >= LEAP, x != FIRST), (LEAP, (True, True)), (FIRST, (False, False)), (None, (None, True))
)
table("moments", list[D], lambda x: (F.min(x), F.sort(x), F.count(x)), ((LEAP, None, EVE), (EVE, (None, EVE, LEAP), 3)))
table("moments", DAYS, lambda r: F.sort(r), ((LEAP, EVE), (EVE, LEAP)), ((LEAP, None), (None, LEAP)))
table(
    "to_date",
    S,
    lambda x: F.cast(x, date),
    ("2024-02-29", LEAP),
    ("2023-02-29", None),
    ("0001-01-01", FIRST),
    ("9999-12-31", LAST),
    ("0000-12-31", None),
    ("2024-2-29", None),
    ("2024-02-29 ", None),
    ("+024-02-29", None),
    ("2024/02/29", None),
    ("2024-13-01", None),
    ("", None),
    (None, None),
)
table(
    "to_date", N, lambda x: F.cast(x, date), (0, date(1970, 1, 1)), (-719162, FIRST), (-719163, None), (2932897, None)
)
table("to_date", T, lambda x: F.cast(x, date), (BEFORE, EVE), (datetime.max, LAST), (None, None))
table("to_timestamp", D, lambda x: F.cast(x, datetime), (EVE, datetime(1969, 12, 31)), (LAST, datetime(9999, 12, 31)))
table("to_timestamp", N, lambda x: F.cast(x, datetime), (-1, BEFORE), (MOST, None), (LEAST, None), (None, None))
table("to_time", T, lambda x: F.cast(x, time), (NOON, time(12, 30, 1, 5)), (BEFORE, time.max), (None, None))
table("to_time", N, lambda x: F.cast(x, time), (0, time(0)), (86399999999, time.max), (86400000000, None), (-1, None))
table(
    "to_time",
    S,
    lambda x: F.cast(x, time),
    ("12:30", time(12, 30)),
    ("12:30:01", time(12, 30, 1)),
    ("12:30:01.5", time(12, 30, 1, 500_000)),
    ("23:59:59.999999", time.max),
    ("24:00:00", None),
    ("12:60", None),
    ("12:30:00.", None),
    ("12:30:1", None),
    ("12:30:00.1234567", None),
    ("12:30:00.12345 ", None),
    ("12-30", None),
    ("+1:30", None),
    (" 2:30", None),
    (LONG, None),
    ("", None),
    (None, None),
)
table(
    "to_timestamp",
    S,
    lambda x: F.cast(x, datetime),
    ("2024-02-29T12:30", datetime(2024, 2, 29, 12, 30)),
    ("2024-02-29 12:30:01.000005", NOON),
    ("2024-02-29T12:30:01.000005Z", NOON),
    ("2024-02-29T13:30:01.000005+01:00", NOON),
    ("2024-02-29T00:00:01.000005-12:30", NOON),
    ("2024-02-29T12:30:01.5", datetime(2024, 2, 29, 12, 30, 1, 500_000)),
    ("2023-12-31T23:59:59Z", datetime(2023, 12, 31, 23, 59, 59)),
    ("0001-01-01T00:00", datetime(1, 1, 1)),
    ("9999-12-31T23:59:59.999999", datetime.max),
    ("0001-01-01T00:00+00:01", None),
    ("9999-12-31T23:59-00:01", None),
    ("0000-12-31T23:59-00:01", None),
    ("2024-02-29T12:30+24:00", None),
    ("2024-02-29T12:30+00:60", None),
    ("2024-02-29T12:30+1:00", None),
    ("2024-02-29T12:30+-1:00", None),
    ("2024-02-29T12:30ZZ", None),
    ("2024-02-29T12:30Z+01:00", None),
    ("2024-02-29T12:30+01:00Z", None),
    ("2024-02-29T24:00", None),
    ("2024-02-29T12:60", None),
    ("2024-02-29T12:30:60", None),
    ("2024-02-29T12:30:", None),
    ("2024-02-29T12:30:1", None),
    ("2024-02-29T12:30:01.", None),
    ("2024-02-29T12:30:01.0000005", None),
    ("2024-02-29T12:+0", None),
    ("2024-02-29T-1:30", None),
    ("2024-02-29T12:30:01.+5", None),
    ("2024-02-30T12:30", None),
    ("2023-02-29T12:30", None),
    ("1900-02-29T12:30", None),
    ("2000-02-29T12:30", datetime(2000, 2, 29, 12, 30)),
    ("2024-04-31T12:30", None),
    ("2024-08-31T12:30", datetime(2024, 8, 31, 12, 30)),
    ("2024-13-01T12:30", None),
    ("2024-00-01T12:30", None),
    ("2024-01-00T12:30", None),
    ("2024-02-29x12:30", None),
    ("2024-02-29", None),
    (" 2024-02-29T12:30", None),
    ("2024-02-29T12:30 ", None),
    (LONG, None),
    ("Z", None),
    ("", None),
    (None, None),
)
table("to_duration", N, lambda x: F.cast(x, timedelta), (-1, timedelta(microseconds=-1)), (None, None))
table(
    "to_duration",
    S,
    lambda x: F.cast(x, timedelta),
    ("P1DT2H30M", timedelta(days=1, hours=2, minutes=30)),
    ("-P1DT2H30M4.5S", -timedelta(days=1, hours=2, minutes=30, seconds=4.5)),
    ("PT0.000001S", timedelta(microseconds=1)),
    ("P7D", timedelta(days=7)),
    ("P7DT", timedelta(days=7)),
    ("PT90M", timedelta(minutes=90)),
    ("PT36H1S", timedelta(hours=36, seconds=1)),
    ("-P0D", timedelta(0)),
    ("-PT9223372036854.775808S", timedelta(microseconds=LEAST)),
    ("PT9223372036854.775807S", timedelta(microseconds=MOST)),
    ("PT9223372036854.775808S", None),
    ("P106751991DT15449.999999S", None),
    ("P9999999999999999999D", None),
    ("P", None),
    ("PT", None),
    ("-", None),
    ("1D", None),
    ("+P1D", None),
    ("P+1D", None),
    ("P-1D", None),
    ("P1", None),
    ("P1D2", None),
    ("PD", None),
    ("P1DT2", None),
    ("PT1M2H", None),
    ("PT1H1H", None),
    ("PT1.5H", None),
    ("PT1.S", None),
    ("PT.5S", None),
    ("PT1.0000001S", None),
    ("PT1.+5S", None),
    ("PT1S1D", None),
    ("P1DT1HT1M", None),
    ("p1d", None),
    ("P1W", None),
    ("7 days", None),
    (LONG, None),
    ("", None),
    (None, None),
)
table("to_duration", C, lambda x: F.cast(x, timedelta), (time(1), timedelta(hours=1)))
table("to_int", D, lambda x: F.cast(x, int), (LEAP, 19782), (FIRST, -719162), (None, None))
table("to_int", T, lambda x: F.cast(x, int), (BEFORE, -1))
table("to_int", L, lambda x: F.cast(x, int), (timedelta(days=-1), -86400000000))
table("to_str", D, lambda x: F.cast(x, str), (LEAP, "2024-02-29"), (FIRST, "0001-01-01"), (None, None))
table(
    "to_str",
    T,
    lambda x: F.cast(x, str),
    (NOON, "2024-02-29T12:30:01.000005"),
    (datetime(1, 1, 1), "0001-01-01T00:00:00"),
    (BEFORE, "1969-12-31T23:59:59.999999"),
    (None, None),
)
table("to_str", C, lambda x: F.cast(x, str), (time(1, 2), "01:02:00"), (time.max, "23:59:59.999999"))
table("constants", int, lambda x: (LEAP, NOON, time(1), timedelta(1)), (0, (LEAP, NOON, time(1), timedelta(1))))

# --- decimals ---------------------------------------------------------------------------------------------------------

P = wp.decimal(2)
PRICES = {"a": P | None, "b": P | None}
FINE = {"a": P | None, "b": wp.decimal(4) | None}
TOP, BOTTOM = Decimal(MOST).scaleb(-2), Decimal(LEAST).scaleb(-2)


def d(text: str) -> Decimal:
    return Decimal(text)


table(
    "decimals",
    PRICES,
    lambda r: (r.a + r.b, r.a - r.b, r.a * r.b, r.a // r.b, r.a % r.b, r.a < r.b, r.a == r.b),
    ((d("1.50"), d("-0.25")), (d("1.25"), d("1.75"), d("-0.3750"), -6, d("0.00"), False, False)),
    ((d("-1.50"), d("0.40")), (d("-1.10"), d("-1.90"), d("-0.6000"), -4, d("0.10"), True, False)),
    ((TOP, d("0.01")), (None, TOP - d("0.01"), TOP.scaleb(-2), MOST, d("0.00"), False, False)),
    ((BOTTOM, d("-1.00")), (None, BOTTOM + 1, None, -(LEAST // 100) - 1, d("-0.08"), True, False)),
    ((d("1.00"), d("0.00")), (d("1.00"), d("1.00"), d("0.0000"), None, None, False, False)),
    ((None, d("1.00")), (None, None, None, None, None, None, False)),
    ((None, None), (None, None, None, None, None, None, True)),
)
table(
    "decimals",
    FINE,
    lambda r: (r.a < r.b, r.b < r.a, r.a <= r.b, r.a == r.b, r.a != r.b, r.a + r.b, F.max(r.a, r.b)),
    ((d("1.00"), d("1.0000")), (False, False, True, True, False, d("2.0000"), d("1.0000"))),
    ((d("1.00"), d("1.0001")), (True, False, True, False, True, d("2.0001"), d("1.0001"))),
    ((d("-1.00"), d("-1.0001")), (False, True, False, False, True, d("-2.0001"), d("-1.0000"))),
    ((TOP, d("900.0000")), (False, True, False, False, True, None, None)),
    ((BOTTOM, d("900.0000")), (True, False, True, False, True, None, None)),
    ((None, d("1.0000")), (None, None, None, False, True, None, None)),
    ((None, None), (None, None, None, True, False, None, None)),
)
table(
    "decimals",
    P | None,
    lambda x: (-x, abs(x), x + 1, 2 * x, x > 3, x == d("1.5"), F.where(x > 0, x, 0), F.bucket(x, d("0.5"))),
    (d("1.50"), (d("-1.50"), d("1.50"), d("2.50"), d("3.00"), False, True, d("1.50"), 3)),
    (d("-3.01"), (d("3.01"), d("3.01"), d("-2.01"), d("-6.02"), False, False, d("0.00"), -7)),
    (BOTTOM, (None, None, BOTTOM + 1, None, False, False, d("0.00"), LEAST // 50)),
    (None, (None, None, None, None, None, False, d("0.00"), None)),
)
table(
    "decimals", list[P | None], lambda x: (F.sum(x), F.max(x)), ((d("0.10"), None, d("0.20")), (d("0.30"), d("0.20")))
)
table(
    "decimals",
    list[P],
    lambda x: (F.sum(x), F.sort(x)),
    ((TOP, d("0.01")), (None, (d("0.01"), TOP))),
    ((), (d("0.00"), ())),
)
table(
    "quotient",
    PRICES,
    lambda r: (F.quotient(r.a, r.b, 2), F.quotient(r.a, r.b, 0), F.quotient(r.a, 8, 4), F.quotient(1, r.b, 1)),
    ((d("1.00"), d("8.00")), (d("0.12"), d("0"), d("0.1250"), d("0.1"))),
    ((d("3.00"), d("8.00")), (d("0.38"), d("0"), d("0.3750"), d("0.1"))),
    ((d("-1.00"), d("8.00")), (d("-0.12"), d("0"), d("-0.1250"), d("0.1"))),
    ((d("1.00"), d("-0.40")), (d("-2.50"), d("-2"), d("0.1250"), d("-2.5"))),
    ((d("7.00"), d("2.00")), (d("3.50"), d("4"), d("0.8750"), d("0.5"))),
    ((d("1.00"), d("0.00")), (None, None, d("0.1250"), None)),
    ((BOTTOM, d("-0.01")), (None, None, None, d("-100.0"))),
    ((None, d("1.00")), (None, None, None, d("1.0"))),
)
table(
    "to_decimal",
    R,
    lambda x: (F.cast(x, wp.decimal(2)), F.cast(x, wp.decimal(0)), F.cast(x, wp.decimal(18))),
    (0.125, (d("0.12"), d("0"), d("0.125000000000000000"))),
    (0.375, (d("0.38"), d("0"), d("0.375000000000000000"))),
    (1.005, (d("1.00"), d("1"), d("1.004999999999999893"))),
    (-2.5, (d("-2.50"), d("-2"), d("-2.500000000000000000"))),
    (-3.5, (d("-3.50"), d("-4"), d("-3.500000000000000000"))),
    (0.1, (d("0.10"), d("0"), d("0.100000000000000006"))),
    (1e18, (None, d("1000000000000000000"), None)),
    (9223372036854774784.0, (None, d("9223372036854774784"), None)),
    (90071992547409.93, (d("90071992547409.94"), d("90071992547410"), None)),
    (TINY, (d("0.00"), d("0"), d("0E-18"))),
    (HUGE, (None, None, None)),
    (None, (None, None, None)),
)
table(
    "to_decimal",
    wp.decimal(3) | None,
    lambda x: (F.cast(x, wp.decimal(2)), F.cast(x, wp.decimal(5)), F.cast(x, wp.decimal(0))),
    (d("0.125"), (d("0.12"), d("0.12500"), d("0"))),
    (d("-0.135"), (d("-0.14"), d("-0.13500"), d("0"))),
    (d("1.500"), (d("1.50"), d("1.50000"), d("2"))),
    (Decimal(MOST).scaleb(-3), (Decimal(MOST // 10 + 1).scaleb(-2), None, Decimal(MOST // 1000 + 1))),
    (None, (None, None, None)),
)
table("to_decimal", N, lambda x: F.cast(x, P), (3, d("3.00")), (MOST, None), (None, None))
table(
    "to_decimal",
    S,
    lambda x: F.cast(x, P),
    ("1.5", d("1.50")),
    ("-0.05", d("-0.05")),
    ("+007.50", d("7.50")),
    ("-0", d("0.00")),
    ("92233720368547758.07", Decimal(MOST).scaleb(-2)),
    ("-92233720368547758.08", Decimal(LEAST).scaleb(-2)),
    ("92233720368547758.08", None),
    ("1.505", None),
    ("1.500", None),
    (".5", None),
    ("5.", None),
    ("-+5", None),
    ("1.+5", None),
    ("1.2.3", None),
    ("1e5", None),
    ("1_0", None),
    ("\u0663", None),
    ("", None),
    (None, None),
)
table("to_decimal", S, lambda x: F.cast(x, wp.decimal(0)), (str(LEAST), d(str(LEAST))), ("5.0", None), ("5.", None))
table(
    "to_int",
    P | None,
    lambda x: (F.cast(x, int), F.floor(x)),
    (d("1.99"), (1, 1)),
    (d("-1.99"), (-1, -2)),
    (d("-2.00"), (-2, -2)),
    (TOP, (MOST // 100, MOST // 100)),
    (BOTTOM, (-(-LEAST // 100), LEAST // 100)),
    (None, (None, None)),
)
table(
    "to_float",
    P | None,
    lambda x: F.cast(x, float),
    (d("0.10"), 0.1),
    (d("-1.05"), -1.05),
    (TOP, float(TOP)),
    (BOTTOM, float(BOTTOM)),
    (d("90071992547409.93"), 90071992547409.93),
    (d("90071992547409.94"), 90071992547409.94),
    (d("12345678901234567.89"), 12345678901234567.89),
    (None, None),
)
table(
    "to_float",
    wp.decimal(18),
    lambda x: F.cast(x, float),
    (d("1").scaleb(-18) * 3, 3e-18),
    (Decimal(MOST).scaleb(-18), float(Decimal(MOST).scaleb(-18))),
)
table(
    "to_str",
    P | None,
    lambda x: F.cast(x, str),
    (d("0.05"), "0.05"),
    (d("-0.05"), "-0.05"),
    (d("12.00"), "12.00"),
    (TOP, str(TOP)),
    (BOTTOM, str(BOTTOM)),
    (None, None),
)
table("to_str", wp.decimal(0), lambda x: F.cast(x, str), (d("-7"), "-7"))
table("constants", int, lambda x: (d("1.50"), -d("0.1"), d("1E+2")), (0, (d("1.50"), d("-0.1"), d("100"))))

# --- categories -------------------------------------------------------------------------------------------------------

COLOUR = wp.category("red", "green")
table(
    "categories",
    {"a": COLOUR | None, "b": COLOUR},
    lambda r: (r.a == r.b, r.a == "red", r.a != "green", F.cast(r.a, str), F.where(r.a == "red", r.b, "green"), r.b),
    (("red", "green"), (False, True, True, "red", "green", "green")),
    (("green", "red"), (False, False, False, "green", "green", "red")),
    ((None, "red"), (False, False, True, None, "green", "red")),
)
table("categories", list[COLOUR], lambda x: (F.sort(x), F.count(x)), (("red", "green"), (("green", "red"), 2)))
table("categories", {"a": COLOUR, "b": COLOUR}, lambda r: F.sort(r), (("red", "green"), ("green", "red")))
table("to_category", S, lambda x: F.cast(x, COLOUR), ("red", "red"), ("blue", None), ("", None), (None, None))
table("to_category", COLOUR, lambda x: F.cast(x, wp.category("red", "blue", "white")), ("red", "red"), ("green", None))

WEIGHTED: list[Case] = []
"""Functions for SelectMany: the output maps each element to its weight, for a record of weight 1."""

for i, (schema, function, given, output) in enumerate(
    (
        (int, lambda x: [F.weighted("a", 0.5), F.weighted("b", 0.25)], 0, {"a": 0.5, "b": 0.25}),
        (int, lambda x: [F.weighted("a", x), F.weighted("b", -x)], 2, {"a": 0.5, "b": -0.5}),
        (int, lambda x: [F.weighted(x, 1 / x), F.weighted(-1, 0.5)], 0, {-1: 0.5}),
        (int, lambda x: [x, x, x + 1], 1, {1: 2 / 3, 2: 1 / 3}),
        (list[int], lambda x: F.map(x, lambda v: F.weighted(v % 2, 0.25)), (1, 2, 3), {1: 0.5, 0: 0.25}),
        (int, lambda x: F.where(x > 0, [F.weighted(x, 1.0)], None), -1, {}),
        (int, lambda x: [F.weighted(1, 1e308), F.weighted(2, 1e308)], 0, {1: 0.5, 2: 0.5}),
        (list[int], lambda x: F.subsets(x, 2), (1, 2, 3), {(1, 2): 1 / 3, (1, 3): 1 / 3, (2, 3): 1 / 3}),
    )
):
    WEIGHTED.append(Case("weighted", i, schema, function, given, output))
