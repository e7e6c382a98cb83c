"""Additions, rehearsed in a copy of the project: each touches the files that docs/contributing.md names, and no others.

What is left undone is refused by an error of ours that names the place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WITH_JAVA = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
ROOT = Path(__file__).resolve().parents[2]
RULES = "wpinq/engines/sql/rules"

DISTINCT = {
    "wpinq/plan/operators/distinct.py": '''"""Distinct: at most a weight of 1 for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.domain import Domain, Inference
from wpinq.plan.arithmetic import common_divisor
from wpinq.plan.operator import register
from wpinq.plan.operators.families import RecordKeyed


@register
@dataclass(frozen=True, slots=True)
class Distinct(RecordKeyed):
    """At most a weight of 1 for each record: `out(x) = min(1, max(0, A(x)))`

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> wp.evaluate(numbers.distinct(), {"numbers": {1: 0.75, 2: 2.0, 3: -1.0}})
    WeightedDataset({1: 0.75, 2: 1.0})
    """

    name: ClassVar[str] = "Distinct"
    method: ClassVar[str] = "distinct"
    stability: ClassVar[str] = "a clamp moves no more than what it clamps"

    def output_type(self, *inputs: Type) -> Type:
        return inputs[0]

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        return inputs[0]

    def rounding_units(self) -> Fraction:
        return Fraction(0)

    def nonnegative(self, *inputs: bool) -> bool:
        return True

    def lattice(self, *inputs: Fraction) -> Fraction:
        return common_divisor(inputs[0], Fraction(1))

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inputs[0]

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        one = arithmetic.number(1)
        return lambda record, weight: ((record, min(weight, one)),) if weight > 0 else ()
''',
    "wpinq/api/query.py": '''
    def distinct(self) -> Query:
        """At most a weight of 1 for each record."""
        from wpinq.plan.operators.distinct import Distinct

        return self._then(Distinct)
''',
    f"{RULES}/operators.py": '''

from wpinq.plan.operators.distinct import Distinct  # noqa: E402


@relation_of.register
def _(operator: Distinct, script: Script, inputs: list[b.Relation], output: b.Relation) -> b.Relation:
    """Rounds nothing: a weight or a constant."""
    block = script.single(script.once(inputs[0]))
    clamped = replace(block, weight=t.call("least", block.weight, t.number(1.0)))
    return replace(output, blocks=(b.restricted(clamped, t.call("less", t.number(0.0), block.weight)),))
''',
    "tests/support/operators/distinct.py": '''"""Distinct: a weight of at most 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.cases import HEAVY, A, OperatorCase, Table, numbers

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live


def draw(grower: Grower, below: Live) -> Live | None:
    return grower.add("Distinct", (below,))


CASE = OperatorCase(
    "Distinct",
    text="a.Distinct()",
    chain=lambda a, b: a.distinct(),
    one_step={"Distinct": HEAVY.distinct()},
    draw=draw,
    tables=(Table("Distinct, heavy and light", numbers.distinct(), {"numbers": A}, {1: "0.75", 2: 1, 3: 1}),),
)
''',
}

GCD = {
    "wpinq/expr/functions/gcd.py": '''"""The greatest common divisor."""

from __future__ import annotations

import math
from typing import Any

from wpinq.expr.declare import primitive
from wpinq.expr.definition import CallAttributes, Types, expect, fit_number, handled, strict
from wpinq.expr.types import INT, Type


def _integers(types: Types, attributes: CallAttributes) -> Type:
    expect(types, INT, what="gcd takes integers")
    return INT.with_nullable()


@primitive(_integers, strict(lambda a, b: fit_number(math.gcd(a, b))), work=handled)
def gcd(a: object, b: object) -> Any:
    """The greatest common divisor of two ints."""
''',
    f"{RULES}/lowering.py": """

@_rule("gcd")
def _gcd(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    wide = "sql:gcd(CAST({0} AS HUGEINT), CAST({1} AS HUGEINT))"
    return t.call("fit_int", t.call(wide, *_as(node, shapes, INT)))
""",
}

USE_DISTINCT = """
from fractions import Fraction
from random import Random

import wpinq as wp
from tests.support.operators import CASES, failing_tables
from tests.support.plans import distance, random_case
from tests.support.stability import check_stability
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties
from wpinq.plan.format import plan_from_json, plan_to_json

numbers = wp.source("numbers", int, facts=["unit_weights"])
query = numbers.select(lambda x: x % 3).distinct()
facts = "with facts = [unit_weights]"
program = wp.parse(f"source numbers: int {facts}; var q = numbers.Select(x => x % 3).Distinct();")
assert program["q"] == query and "Distinct" in str(program) and "Distinct" in query.explain()
assert plan_from_json(plan_to_json(query.plan)) == query.plan
assert plan_properties(query.plan).domain == (0, 1, 2) and plan_properties(query.plan).lattice == 1
data = {"numbers": [1, 2, 4, 5, 7]}
assert failing_tables() == []
for engine in ENGINES:
    assert dict(wp.evaluate(query, data, engine=engine)) == {1: 1.0, 2: 1.0}, engine
held = Evaluator([query.plan], {"numbers": {x: Fraction(1) for x in data["numbers"]}}, EXACT)
assert held.outputs[0] == {1: 1, 2: 1}
held.propose({"numbers": {1: Fraction(-1), 4: Fraction(-1), 7: Fraction(-1), 3: Fraction(1)}})
assert held.outputs[0] == {0: 1, 2: 1}
try:
    CompiledEvaluator([query.plan], {"numbers": {1: 1.0}})
    raise SystemExit("the compiled engine has no rule for Distinct")
except CannotCompile as gap:
    assert "Distinct" in str(gap), gap
with wp.Session() as session:
    session.protect(numbers, data["numbers"], budget=2)
    assert session.release(query.noisy_count(epsilon=1)).keys == (0, 1, 2)
    assert session.release(query.geometric_count(epsilon=1)).keys == (0, 1, 2)
    assert session.remaining("numbers") == 0
found = check_stability(1, 40, ("Distinct",))
assert not found.violations and found.ratio["Distinct"] > 0
rng = Random(1)
for _ in range(5):
    case = random_case(rng, "Distinct")
    exact = wp.evaluate(wp.Query(case.plan), case.data, exact=True)
    for engine in ("duckdb", "reference"):
        floats = wp.evaluate(wp.Query(case.plan), case.data, engine=engine)
        assert distance(exact, floats) <= plan_properties(case.plan).rounding_error
"""

USE_GCD = """
import wpinq as wp
from wpinq import functions as F
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CompiledEvaluator
from wpinq.plan.format import plan_from_json, plan_to_json

pairs = wp.source("pairs", a=int, b=int)
query = pairs.select(lambda p: F.gcd(p.a, p.b))
assert wp.parse("source pairs(a: int, b: int); var q = pairs.Select(p => gcd(p.a, p.b));")["q"] == query
assert plan_from_json(plan_to_json(query.plan)) == query.plan and "gcd(" in query.explain()
weights = {(12, 18): 1.0, (-(2**63), 0): 1.0, (7, 5): 1.0}
expected = {6: 1.0, None: 1.0, 1: 1.0}
for engine in ENGINES:
    if engine == "spark":  # no function of its own, and the rule is in DuckDB's words: refused, by name
        try:
            wp.evaluate(query, {"pairs": weights}, engine=engine)
            raise SystemExit("Spark has no rule for gcd")
        except wp.PlanError as gap:
            assert "gcd" in str(gap), gap
    else:
        assert dict(wp.evaluate(query, {"pairs": weights}, engine=engine)) == expected, engine
assert Evaluator([query.plan], {"pairs": weights}).outputs[0] == expected
assert dict(CompiledEvaluator([query.plan], {"pairs": weights}).outputs[0]) == expected
"""


TOTAL = {
    "wpinq/sinks/noisy_total.py": '''"""NoisyTotal: the weight of all records, plus Laplace noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from wpinq.expr.types import STR, Type
from wpinq.expr.values import Value
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.laplace import add_laplace
from wpinq.noise.laplace import laplace_scale
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.sink import Output, Sink, register
from wpinq.sinks.syntax import EPSILON, SinkSyntax


@register
@dataclass(frozen=True, slots=True)
class NoisyTotal(Sink):
    """The weight of all records plus Laplace noise."""

    name: ClassVar[str] = "NoisyTotal"
    key_type: ClassVar[Type] = STR
    single: ClassVar[bool] = True
    noun: ClassVar[str] = "total"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax("NoisyTotal", (EPSILON,), lambda m: (m.plan, [])),)

    def identity(self) -> tuple[bytes | str, ...]:
        return ("total",)

    @property
    def own_keys(self) -> tuple[str, ...]:
        return ("total",)

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(1)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (laplace_scale(epsilon, plan_properties(plan).slack(1), self.sensitivity),)

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        total = float(sum(map(Fraction, output.weights().values())))
        return add_laplace(np.array([total]), scales[0], random).tolist()

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        yield f"{self.called(epsilon)} adds Laplace noise of scale {self.scales(plan, epsilon)[0]:.9g} to the total."
''',
    "tests/support/sinks/noisy_total.py": '''"""NoisyTotal: a record moves the total by its weight."""

from __future__ import annotations

from tests.support.sink_cases import KINDS, SinkCase
from wpinq.sinks.noisy_total import NoisyTotal


def lost(sink, before, after, keys, scales):
    one, other = (sum(output.weights().values()) for output in (before, after))
    return abs(other - one) / scales[0]


CASE = SinkCase(
    "NoisyTotal", lambda rng, query: query.measure(NoisyTotal(), 1), lost, KINDS, texts=("NoisyTotal(0.5)",)
)
''',
}

USE_TOTAL = """
import wpinq as wp
from tests.sinks import test_mechanisms, test_sensitivity
from wpinq.measure.measurement import measurement_from_json, measurement_to_json
from wpinq.sinks.noisy_total import NoisyTotal

test_sensitivity.test_every_sink_has_a_case()
for kind in test_sensitivity.CASES["NoisyTotal"].kinds:
    test_sensitivity.test_scores_move_no_further_than_is_billed_and_nearly_as_far("NoisyTotal", kind)
test_mechanisms.test_no_class_of_sinks_is_asked_for_outside_of_them()
numbers = wp.source("numbers", int, records_at_most=9)
text = "source numbers: int with records_at_most = 9;\\nvar m = numbers.NoisyTotal(0.5);\\n"
asked = wp.parse(text)["m"]
assert str(wp.parse(text)) == text and asked == numbers.measure(NoisyTotal(), 0.5)
assert measurement_from_json(measurement_to_json(asked)) == asked
assert "NoisyTotal(0.5), spent once" in str(wp.bill(asked))
assert wp.accuracy(asked)[0].half_width > 5
assert abs(wp.simulate(asked, {"numbers": [1] * 5000}, seed=1).value - 5000) < 100
for engine in ENGINES:
    with wp.Session(engine=engine) as session:
        session.protect(numbers, [1, 2, 3], budget=1)
        assert session.release(asked).keys == ("total",)
        assert session.spent("numbers") == 0.5
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, and the tests that know operators."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("wpinq", "tests/support", "tests/sinks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    return tmp_path


def add(copy: Path, files: dict[str, str]) -> None:
    """Write new files; to those that are there, add what is given at their end (of the class Query, in query.py)."""
    for name, text in files.items():
        path = copy / name
        held = path.read_text(encoding="utf-8") if path.exists() else ""
        if name == "wpinq/api/query.py":
            before, after = held.split("\n    def where(", 1)
            path.write_text(f"{before}{text}\n    def where({after}", encoding="utf-8")
        else:
            path.write_text(held + text, encoding="utf-8")


def run(copy: Path, script: str, engines: tuple[str, ...] = ("duckdb", "reference")) -> str:
    """What a script printed on its way to an error; empty where it went through."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", f"ENGINES = {list(engines)!r}\n{script}"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or done.stdout or "it failed"


def differing(copy: Path) -> set[str]:
    """The files of the copy that are not those of the project."""
    return {
        str(path.relative_to(copy))
        for path in copy.rglob("*.py")
        if not (ROOT / path.relative_to(copy)).exists()
        or path.read_bytes() != (ROOT / path.relative_to(copy)).read_bytes()
    }


@pytest.mark.parametrize(
    ("files", "script"),
    [(DISTINCT, USE_DISTINCT), (GCD, USE_GCD), (TOTAL, USE_TOTAL)],
    ids=["Distinct", "gcd", "NoisyTotal"],
)
@pytest.mark.parametrize(
    "engines", [("duckdb", "reference"), pytest.param(("spark",), marks=[pytest.mark.long, WITH_JAVA])], ids=", ".join
)
def test_an_addition_runs_everywhere_with_the_files_that_are_named(
    files: dict[str, str], script: str, engines: tuple[str, ...], copy: Path
) -> None:
    add(copy, files)
    assert differing(copy) == set(files)
    assert run(copy, script, engines) == ""


OPTION = """    made.add_argument("--names-only", action="store_true", help="print the names of the releases alone")
"""
USE_OPTION = """
import contextlib, io
from pathlib import Path
from wpinq.cli.main import main

def printed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        assert main(arguments) == 0
    return out.getvalue()

Path("one.wpq").write_text("source numbers(n: int); var one = numbers.NoisyCount(1, over: [(1,)]);")
assert printed("explain", "one.wpq", "--names-only") == "one\\n"
assert "--names-only" in printed("explain", "--help")
assert "--names-only" in printed("--print-completion", "bash")
"""


def test_an_option_of_the_command_line_is_added_in_the_file_of_its_command(copy: Path) -> None:
    command = "wpinq/cli/explain.py"
    text = (copy / command).read_text(encoding="utf-8")
    parsed, ran = "    made.set_defaults(command=run)\n", "    program = load_program(options)\n"
    assert parsed in text and ran in text
    used = f"{ran}    if options.names_only:\n        print(*program.releases, sep='\\n')\n        return\n"
    (copy / command).write_text(text.replace(parsed, OPTION + parsed).replace(ran, used), encoding="utf-8")
    assert differing(copy) == {command}
    assert run(copy, USE_OPTION) == ""


REFUSED = """
import wpinq as wp
numbers = wp.source("numbers", int)
query = wp.parse("source numbers: int; var q = numbers.Distinct();")["q"]
with wp.Session(engine="reference") as session:
    session.protect(numbers, [1], budget=1)
    try:
        session.release(query.noisy_count(epsilon=1))
        raise SystemExit("an operator without a bound on rounding was released")
    except wp.PlanError as error:
        assert "Distinct" in str(error) and "rounding_units" in str(error) and "distinct" in str(error), error
    assert session.spent("numbers") == 0
"""


def test_an_operator_that_says_nothing_of_its_rounding_is_refused_before_the_debit(copy: Path) -> None:
    source = "wpinq/plan/operators/distinct.py"
    text = DISTINCT[source].replace("    def rounding_units(self) -> Fraction:\n        return Fraction(0)\n\n", "")
    assert text != DISTINCT[source]
    add(copy, {source: text})
    assert run(copy, REFUSED) == ""


WITHOUT_A_RULE = """
import wpinq as wp
numbers = wp.source("numbers", int)
query = wp.parse("source numbers: int; var q = PROGRAM;")["q"]
assert "NAME" in query.explain()
with wp.Session() as session:
    session.protect(numbers, [1], budget=1)
    try:
        session.release(query.noisy_count(epsilon=1, over=[1]))
        raise SystemExit("a plan without a rule was released")
    except wp.PlanError as error:
        assert "NAME" in str(error), error
    assert session.spent("numbers") == 0
"""


@pytest.mark.parametrize(
    ("files", "name", "program"),
    [(DISTINCT, "Distinct", "numbers.Distinct()"), (GCD, "gcd", "numbers.Select(x => gcd(x, 6))")],
)
def test_what_has_no_rule_in_sql_is_refused_by_name_before_the_debit(
    files: dict[str, str], name: str, program: str, copy: Path
) -> None:
    definition = next(iter(files))
    add(copy, {definition: files[definition]})
    assert run(copy, WITHOUT_A_RULE.replace("NAME", name).replace("PROGRAM", program)) == ""
