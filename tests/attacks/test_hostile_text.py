"""Any text gives a program or a LanguageError, in bounded time: never a crash, a hang or another exception."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.parameters import for_each, tenth
from tests.support.processor import bounded_work
from wpinq.errors import LanguageError
from wpinq.language import Program, parse
from wpinq.language.chains import LIMITS
from wpinq.language.program import STATEMENT_LIMIT
from wpinq.language.syntax import TEXT_LIMIT

HEAD = "source edges(src: int, dst: int);\nsource words: str;\nsource numbers: int;\n"


def _doubling(levels: int, body: str, start: str = "x") -> str:
    functions = ["function f0(x) => x;"]
    functions += [f"function f{i}(x) => {body.replace('f(', f'f{i - 1}(')};" for i in range(1, levels + 1)]
    return "\n".join(functions) + f"\nvar q = numbers.Select(x => f{levels}({start}));"


def _fill(unit: str, end: str = "") -> str:
    return unit * ((TEXT_LIMIT - len(HEAD) - len(end) - 40) // len(unit)) + end


REFUSED: dict[str, Callable[[], str]] = {
    "a megabyte": lambda: "var x = edges;\n" * 70_000,
    "a megabyte of one name": lambda: "a" * 1_000_000,
    "open parentheses": lambda: "var q = numbers.Select(x => " + _fill("("),
    "open brackets": lambda: "var q = numbers.Select(x => " + "[" * 40_000,
    "nested lists": lambda: "var q = numbers.Select(x => " + "[" * 5_000 + "x" + "]" * 5_000 + ");",
    "nested tuples": lambda: "var q = numbers.Select(x => " + "(" * 5_000 + "x" + ",)" * 5_000 + ");",
    "nested records": lambda: "var q = numbers.Select(x => " + "{ a = " * 5_000 + "x" + " }" * 5_000 + ");",
    "nested calls": lambda: "var q = numbers.Select(x => " + "absolute(" * 5_000 + "x" + ")" * 5_000 + ");",
    "nested lambdas": lambda: (
        "var q = words.Select(w => " + "map(split(w, w), x => " * 3_000 + "x" + ")" * 3_000 + ");"
    ),
    "nested choices": lambda: "var q = numbers.Select(x => " + "x > 1 ? 1 : " * 5_000 + "x);",
    "nested types": lambda: "source deep: " + "list[" * 20_000 + "int" + "]" * 20_000 + ";",
    "nested records in a type": lambda: "source deep: " + "(a: " * 20_000 + "int" + ")" * 20_000 + ";",
    "nullable many times, then wrong": lambda: "source deep: int" + "?" * 30_000 + "!;",
    "a wide type": lambda: "source wide(" + ", ".join(f"f{i}: int" for i in range(5_000)) + ");",
    "minus signs": lambda: "var q = numbers.Select(x => " + "-" * 20_000 + "x);",
    "exclamation marks": lambda: "var q = numbers.Select(x => " + "!" * 20_000 + "x);",
    "a long sum": lambda: "var q = numbers.Select(x => " + "+".join(["1"] * 20_000) + ");",
    "a long conjunction": lambda: "var q = numbers.Where(x => " + " && ".join(["x > 1"] * 5_000) + ");",
    "a long product": lambda: "parameter p = " + "*".join(["9"] * 20_000) + ";",
    "a long access": lambda: "var q = edges.Select(x => x" + ".src" * 40_000 + ");",
    "a long index": lambda: "var q = edges.Select(x => x" + "[0]" * 20_000 + ");",
    "a long method chain": lambda: "var q = numbers.Select(x => x" + ".Absolute()" * 15_000 + ");",
    "a query in queries": lambda: "var q = numbers" + ".Concat(numbers" * 5_000 + ")" * 5_000 + ";",
    "a name of 100,000 letters": lambda: "var q = " + "q" * 100_000 + ";",
    "an operator of 100,000 letters": lambda: "var q = edges." + "Q" * 100_000 + "();",
    "a field of 100,000 letters": lambda: "var q = edges.Select(e => e." + "q" * 100_000 + ");",
    "an integer of 100,000 digits": lambda: "var q = numbers.Select(x => " + "9" * 100_000 + ");",
    "an integer of 300 digits": lambda: "var q = numbers.Select(x => " + "9" * 300 + ");",
    "a huge exponent": lambda: "var q = numbers.NoisyCount(1e999999999);",
    "a huge exponent of many digits": lambda: "var q = numbers.NoisyCount(1e" + "9" * 50_000 + ");",
    "a float out of range": lambda: "var q = numbers.Select(x => 1e399);",
    "a tiny epsilon": lambda: "var q = numbers.NoisyCount(1e-399);",
    "an epsilon of 0": lambda: "var q = numbers.NoisyCount(0);",
    "a negative epsilon": lambda: "var q = numbers.NoisyCount(-1);",
    "an epsilon by division by zero": lambda: "var q = numbers.NoisyCount(1 / 0);",
    "ten megabytes of numbers": lambda: "var q = numbers.Select(x => element([" + "1, " * 4_000_000 + "1], x));",
    "a table that is not closed": lambda: "var q = numbers.Select(x => element([" + "1, " * 600_000 + "x, ",
    "a table in a function of functions": lambda: _doubling(
        14, "f(x + 1) + f(x + 2)", f"element([{'1, ' * 9_000} 1], x)"
    ),
    "a table where an index stands": lambda: "var q = numbers.Select(x => x[" + "1, " * 600_000 + "1]);",
    "a table beyond the floats": lambda: "var q = numbers.Select(x => element([1e999, 1], x));",
    "a table of integers beyond 64 bits": lambda: "var q = numbers.Select(x => element([9999999999999999999, 1], x));",
    "many tables": lambda: "var q = numbers.Select(x => element([" + "1, " * 60_000 + "1], x));\n" * 55,
    "a table that is used often": lambda: (
        "function f(x) => element([" + "1, " * 100_000 + "1], x);\n" + "var q = numbers.Select(x => f(x));\n" * 100
    ),
    "a key of 100,000 letters": lambda: f'var q = numbers.NoisyCount(1, over: ["{"k" * 100_000}"]);',
    "a huge range": lambda: "var q = numbers.NoisyCount(1, over: range(0, 1000000000000));",
    "a huge product": lambda: "var q = numbers.NoisyCount(1, over: product(" + ", ".join(["range(0, 9)"] * 99) + "));",
    "many large ranges": lambda: (
        "var q = numbers.NoisyCount(1, over: range(0, 1000));\nvar r = numbers.NoisyCount(1, over: range(0, 999999));"
    ),
    "many releases": lambda: "var q = numbers.NoisyCount(1, over: [1]);\n" * (LIMITS["releases"][0] + 1),
    "many releases without keys": lambda: "var q = numbers.NoisyCount(1);\n" * (LIMITS["without keys"][0] + 1),
    "many statements": lambda: "var q = edges;\n" * (STATEMENT_LIMIT + 1),
    "many operators": lambda: "var q = numbers" + ".Concat(numbers)" * (LIMITS["operators"][0] + 1) + ";",
    "an open string": lambda: 'var q = numbers.Select(x => "' + "a" * 100_000,
    "an open string of escapes": lambda: 'var q = numbers.Select(x => "' + "\\\\" * 90_000,
    "an open comment": lambda: "/*" + "*" * 150_000,
    "many open comments": lambda: "/* " * 60_000,
    "a lone surrogate": lambda: "var q = \ud800;",
    "a lone surrogate in a string": lambda: 'var q = numbers.Select(x => "\ud800");',
    "an escaped lone surrogate": lambda: 'var q = numbers.Select(x => "\\ud800");',
    "a NUL": lambda: "var q = numbers;\x00",
    "a bell in a comment": lambda: "// \x07\nvar q = numbers;",
    "a bidi override in a comment": lambda: "// \u202e\nvar q = numbers;",
    "a bidi isolate in a string": lambda: 'var q = numbers.Select(x => "\u2066");',
    "a paragraph separator": lambda: "var q = numbers;\u2029",
    "a name in another alphabet": lambda: "var \u0430 = numbers;",
    "digits of another alphabet": lambda: "var q = numbers.NoisyCount(\u0663);",
    "a bad escape": lambda: 'var q = numbers.Select(x => "\\x41");',
    "functions that double": lambda: _doubling(60, "f(x) + f(x)"),
    "functions that double with other arguments": lambda: _doubling(60, "f(x + 1) + f(x + 2)"),
    "functions that double and fail": lambda: _doubling(18, "f(x) + f(x)", "x.nothing"),
    "functions that double a record": lambda: _doubling(60, "(f(x), f(x))"),
    "functions that double a record at a time": lambda: _doubling(40, "f((x, x))"),
    "functions that double a list": lambda: _doubling(40, "f([x, x])"),
    "functions that double a value": lambda: _doubling(90, "f(x + x)"),
    "functions that sort": lambda: _doubling(60, "f(max(x, x * x, x + 1))"),
    "a function of itself": lambda: "function f(x) => f(x);\nvar q = numbers.Select(x => f(x));",
    "records that double": lambda: "numbers = numbers.Select(x => (x, x));\n" * 60,
    "records that nest": lambda: "numbers = numbers.Shave(1.0);\n" * 500,
    "records that nest under one name": lambda: "numbers = numbers.Select(x => { a = x });\n" * 500,
    "groups that nest": lambda: "numbers = numbers.GroupBy(x => x);\n" * 200,
    "pairs that nest": lambda: "numbers = numbers.Join(numbers, x => 1, y => 1);\n" * 200,
    "lists of lists": lambda: "numbers = numbers.GroupBy(x => 1).Select(g => g.val);\n" * 200,
    "subsets of any size": lambda: "var q = words.Select(w => subsets(split(w, w), 1000000000));",
    "subsets of 900": lambda: "var q = words.Select(w => subsets(split(w, w), 900));",
    "a part that is computed": lambda: "var q = numbers.Partition(x => x, part: range(0, 1000000000));",
    "a part that is a lambda": lambda: "var q = numbers.Partition(x => x, part: x => x);",
    "a limit out of range": lambda: "var q = numbers.Shave(0.5, limit: -1);",
    "a width of nothing": lambda: "var q = numbers.Shave(0);",
    "a field with an underscore": lambda: "source s(__class__: int);",
    "only keywords": lambda: "source source source",
    "binary": lambda: bytes(range(128)).decode("ascii"),
}


@for_each("case", REFUSED, every=4)
def test_hostile_text_is_refused_in_bounded_time(case: str) -> None:
    text = HEAD + REFUSED[case]()
    with bounded_work(), pytest.raises(LanguageError) as caught:
        parse(text)
    assert len(str(caught.value)) < 3_000, "a message quotes no more of a hostile text than can be read"
    assert caught.value.__cause__ is None


ACCEPTED: dict[str, Callable[[], str]] = {
    "parentheses around one thing": lambda: "var q = numbers.Select(x => " + "(" * 20_000 + "x" + ")" * 20_000 + ");",
    "doubling by name": lambda: "var x = numbers;\n" + "x = x.Concat(x);\n" * 200,
    "doubling by Join": lambda: "var x = numbers;\n" + "x = x.Join(x, a => a, b => b, (a, b) => a);\n" * 200,
    "a long chain": lambda: "var x = numbers" + ".Where(x => x > 0)" * 500 + ";",
    "a chain in chains": lambda: "var x = numbers" + ".Concat(numbers" * 60 + ")" * 60 + ";",
    "a long list of keys": lambda: (
        f"var x = numbers.NoisyCount(1, over: [{', '.join(map(str, range(0, 10_000, 2)))}]);"
    ),
    "a table": lambda: "var x = numbers.Select(x => element([" + "-1.5e-3, " * 100_000 + "1], x));",
    "a large range": lambda: "var x = numbers.NoisyCount(1, over: range(0, 50000));",
    "a long comment": lambda: "/*" + "*" * 150_000 + "*/ var x = numbers;",
    "a long string": lambda: f'var x = numbers.Select(x => "{"a" * 150_000}");',
    "strings of any script": lambda: 'var x = numbers.Select(x => "\u0430\u4e2d\U0001f600\\u202e\\ud83d\\ude00");',
    "nothing": lambda: "",
}


@for_each("case", ACCEPTED)
def test_large_programs_are_read_and_printed_in_bounded_time(case: str) -> None:
    with bounded_work():
        program = parse(HEAD + ACCEPTED[case]())
        printed = str(program)
        again = parse(printed)
    assert dict(again.items()) | dict(program.items()) == dict(again.items())
    assert str(again) == printed


def test_a_doubled_plan_is_billed_at_once() -> None:
    program = parse(HEAD + "var x = numbers;\n" + "x = x.Concat(x);\n" * 200)
    query = program.queries["x"]
    with bounded_work():
        assert query.uses() == {"numbers": 2**200}


def test_a_caller_near_the_recursion_limit_gets_a_language_error() -> None:
    text = HEAD + "var q = numbers.Select(x => " + "absolute(" * 60 + "x" + ")" * 60 + ");"

    def deeper(levels: int) -> Program:
        return deeper(levels - 1) if levels else parse(text)

    assert len(parse(text)) == 1
    with pytest.raises(LanguageError, match="nests too deep"):
        for levels in range(500, 960, 20):
            deeper(levels)


@pytest.mark.parametrize("seed", tenth(range(150)))
def test_mutilated_programs_give_a_program_or_a_language_error(seed: int) -> None:
    random_ = random.Random(seed)
    text = HEAD + (
        "parameter e = 0.1;\nfunction f(x, y) => new { a = x.src, b = y.dst };\n"
        "var p = edges.Join(edges, x => x.dst, y => y.src, (x, y) => new f(x, y)).Where(p => p.a != p.b && p.a > -1);\n"
        'var m = p.Select(x => x.a > 3 ? "big" : "small").NoisyCount(e, over: ["big", "small"]);\n'
        "var s = numbers.NoisySum(e / 2, x => absolute(x), lower: 0, upper: 10);\n"
    )
    characters = list(text)
    tokens = ["=>", "(", ")", "{", "}", "[", "]", ",", ";", '"', ".", "?", ":", "0", "x", "new", " ", "/*", "-", "e"]
    for _ in range(random_.randint(1, 6)):
        place = random_.randrange(len(characters))
        match random_.randrange(3):
            case 0:
                del characters[place : place + random_.randint(1, 8)]
            case 1:
                characters.insert(place, random_.choice(tokens))
            case _:
                characters[place] = random_.choice(tokens)
    try:
        program = parse("".join(characters))
    except LanguageError as error:
        assert error.line > 0
        assert "^" in str(error)
    else:
        assert parse(str(program)).queries.keys() >= program.queries.keys()
