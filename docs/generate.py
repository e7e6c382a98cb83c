"""Writes the pages of docs/operators from the registry, and the list of what must be trusted from the code.

`python docs/generate.py` writes them; with `--check` it writes nothing and exits 1 when a page is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the operators of this checkout, not of one installed

from wpinq.api.query import Query
from wpinq.plan.operator import REGISTRY, Operator
from wpinq.plan.operators.families import Keyed, PerRecord, RecordKeyed
from wpinq.plan.operators.merging import Combination

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


TRUSTED = tomllib.loads((ROOT / "docs" / "trusted.toml").read_text(encoding="utf-8"))
"""The files that a reviewer of the promise must read, by table, with the limit of each table in lines of code."""

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


def trusted_tables() -> list[tuple[dict[str, Any], list[tuple[str, int, str]]]]:
    """Each table of `trusted.toml` with its files: name, lines of code, and the first sentence of the docstring."""
    tables = []
    for table in TRUSTED["table"]:
        rows = []
        for name in table["files"]:
            path = ROOT / "wpinq" / f"{name}.py"
            idea = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
            rows.append((f"{name}.py", code_lines(path), idea))
        tables.append((table, rows))
    return tables


def architecture() -> str:
    """The page of the architecture with the tables of the trusted base as the code is."""
    tables = trusted_tables()
    sums = [sum(lines for _, lines, _ in rows) for _, rows in tables]
    parts = []
    for (table, rows), lines in zip(tables, sums, strict=True):
        parts.append(f"### {table['name']}: {lines} lines, of at most {table['limit']}\n\n{table['about']}\n\n")
        parts.append("| file | lines | first sentence |\n| --- | --- | --- |\n")
        parts.extend(f"| `{name}` | {count} | {idea} |\n" for name, count, idea in rows)
        parts.append("\n")
    parts.append(f"All tables together hold {sum(sums)} lines, of at most {TRUSTED['total']}.\n\n")
    return _LIST.sub(lambda _: "\n" + "".join(parts), ARCHITECTURE.read_text(encoding="utf-8"))


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
