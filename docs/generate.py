"""Writes the page of the operators from the registry, and the list of what must be trusted from the code.

`python docs/generate.py` writes them; with `--check` it writes nothing and exits 1 when one is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the operators of this checkout, not of one installed

from wpinq.api.query import Query
from wpinq.plan.operator import REGISTRY, Operator

if TYPE_CHECKING:
    from wpinq.plan.operator import Parameter

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
NOTICE = "<!-- Written by docs/generate.py from the docstrings of the operators: change those, and run it again. -->"
IMPORTS = ">>> import wpinq as wp", ">>> from wpinq import functions as F"

PLAIN = "a function of a record"
"""The meaning of a parameter that the page does not describe."""

_ORDINALS = ("first", "second")

TRUSTED = tomllib.loads((DOCS / "trusted.toml").read_text(encoding="utf-8"))
"""The files that a reviewer of the promise must read, by table, with the limit of each table in lines of code."""

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


def trusted_tables() -> list[tuple[dict[str, Any], list[tuple[str, int]]]]:
    """Each table of `trusted.toml` with its files: name and lines of code."""
    return [
        (table, [(f"{name}.py", code_lines(ROOT / "wpinq" / f"{name}.py")) for name in table["files"]])
        for table in TRUSTED["table"]
    ]


def architecture() -> str:
    """The page of the architecture with the lists of the trusted base as the code is."""
    tables = trusted_tables()
    sums = [sum(lines for _, lines in rows) for _, rows in tables]
    parts = []
    for (table, rows), lines in zip(tables, sums, strict=True):
        about = f"**{table['name']}**, {lines} of at most {table['limit']} lines. {table['about']}"
        files = " ".join(name for name, _ in rows)
        parts.append(f"{textwrap.fill(about, 120)}\n\n```text\n{textwrap.fill(files, 86)}\n```\n\n")
    parts.append(f"All lists together hold {sum(sums)} lines, of at most {TRUSTED['total']}.\n\n")
    return _LIST.sub(lambda _: "\n" + "".join(parts), (DOCS / "architecture.md").read_text(encoding="utf-8"))


def pages() -> dict[str, str]:
    """File name -> content, for every page that is written."""
    return {"operators.md": operators(), "architecture.md": architecture()}


def text_form(operator: type[Operator]) -> str:
    """How a text program calls it, with optional arguments in brackets."""
    inside = ""
    for parameter in operator.parameters:
        inside += f"[, {parameter.name}]" if parameter.optional else f"{', ' if inside else ''}{parameter.name}"
    return f"{operator.name}({inside})"


def fluent_form(operator: type[Operator]) -> str:
    """How a chain calls it: the signature of the method, without types."""
    parameters = list(inspect.signature(getattr(Query, operator.method)).parameters.values())[1:]
    return f"{operator.method}{inspect.Signature([p.replace(annotation=p.empty) for p in parameters])}"


def operators() -> str:
    """The page of the operators, each with its meaning, signatures, stability and an example."""
    sections = (_section(operator) for _, operator in sorted(REGISTRY.items()))
    imports = "\n".join(IMPORTS)
    return f"""{NOTICE}

# Operators

```python
{imports}
>>> people = wp.source("people", name=str, age=int)
>>> adults = people.where(lambda p: p.age >= 18).select(lambda p: p.age)
>>> wp.evaluate(adults, {{"people": [("Ada", 36), ("Bo", 12), ("Cy", 36)]}})
WeightedDataset({{36: 2.0}})
```

In the formulas, which are those of the paper, `A` is the dataset that the operator is called on and `B` is `other`.
The weight of a record `x` in `A` is `A(x)`, and `‖A‖` is the sum of all absolute weights.

Every operator is [*stable*](stability.md): the output changes by at most the total change of the inputs. Each section
gives the reason and links to the proof, which also bounds the [rounding of floats](proofs/rounding.md).

An argument without a description is {PLAIN}. [Columns by name](tables.md#columns-by-name) may stand for functions. A
join by name gives the columns of both sides. A right column gets the suffix `_right` where the left has its name too.
The method `where` is also called `filter`.

{"".join(sections).rstrip()}
"""


def _section(operator: type[Operator]) -> str:
    body, example = _docstring(operator)
    meanings = {p.name: _parameter_meaning(p, operator.arity) for p in operator.parameters if p.kind != "query"}
    parameters = "".join(f"- `{name}`: {words}\n" for name, words in meanings.items() if words != PLAIN)
    proof = f"proofs/{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', operator.name).lower()}.md"
    return f"""## {operator.name}

{body}

- Text: `{text_form(operator)}`
- Python: `{fluent_form(operator)}`
{parameters}- Stability: {operator.stability} ([proof]({proof}))

```python
{example}
```

"""


def _docstring(operator: type[Operator]) -> tuple[str, str]:
    text = inspect.getdoc(operator) or ""
    body, found, example = text.partition("\nExamples\n--------\n")
    if not found:
        raise SystemExit(f"{operator.name} has no Examples section in its docstring")
    return body.strip(), "\n".join(line for line in example.strip().splitlines() if line not in IMPORTS)


def _parameter_meaning(parameter: Parameter, arity: int) -> str:
    if parameter.kind == "constant":
        words = "a public constant of the type of the key"
    elif parameter.name == "divisor":
        words = "a public positive integer, the least number that elements are divided by"
    elif parameter.kind == "limit":
        words = "a public positive integer, where further elements of a record are cut"
    elif parameter.kind == "widths":
        words = "a positive number, or a function of a record that returns a list of numbers"
    elif parameter.group:
        words = "a function of the list of a group's records"
    elif len(parameter.of) > 1:
        words = "a function of a record of each dataset"
    elif arity > 1:
        words = f"a function of a record of the {_ORDINALS[parameter.of[0]]} dataset"
    else:
        words = PLAIN
    return f"{words} (optional)" if parameter.optional else words


def stale(written: dict[str, str]) -> list[str]:
    """The names of the pages that are missing or differ from those on disk."""
    on_disk = {name: DOCS / name for name in written}
    return [n for n, p in on_disk.items() if not p.exists() or p.read_text(encoding="utf-8") != written[n]]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    written = pages()
    names = stale(written)
    for name in names:
        if arguments:
            sys.stderr.write(f"docs/{name} is stale: run python docs/generate.py\n")
        else:
            (DOCS / name).write_text(written[name], encoding="utf-8")
    return 1 if arguments and names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
