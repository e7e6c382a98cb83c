"""Writes the pages of docs/operators from the registry, and the list of what must be trusted from the code.

`python docs/generate.py` writes them; with `--check` it writes nothing and exits 1 when a page is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the operators of this checkout, not of one installed

from wpinq.api.query import Query
from wpinq.plan.operator import REGISTRY, Combination, Keyed, Operator, PerRecord, RecordKeyed

if TYPE_CHECKING:
    from wpinq.plan.operator import Parameter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "operators"
NOTICE = "<!-- Written by docs/generate.py from the operator's docstring: change that, and run it again. -->"

_FAMILIES: tuple[tuple[type[Operator], str], ...] = (
    (PerRecord, "per record: linear in the weights, each record on its own"),
    (Combination, "combination: a sum of the inputs with coefficients 1 and -1"),
    (RecordKeyed, "keyed by the record: a record's output depends on its own weights only"),
    (Keyed, "keyed: the parts of each key are worked on independently"),
)
_ORDINALS = ("first", "second")


TRUSTED = (
    "noise/epsilon",
    "plan/node",
    "plan/operator",
    "plan/arithmetic",
    "expr/declarations",
    "plan/operators/source",
    "plan/lattice",
    "plan/sensitivity/records",
    "plan/sensitivity/change",
    "plan/sensitivity/weight_bound",
    "plan/sensitivity/proportions",
    "plan/sensitivity/closed_wedges",
    "plan/sensitivity/stability",
    "plan/demand",
    "plan/properties",
    "sinks/sink",
    "sinks/syntax",
    "sinks/laplace",
    "sinks/choose",
    "sinks/clamped_sum",
    "sinks/clamped_average",
    "sinks/geometric",
    "measure/measurement",
    "noise/scales",
    "kernel/ledger/nano_epsilon",
    "kernel/ledger/chain",
    "kernel/ledger/schema",
    "kernel/ledger/place",
    "kernel/ledger/head_file",
    "kernel/ledger/store",
    "kernel/ledger/accounts",
    "kernel/ledger/debit",
    "kernel/ledger/answers",
    "kernel/ledger/verification",
    "kernel/ledger/ledger",
    "kernel/ledger/backup",
    "kernel/protect",
    "data/people",
    "noise/exact_bernoulli",
    "noise/exponential",
    "noise/laplace",
    "noise/geometric",
    "noise/permute_and_flip",
    "sinks/graph_plans",
    "sinks/graph_counts",
    "sinks/largest_degree",
    "sinks/graph_ladders",
    "noise/ladder",
    "noise/sparse_bernoulli",
    "noise/conditional",
    "sinks/keys",
    "sinks/count_above",
    "kernel/prepare",
    "kernel/release",
    "kernel/noisy_evaluation",
    "kernel/sandbox/limits",
    "kernel/sandbox/admission",
    "kernel/sandbox/process",
    "kernel/sandbox/evaluation",
    "kernel/analysts",
    "kernel/session",
    "engines/contract",
)
"""What a reviewer of the promise must read, besides the operators and an engine, in this order."""

ARCHITECTURE = ROOT / "docs" / "architecture.md"
_LIST = re.compile(r"(?<=<!-- trusted -->\n).*?(?=<!-- end of trusted -->)", re.S)


def code_lines(path: Path) -> int:
    """The lines of code of a module: no blank ones, comments, docstrings or imports."""
    text = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for inner in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if (
                isinstance(inner, ast.Expr)
                and isinstance(inner.value, ast.Constant)
                and isinstance(inner.value.value, str)
            ):
                left_out.update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in lines if i not in left_out and line.strip() and not line.strip().startswith("#"))


def architecture() -> str:
    """The page of the architecture with the list of what must be trusted as it is."""
    rows = ["| | file | lines | what it is |", "| --- | --- | --- | --- |"]
    for number, name in enumerate(TRUSTED, 1):
        path = ROOT / "wpinq" / f"{name}.py"
        idea = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
        rows.append(f"| {number} | `{name}.py` | {code_lines(path)} | {idea} |")
    table = "\n".join(rows) + "\n"
    return _LIST.sub(lambda _: table, ARCHITECTURE.read_text(encoding="utf-8"))


def pages() -> dict[str, str]:
    """File name -> content, for every page of the folder."""
    operators = sorted(REGISTRY.values(), key=lambda operator: operator.name)
    return {"index.md": _index(operators), **{file_name(operator): _page(operator) for operator in operators}}


def file_name(operator: type[Operator]) -> str:
    """The page of an operator: its name in snake case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operator.name).lower() + ".md"


def text_form(operator: type[Operator]) -> str:
    """How a text program calls it, with optional arguments in brackets."""
    inside = ""
    for parameter in operator.parameters:
        inside += f"[, {parameter.name}]" if parameter.optional else f"{', ' if inside else ''}{parameter.name}"
    return f"{operator.name}({inside})"


def fluent_form(operator: type[Operator]) -> str:
    """How a chain calls it: the signature of the method, without types."""
    parameters = list(inspect.signature(getattr(Query, operator.method)).parameters.values())[1:]
    shown = [str(p.replace(annotation=p.empty)) for p in parameters]
    return f"{operator.method}({', '.join(shown)})"


def _index(operators: list[type[Operator]]) -> str:
    rows = "\n".join(
        f"| [`{text_form(operator)}`]({file_name(operator)}) | `{fluent_form(operator)}` | "
        f"{', '.join(_parameter_kind(p) for p in operator.parameters) or 'nothing'} | {operator.stability} |"
        for operator in operators
    )
    return f"""{NOTICE}

# Operators

Every operator maps weighted datasets to a weighted dataset and is *stable*: where its inputs change by some total
weight, its output changes by no more. So plans compose, and a plan's cost is counted along its paths
([budgets](../budgets.md)). The formulas are those of the paper; each page has an example that is run as a test, and
a proof of its stability and of [what floats round](../proofs/rounding.md).

| in text | as a method of `Query` | takes | stable because |
| --- | --- | --- | --- |
{rows}

`filter` is another name for the method `where`. What functions may compute is in [expressions](../expressions.md);
text programs are described in [the language](../language.md).
"""


def _page(operator: type[Operator]) -> str:
    body, example = _docstring(operator)
    parameters = "\n".join(f"- `{p.name}`: {_parameter_meaning(p, operator.arity)}" for p in operator.parameters)
    parameters = parameters or "None."
    note = ""
    if operator.method == "partition":
        note = "\n\nThe method takes all `keys` at once and gives a query for each; a text program names one `part`."
    return f"""{NOTICE}

# {operator.name}

{body}

| | |
| --- | --- |
| in text | `{text_form(operator)}` |
| as a method | `{fluent_form(operator)}` |
| family | {_family(operator)} |
| stable because | {operator.stability} |

## Parameters

{parameters}{note}

## Example

```python
{example}
```

What it [rounds, and why it is stable](../proofs/{file_name(operator)}): the proof. [All operators](index.md)
"""


def _docstring(operator: type[Operator]) -> tuple[str, str]:
    text = inspect.getdoc(operator) or ""
    body, found, example = text.partition("\nExamples\n--------\n")
    if not found:
        raise SystemExit(f"{operator.name} has no Examples section in its docstring")
    return body.strip(), example.strip()


def _family(operator: type[Operator]) -> str:
    return next(words for family, words in _FAMILIES if issubclass(operator, family))


def _parameter_kind(parameter: Parameter) -> str:
    kind = {"query": "a query", "constant": "a constant", "limit": "a number", "widths": "a number or a function"}
    words = kind.get(parameter.kind, "a function")
    return f"{words} (optional)" if parameter.optional else words


def _parameter_meaning(parameter: Parameter, arity: int) -> str:
    if parameter.kind == "query":
        words = "the other dataset."
    elif parameter.kind == "constant":
        words = "a public constant of the type of the key."
    elif parameter.kind == "limit":
        words = "the most elements that one record may have, a public positive integer. More are cut off."
    elif parameter.group:
        words = "a function of the list of the records of a group."
    elif len(parameter.of) > 1:
        words = "a function of a record of each dataset."
    elif arity > 1:
        words = f"a function of a record of the {_ORDINALS[parameter.of[0]]} dataset."
    else:
        words = "a function of a record."
    if parameter.kind == "widths":
        words = "a positive number, or a function of a record that gives a list of numbers."
    return f"{words} Optional." if parameter.optional else words


def stale(written: dict[str, str]) -> list[str]:
    """The names of the pages that differ from those on disk, that are missing, or that belong to no operator."""
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in on_disk.keys() | written.keys() if on_disk.get(name) != written.get(name))


def main(arguments: list[str]) -> int:
    written = pages()
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    names, page = stale(written), architecture()
    listed = page == ARCHITECTURE.read_text(encoding="utf-8")
    if arguments:
        for name in [f"operators/{name}" for name in names] + ([] if listed else ["architecture.md"]):
            sys.stderr.write(f"docs/{name} is stale: run python docs/generate.py\n")
        return 0 if listed and not names else 1
    ARCHITECTURE.write_text(page, encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        if name in written:
            (FOLDER / name).write_text(written[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
