"""What programs mean, said a second time by fluent chains, and what errors say."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import LanguageError
from wpinq.expr.types import STR, ListOf
from wpinq.language import Program, parse

HEAD = "source edges(src: int, dst: int);\nsource words: list[str, 9];\nsource maybe(a: int?, b: float, c: str);\n"
edges = wp.source("edges", src=int, dst=int)
words = wp.source("words", ListOf(STR, bound=9))
maybe = wp.source("maybe", a=int | None, b=float, c=str)


def expression(text: str, over: str = "maybe", variable: str = "x") -> Query:
    return parse(f"{HEAD}var q = {over}.Select({variable} => {text});").queries["q"]


SAME = [
    ("x.a + 1 - x.a * 2", lambda x: x.a + 1 - x.a * 2),
    ("(x.a + 1) * -x.a", lambda x: (x.a + 1) * -x.a),
    ("-x.b", lambda x: -x.b),
    ("x.a - -3", lambda x: x.a - -3),
    ("x.a / 20", lambda x: x.a // 20),
    ("x.a / x.b", lambda x: x.a / x.b),
    ("x.a / 2.0", lambda x: x.a / 2.0),
    ("x.a % 7", lambda x: x.a % 7),
    ("x.a - 1 - 2", lambda x: (x.a - 1) - 2),
    ("x.a - (1 - x.a)", lambda x: x.a - (1 - x.a)),
    ('x.a > 1 && x.b < 2.5 || !(x.c == "a")', lambda x: (x.a > 1) & (x.b < 2.5) | ~(x.c == "a")),
    ("x.a >= 1 == (x.b <= 2)", lambda x: (x.a >= 1) == (x.b <= 2)),
    ("x.a != null", lambda x: x.a != None),  # noqa: E711 - as users write it
    ("x.a > 1 ? x.b > 2 ? 1 : 2 : 3", lambda x: F.where(x.a > 1, F.where(x.b > 2, 1, 2), 3)),
    ("new { x.a, d = x.b + 1 }", lambda x: F.record(a=x.a, d=x.b + 1)),
    ("{ x.a, x.c }", lambda x: F.record(a=x.a, c=x.c)),
    ("new { x }", lambda x: F.record(x=x)),
    ("(x.a, (x.b,), true)", lambda x: (x.a, (x.b,), True)),
    ("(x.a, x.b)[1]", lambda x: x.b),
    ("[1, x.a]", lambda x: [1, x.a]),
    ("new int[] { 1, x.a }", lambda x: [1, x.a]),
    ("new[] { x.c }", lambda x: [x.c]),
    ('x.c + "\\u00e9\\n\\""', lambda x: x.c + 'é\n"'),
    ("x.c.Length() + length(x.c)", lambda x: F.length(x.c) + F.length(x.c)),
    ('x.c.StartsWith("a")', lambda x: F.starts_with(x.c, "a")),
    ('x.c.starts_with("a")', lambda x: F.starts_with(x.c, "a")),
    ('x.c.Split(",")[0]', lambda x: F.element(F.split(x.c, ","), 0)),
    ("sort((x.a, 3, 2)).Rotate().Reverse()", lambda x: F.reverse(F.rotate(F.sort((x.a, 3, 2))))),
    ("x.b + 1e3 - x.b * 1.5E-3 / 2e+2", lambda x: x.b + 1e3 - x.b * 1.5e-3 / 2e2),
]


@for_each(("text", "function"), SAME, ids=[text for text, _ in SAME])
def test_expressions_mean_what_traced_lambdas_mean(text: str, function: object) -> None:
    assert expression(text) == maybe.select(function)


def test_nested_lambdas_and_reducers() -> None:
    program = parse(
        HEAD + "var q = edges.GroupBy(e => e.src, l => l.Sum(e => e.dst) + l.Count() + max(l, e => e.dst));\n"
        "var r = edges.GroupBy(e => e.src);\n"
        "var s = words.SelectMany(b => b.Subsets(2));\n"
        "var t = words.Select(b => map(b, w => map(b, v => w + v)));\n"
    )
    assert program["q"] == edges.group_by(
        lambda e: e.src, lambda g: F.sum(g, lambda e: e.dst) + F.count(g) + F.max(g, lambda e: e.dst)
    )
    assert program["r"] == edges.group_by(lambda e: e.src)
    assert program["s"] == words.select_many(lambda b: F.subsets(b, 2))
    assert program["t"] == words.select(lambda b: F.map(b, lambda w: F.map(b, lambda v: w + v)))


def test_lambdas_of_several_parameters_take_the_fields_of_a_record() -> None:
    program = parse(HEAD + "var q = edges.Shave(1.0).Where((e, i) => i == 0).Select((e, i) => e);")
    assert program["q"] == edges.shave(1.0).where(lambda e, i: i == 0).select(lambda e, i: e)


def test_a_sum_of_several_parameters() -> None:
    text = HEAD + "var q = edges.NoisySum(1, (a, b) => a + b, lower: 0, upper: 3);"
    assert parse(text)["q"] == edges.noisy_sum(1, lambda e: e.src + e.dst, 0, 3)


def test_functions_are_written_out_at_each_use() -> None:
    program = parse(
        HEAD + "function Path(x, y) => new { a = x.src, b = x.dst, c = y.dst };\n"
        "function twice(x) => x + x;\nfunction four(x) => twice(twice(x));\n"
        "var p = edges.Join(edges, x => x.dst, y => y.src, (x, y) => new Path(x, y)).Select(p => four(p.a));"
    )
    paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst))
    assert program["p"] == paths.select(lambda p: (p.a + p.a) + (p.a + p.a))


def test_a_function_sees_its_parameters_and_not_the_variables_of_its_user() -> None:
    with pytest.raises(LanguageError, match="`y` means nothing here"):
        parse(HEAD + "function f(x) => x + y;\nvar q = edges.Select(y => f(y.src));")


def test_binding_again_sees_the_old_meaning() -> None:
    program = parse(
        HEAD
        + "var edges = edges.Select(x => new { src = x.dst, dst = x.src }).Concat(edges);\nedges = edges.Concat(edges);"
    )
    symmetric = edges.select(lambda x: F.record(src=x.dst, dst=x.src)).concat(edges)
    assert program["edges"] == symmetric.concat(symmetric)
    assert program.sources["edges"] == edges


def test_programs_are_mappings_in_the_order_of_the_text() -> None:
    program = parse(HEAD + "var b = edges;\nvar a = b.NoisyCount(1);\nvar c = b;\nvar b = b.Shave(1);")
    assert list(program) == ["a", "c", "b"]
    assert list(program.queries) == ["c", "b"]
    assert list(program.measurements) == ["a"]
    assert list(program.sources) == ["edges", "words", "maybe"]
    assert len(program) == 3
    assert "edges" not in program
    assert program.get("d") is None
    with pytest.raises(LanguageError, match="the program names nothing 'd'"):
        program["d"]
    assert repr(program) == "<Program of 2 queries and 1 measurements>"


def test_sources_are_declared_as_in_python() -> None:
    program = parse(
        "source people(older: int, age: int?)\n"
        '  with unit = "one person", unit_weight = 2, cap = 1e6, facts = [symmetric];\n'
        'source visits(page: str) with person = "who", at_most = 20;\n'
        'source people_of(page: str) with unit = "one user", person = "who is it?", at_most = 9, nested = true, '
        'account = "users";\n'
        "source baskets: list[str];\nsource nested(a: (x: int, y: int)?, b: (int, str), c: (str,));"
    )
    assert program.sources["people"] == wp.source(
        "people", older=int, age=int | None, unit="one person", unit_weight=2, cap=10**6, facts=["symmetric"]
    )
    assert program.sources["visits"] == wp.source("visits", page=str, person="who", at_most=20)
    assert program.sources["people_of"] == wp.source(
        "people_of", page=str, unit="one user", person="who is it?", at_most=9, nested=True, account="users"
    )
    assert program.sources["baskets"] == wp.source("baskets", list[str])
    nested = wp.source(
        "nested", {"a": wp.source("n", x=int, y=int).plan.type.with_nullable(), "b": tuple[int, str], "c": tuple[str]}
    )
    assert program.sources["nested"] == nested


PARAMETERS = HEAD + (
    'parameter epsilon = 0.1;\nparameter k = 20;\nparameter word = "a";\nparameter on = true;\nparameter third = 1/3;\n'
    "var q = edges.Select(e => on ? e.src / k : 0);\n"
    "var m = q.NoisyCount(epsilon / 2, over: range(0, 2 * k + 1));\n"
    "var n = q.NoisyCount(third);\nvar w = maybe.Where(x => x.c == word && x.b > epsilon);"
)


def test_parameters_have_exact_defaults() -> None:
    program = parse(PARAMETERS)
    third = Fraction(1, 3)
    assert program.parameters == {"epsilon": Fraction(1, 10), "k": 20, "word": "a", "on": True, "third": third}
    q = edges.select(lambda e: F.where(True, e.src // 20, 0))
    assert program["q"] == q
    assert program["m"] == q.noisy_count("0.05", over=range(41))
    assert program["n"] == q.noisy_count(third)
    assert program["w"] == maybe.where(lambda x: (x.c == "a") & (x.b > 0.1))


@pytest.mark.parametrize("value", ["0.3", 0.3, Decimal("0.3"), Fraction(3, 10), "3/10"])
def test_parameters_are_set_from_outside(value: object) -> None:
    program = parse(PARAMETERS, {"epsilon": value, "k": "7", "word": "b", "on": "false", "third": 1})
    assert program.parameters == {"epsilon": Fraction(3, 10), "k": 7, "word": "b", "on": False, "third": 1}
    assert program.measurements["m"].epsilon == Fraction(3, 20)
    assert program["w"] == maybe.where(lambda x: (x.c == "b") & (x.b > 0.3))


@for_each(
    ("given", "message"),
    [
        ({"epsilom": 1}, "no parameter `epsilom`; did you mean `epsilon`?"),
        ({"epsilon": "much"}, "the parameter `epsilon` is a number such as 3, 0.1 or 1/3, not 'much'"),
        ({"epsilon": True}, "is a number"),
        ({"epsilon": float("nan")}, "is a number"),
        ({"epsilon": "1e999999999"}, "is a number"),
        ({"epsilon": "1/0"}, "is a number"),
        ({"epsilon": "9" * 10_000}, "is a number"),
        ({"on": "yes"}, "is true or false"),
        ({"word": 3}, "is a string"),
        ({"epsilon": 0}, "epsilon must be more than 0"),
        ({"epsilon": "-1"}, "epsilon must be more than 0"),
    ],
)
def test_unfit_parameters_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse(PARAMETERS, given)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_comments_and_layout_do_not_matter() -> None:
    text = "source edges(src:int,dst:int);//x\n/* a\n ** b */ var\tq\r\n = edges /**/ . Select ( e=>e . src ) ; // end"
    assert parse(text)["q"] == edges.select(lambda e: e.src)


ERRORS = [
    # text, what the message says, what the caret points at
    ("var q = edges.Selct(e => e.src);", "no operator `Selct`; did you mean `Select`", "Selct"),
    ("var q = edges.filter(e => true);", "no operator `filter`", "filter"),
    ("var q = edges.difference(edges);", "did you mean `Except`?", "difference"),
    ("var q = edge.Select(e => e.src);", "`edge` has no meaning yet", "edge"),
    ("q = edges;", "write var q = …; for a new name", "q"),
    ("var q = edges.Select(e => e.srk);", "no field 'srk'; it has src, dst; did you mean 'src'?", "srk"),
    ("var q = edges.Select(e => f.src);", "`f` means nothing here", "f.src"),
    ("var q = edges.Select(e => edges);", "`edges` is a query", "edges);"),
    ("var q = edges.Select(e => coutn(e));", "no function `coutn`; did you mean `count`?", "coutn"),
    ("var q = edges.Select(e => new Paht(e));", "function Paht(x) => …;", "Paht"),
    ("var q = edges.Select(e => e.src + true);", "arithmetic takes int or float, not bool", "+ true"),
    ("var q = edges.Where(e => e.src);", "the predicate gives int, not bool", "Where"),
    ("var q = edges.Where((a, b, c) => a);", "a lambda of 3 parameters needs a record of as many fields", "(a, b, c)"),
    ("var q = edges.Select();", "Select needs function: Select(function)", "Select"),
    ("var q = edges.Select(e => e, e => e);", "too many arguments: Select(function)", "e => e);"),
    ("var q = edges.NoisyCount(over: [1], [2], epsilon: 1);", "`over` is given twice", "[2]"),
    ("var q = edges.SelectMany(e => [e], limits: 3);", "SelectMany takes no `limits`; did you mean `limit`?", "3"),
    ("var q = edges.Select(3);", "Select needs a function for function", "3"),
    ("var q = edges.Concat(3);", "a query starts with", "3"),
    ("var q = edges.Concat(e => e);", "a query starts with", "e => e"),
    ("var q = edges.Concat(words);", "both sides to have one record type", "Concat"),
    ("var q = edges.Select;", "`Select` is called", "Select"),
    ("var q = edges.NoisyCount(1).Select(e => e);", "nothing can follow a release", "Select"),
    ("var q = edges.NoisyCount(0);", "epsilon must be more than 0", "0"),
    ("var q = edges.NoisyCount(e);", "`e` is not a parameter of the program", "e)"),
    ("var q = edges.NoisyCount(1, over: 3);", "expected the public keys", "3"),
    ('var q = edges.NoisyCount(1, over: ["a"]);', "cannot be released", "NoisyCount"),
    ("var q = edges.NoisySum(1, 3, 0, 1);", "NoisySum needs a function for value", "3"),
    ("var q = edges.NoisySum(1, e => e.src, upper: 1);", "NoisySum needs lower", "NoisySum"),
    ("var q = edges.Median(1);", "Median needs over", "Median"),
    ("var q = edges.Select(e => new { e.src, src = 3 });", "two fields are called `src`", "3"),
    ("var q = edges.Select(e => new { e.src + 1 });", "this field needs a name", "+ 1"),
    ("var q = edges.Select(e => e[2]);", "the fields of this record are [0] to [1]", "[2]"),
    ("var q = edges.Select((x, x) => x);", "two parameters are called `x`", "(x, x)"),
    ("var q = edges.Select((x, 1) => x);", "the parameters of a lambda are names", "1)"),
    ("var q = edges.Select(e => 99999999999999999999);", "an integer outside 64 bits", "99999999999999999999"),
    ("var q = edges.Select(e => new string[] { e.src });", "a list of int, not of string", "new"),
    ("var q = edges.Partition(e => e.src, part: true);", "Partition", "Partition"),
    ("var q = edges.Shave(1.0, limit: 2.5);", "expected an integer", "2.5"),
    ("source edges: int;", "`edges` is declared already", "edges"),
    ("source s: strin;", "no type `strin`; did you mean `str`", "strin"),
    ("source s(a: int, a: int);", "the field `a` is there twice", "a: int);"),
    ("source s: int with units = 3;", "no option `units`; did you mean `unit`", "units"),
    ('source s: int with person = "who", at_most = 3;', "have named fields", "s"),
    ("source s: int with person = who, at_most = 3;", "is not a parameter of the program", "who"),
    ("source s: int with person = 3, at_most = 3;", "named in quotes", "3"),
    ("source s: int with nested = 1;", "true or false", "1"),
    ('source s: int with person = "who";', "how many rows of one person", "s"),
    ("source s: int with at_most = 3;", "name the column of the ids", "s"),
    ('source s(n: int) with person = "who", at_most = 3, unit_weight = 2;', "leave unit_weight out", "s"),
    ("source s: int with facts = [symetric];", "did you mean `symmetric`?", "symetric"),
    ("parameter p = 1;\nparameter p = 2;", "`p` is a parameter already", "p = 2"),
    ("parameter new = 1;", "`new` is a word of the language", "new"),
    ("function count(x) => x;", "is a function of the language", "count"),
    ("var q = edges.GroupBy(e => e.src, l => l.Count() // 20);\nvar r = edges;", "`/` rounds down", "var r"),
    ("var q = edges.Where(e => e.src == 1 and e.dst == 2);", "and, or, not are written &&, ||, !", "and"),
    ("var q = edges.Where(e => e.src == 1 & e.dst == 2);", "and, or, not are written &&, ||, !", "& e"),
    ("var q = edges.Select(e => 'a');", "strings stand in double quotes", "'a'"),
    ('var q = edges.Select(e => "a);', "this string is not closed", '"a);'),
    ("var q = edges /* open", "this comment is never closed", "/* open"),
    ("var q = edges", "expected", ""),
    ("var q edges;", "expected `=`", "edges;"),
    ("select x from edges;", "expected `=`", "x from"),
    ("lambda e: e;", "expected `=`", "e: e"),
]


@for_each(("text", "message", "at"), ERRORS, ids=[text for text, _, _ in ERRORS])
def test_errors_say_what_where_and_what_to_do(text: str, message: str, at: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse(HEAD + text, name="test.wpq")
    error = caught.value
    shown = str(error).splitlines()
    assert message in shown[0]
    lines = (HEAD + text).split("\n")
    line = lines[error.line - 1]
    assert shown[0].startswith(f"test.wpq, line {error.line}, column {error.column}: ")
    assert line[error.column - 1 :].startswith(at)
    assert shown[1] == f"    {line}"
    assert shown[2] == " " * (error.column + 3) + "^"
    assert error.__cause__ is None


def test_long_lines_are_cut_around_the_caret() -> None:
    text = HEAD + "var q = edges" + ".Where(e => true)" * 50 + ".Wher(e => true)" + ".Where(e => true)" * 50 + ";"
    with pytest.raises(LanguageError) as caught:
        parse(text)
    _, line, caret = str(caught.value).splitlines()
    assert len(line) <= 104
    assert line[caret.index("^") :].startswith("Wher(")
    assert line.startswith("    …")
    assert line.endswith("…")


def test_a_program_is_text() -> None:
    with pytest.raises(LanguageError, match="a program is text, not bytes"):
        parse(b"source a: int;")


def test_parsing_imports_nothing_heavy() -> None:
    code = (
        "import sys, wpinq.language as language; lazy = 'lark' not in sys.modules; "
        "language.parse('source a: int; var q = a.Select(x => x).NoisyCount(1);'); "
        "heavy = {'pandas', 'polars', 'pyarrow', 'scipy', 'duckdb'} & set(sys.modules); "
        "print(lazy, heavy)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "True set()"


def test_an_empty_program() -> None:
    program = parse("")
    assert isinstance(program, Program)
    assert len(program) == 0
    assert str(program) == ""
