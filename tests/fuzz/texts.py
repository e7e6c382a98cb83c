"""Text programs to try: mutated examples, chains of operators with functions of every kind, and the bare grammar."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from wpinq.expr.catalogue import FUNCTIONS
from wpinq.language.chains import SINKS
from wpinq.language.syntax import TABLE
from wpinq.plan.operator import REGISTRY

EXAMPLES = Path(__file__).parents[2] / "examples"

HEAD = """source numbers: int;
source edges(src: int, dst: int) with unit = "one edge", cap = 100, facts = [unit_weights];
source rows(text: str, items: list[str], numbers: list[int, 4], x: float?, day: date, price: decimal(2),
    kind: category("a", "b"), inner: (a: int?, b: bool)) with records_at_most = 50, keys_at_most = [(text, 3)];
source visits(who: str, at: timestamp) with person = "customer", at_most = 3, nested = true, account = "customers";
parameter e = 0.1;
function f(x, y) => new { a = x.src, b = y.dst };
"""

BODY = """var p = edges.Join(edges, x => x.dst, y => y.src, (x, y) => new f(x, y)).Where(p => p.a != p.b && p.a > -1);
var m = p.Select(x => x.a > 3 ? "big" : "small").NoisyCount(e, over: ["big", "small"]);
var s = numbers.NoisySum(e / 2, x => absolute(x), lower: 0, upper: 10);
var g = rows.GroupBy(r => r.kind, g => count(g)).Shave(0.5, limit: 3).Select(p => p.index)
    .NoisyCount(e, over: range(0, 9));
var h = rows.SelectMany(r => map(split(r.text, ","), w => weighted(lower(w), 0.5)), limit: 7);
var t = h.Partition(w => w, part: "a").NoisyCount(1);
var d = rows.Where(r => r.day > date("2020-02-29") || r.price < decimal("1.50")).Select(r => year(r.day));
var k = numbers.Select(x => element([1, 2, 3], x % 3)).Median(e, over: [1, 2, 3]);
var u = edges.Union(edges.Select(x => { src = x.dst, dst = x.src })).Intersect(edges).Except(edges);
"""

SEEDS = [HEAD + BODY, *(path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.wpq")))]
_TOKEN = re.compile(
    r'\s+|//[^\n]*|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|=>|&&|\|\||[=!<>]=|.', re.S
)
_TOKENIZED = [_TOKEN.findall(text) for text in SEEDS]

NAMES = sorted(
    {*REGISTRY, *SINKS, *FUNCTIONS, "ReadAs", "By", "Agg", "Marginals", "product", "range"}
    | {"numbers", "edges", "rows", "visits", "src", "dst", "text", "items", "x", "p", "q", "over", "limit", "part", "g"}
    | {"int", "str", "float", "bool", "list", "date", "decimal", "category", "lower", "upper", "width", "above"}
)
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "1e-9",
    "1e308",
    "1e-320",
    "9223372036854775807",
    "9223372036854775808",
    "1e9",
]
ODD = [
    "",
    "\0",
    "\ud800",
    "\u202e",
    "\U0001f600",
    "é",
    "e\u0301",
    "\\u0000",
    '"',
    "'",
    ";",
    "--",
    "\n",
    "\u2029",
    "%s",
    "{}",
]
TOKENS = sorted({token for tokens in _TOKENIZED for token in tokens} | {*NAMES, *NUMBERS, *ODD, "null", "true", "var"})


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An example, some of its words removed, doubled, exchanged, or taken from elsewhere."""
    tokens = list(draw(st.sampled_from(_TOKENIZED)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(tokens)))
        match draw(st.integers(0, 4)):
            case 0:
                del tokens[at : at + draw(st.integers(1, 6))]
            case 1:
                tokens.insert(at, draw(st.sampled_from(TOKENS)))
            case 2:
                tokens[at : at + 1] = [draw(st.sampled_from(TOKENS))]
            case 3:
                other, start = draw(st.sampled_from(_TOKENIZED)), draw(st.integers(0, 400))
                tokens[at:at] = other[start : start + draw(st.integers(1, 30))]
            case _:
                tokens[at:at] = tokens[at : at + draw(st.integers(1, 12))] * draw(st.integers(1, 4))
    return "".join(tokens)


_ATOMS = st.sampled_from(
    [
        "x",
        "x.src",
        "x.dst",
        "x.text",
        "x.items",
        "x.numbers",
        "x.x",
        "x.day",
        "x.inner.a",
        "x.key",
        "x.val",
        "x.index",
        "x[0]",
        "x[1]",
        "null",
        "true",
        '""',
        '"a,b"',
        '"\\u0000"',
        "1",
        *NUMBERS,
        "[]",
        "[1, 2]",
        '["a", "b"]',
        "e",
    ]
)
_CALLS = st.sampled_from(sorted(FUNCTIONS))
_INFIX = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", "&&", "||"])
EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, _INFIX, inner),
        st.builds("{}({})".format, _CALLS, inner),
        st.builds("{}({}, {})".format, _CALLS, inner, inner),
        st.builds("{}({}, x => {})".format, _CALLS, inner, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{{ a = {}, b = {} }}".format, inner, inner),
        st.builds("({}, {})".format, inner, inner),
        st.builds("[weighted({}, {})]".format, inner, inner),
        st.builds("-{}".format, inner),
    ),
    max_leaves=8,
)


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Statements that may well be of the language: operators and releases with arguments of the kind that they take."""
    names, lines = ["numbers", "edges", "rows", "visits"], [HEAD]

    def argument(kind: str, name: str) -> str:
        match kind:
            case "query":
                return draw(st.sampled_from(names))
            case "function":
                return f"x => {draw(EXPRESSIONS)}" if draw(st.integers(0, 3)) else f"(x, y) => {draw(EXPRESSIONS)}"
            case "widths" | "epsilon" | "number" | "real" | "limit" | "integer":
                value = draw(st.sampled_from(NUMBERS))
                return value if draw(st.booleans()) else f"{name}: {value}"
            case _:
                given = [
                    "[1, 2]",
                    '["a"]',
                    "range(0, 9)",
                    "product(range(0, 3), range(1, 2))",
                    "digits(3)",
                    draw(_ATOMS),
                ]
                return f"{name}: {draw(st.sampled_from(given))}"

    for number in range(draw(st.integers(1, 4))):
        text = draw(st.sampled_from(names))
        for _ in range(draw(st.integers(0, 4))):
            operator = draw(st.sampled_from(sorted(REGISTRY)))
            wanted: Any = [p for p in REGISTRY[operator].parameters if not p.optional or draw(st.booleans())]
            text += f".{operator}({', '.join(argument(p.kind, p.name) for p in wanted)})"
        if draw(st.booleans()):
            release = draw(st.sampled_from(sorted(SINKS)))
            wanted = [p for p in SINKS[release].parameters if not p.optional or draw(st.booleans())]
            text += f".{release}({', '.join(argument(p.kind, p.name) for p in wanted)})"
        else:
            names.append(f"v{number}")
        lines.append(f"var v{number} = {text};")
    return "\n".join(lines)


def _grammar() -> Any:
    from lark import Lark

    text = resources.files("wpinq.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(f"{text}\nTABLE: /{TABLE}/\n", parser="lalr")


GRAMMATICAL = from_lark(
    _grammar(),
    start="start",
    explicit={
        "NAME": st.sampled_from(NAMES),
        "NUMBER": st.sampled_from([number.lstrip("-") for number in NUMBERS]),
        "STRING": st.sampled_from(['""', '"a"', '"\\u0000"', '"\\ud83d\\ude00"', '"a,b"']),
        "TABLE": st.sampled_from(["[1, 2]", "[-1.5e-3, 1e30]", "[9223372036854775807, 0]"]),
    },
)

TEXTS = st.one_of(mutated(), chains(), chains(), GRAMMATICAL.map(HEAD.__add__), st.text(max_size=60).map(HEAD.__add__))
