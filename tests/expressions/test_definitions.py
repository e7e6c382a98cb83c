"""Functions are defined in one place: what `wp`, text and type checkers know agrees, and gaps have errors of ours."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.errors import ExpressionError
from wpinq.expr.build import call
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.compile import compile_lambda
from wpinq.expr.declare import IN_PYTHON, primitive
from wpinq.expr.definition import PRIMITIVES, define, handled, strict
from wpinq.expr.nodes import Call, Constant, Variable, make_lambda
from wpinq.expr.types import INT
from wpinq.expr.work import work

ONE = Constant(INT, 1)


def seen_by_type_checkers() -> Iterator[str]:
    """The functions that `wpinq/functions.py` imports as themselves, and all that the modules define which it stars."""
    for node in ast.walk(ast.parse(Path(F.__file__).read_text(encoding="utf-8"))):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.asname == alias.name:  # which says that it is public
                yield alias.name
            elif alias.name == "*":
                assert isinstance(node, ast.ImportFrom) and node.module
                file = Path(wp.__file__).parent.parent / f"{node.module.replace('.', '/')}.py"
                defined = ast.parse(file.read_text(encoding="utf-8")).body
                yield from (d.name for d in defined if isinstance(d, ast.FunctionDef) and not d.name.startswith("_"))


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """What a test defines is gone after it."""
    tables: tuple[dict[str, Any], ...] = (PRIMITIVES, FUNCTIONS, IN_PYTHON)
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def test_the_names_that_type_checkers_see_are_those_that_are_defined() -> None:
    assert sorted(seen_by_type_checkers()) == sorted(IN_PYTHON), "import it in wpinq/functions.py, for editors"


@pytest.mark.parametrize("name", sorted(IN_PYTHON))
def test_every_function_is_public_and_documented(name: str) -> None:
    assert getattr(F, name) is IN_PYTHON[name]
    assert name in F.__all__
    assert inspect.getdoc(getattr(F, name))


def _typing(types: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
    return INT


def twice(value: object) -> Any:
    """The value, twice."""


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"meaning": abs, "work": handled}, "no typing rule"),
        ({"typing": _typing, "work": handled}, "no meaning"),
        ({"typing": _typing, "meaning": abs}, "no bound on its work"),
        ({}, "no typing rule and no meaning and no bound on its work"),
    ],
)
def test_what_a_definition_leaves_out_is_named(given: dict[str, Any], missing: str) -> None:
    with pytest.raises(ExpressionError, match=f"'twice' is not fully defined in {__name__}: it has {missing}"):
        primitive(**given)(twice)
    with pytest.raises(
        ExpressionError, match=f"'twice' is not fully defined in wpinq.expr.functions: it has {missing}"
    ):
        define("twice", 1, **given)
    assert "twice" not in PRIMITIVES


@pytest.mark.usefixtures("nothing_stays")
def test_a_name_is_defined_once() -> None:
    def length(value: object) -> Any:
        """Another."""

    with pytest.raises(ExpressionError, match=f"'length' is defined twice, the second time in {__name__}"):
        primitive(_typing, len, work=handled)(length)


@pytest.mark.usefixtures("nothing_stays")
def test_a_typing_rule_that_gives_no_type_is_named() -> None:
    symbolic = primitive(lambda types, attributes: None, abs, work=handled)(twice)
    with pytest.raises(ExpressionError, match="the typing rule of the primitive 'twice' gives no type"):
        symbolic(1)


@pytest.mark.usefixtures("nothing_stays")
def test_one_definition_is_enough() -> None:
    symbolic = primitive(_typing, strict(lambda value: 2 * value), work=lambda sizes, texts, given: (0, 0))(twice)
    numbers = wp.source("numbers", int)
    query = numbers.select(lambda x: symbolic(x) + 1)
    assert dict(wp.evaluate(query, {"numbers": [20]}, engine="reference")) == {41: 1.0}
    for text in ("twice(x)", "Twice(x)", "x.Twice()"):
        program = wp.parse(f"source numbers: int;\nvar q = numbers.Select(x => {text} + 1);\n")
        assert program["q"] == query
        assert "twice(x) + 1" in str(program)
    with pytest.raises(TypeError, match="twice: missing a required argument: 'value'"):
        symbolic()
    x = Variable(INT, 0, "x")
    assert work(make_lambda((x,), call("twice", x)), (1,)).steps == 2, "no primitive is free, whatever it says"


@pytest.mark.parametrize("use", [compile_lambda, lambda function: work(function, ()), lambda _: call("mystery", ONE)])
def test_an_unknown_primitive_is_named(use: Any) -> None:
    with pytest.raises(ExpressionError, match="there is no primitive 'mystery'"):
        use(make_lambda((), Call(INT, "mystery", (ONE,))))
