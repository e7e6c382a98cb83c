"""The SQL dialect: all that changes for another database; the texts are in `templates.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wpinq.errors import PlanError

#: The templates of each database, and "standard", which every database here reads alike.
TEXTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("templates.toml").read_text(encoding="utf-8"))
STANDARD = TEXTS["standard"]

#: What stands for one part of so many in a statement that may be run in parts: all rows. No literal has such quotes.
ALL_ROWS = "% '1' = '0'"


class Unsupported(PlanError):
    """What there is no rule or no text for; says what, and not in which step."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """How terms and names are written: as DuckDB reads them, where nothing else is said.

    Attributes
    ----------
    name : str
        The database.
    templates : mapping
        Template name to text, with `{0}`, `{1}`, … for its arguments.
    lambda_ : str
        A function of one parameter, with `{name}` and `{body}`.
    outer_only : frozenset of str
        Templates that cannot stand in such a function: a gap.
    sorts : bool
        Whether the query of the output puts it in canonical order, where SQL can; else who reads it must.
    """

    name: str
    templates: Mapping[str, str]
    lambda_: str = "lambda {name}: {body}"
    outer_only: frozenset[str] = frozenset()
    sorts: bool = True

    def template(self, name: str) -> str:
        """The text of a template; of one with a static part, too, which is written `name:part`."""
        stem, colon, part = name.partition(":")
        if stem == "struct_field":
            return self.field("{0}", f"f{part}")
        if stem == "cast":
            return f"CAST({{0}} AS {self.type_name(part)})"
        if stem == "sql":
            return self.own(part)
        if not colon:
            if name in self.templates:
                return self.templates[name]
            raise Unsupported(f"there is no text for {name!r} in the SQL of {self.name}")
        places = [f"{{{i}}}" for i in range(int(part))]
        if stem == "struct":
            return self.struct({f"f{i}": place for i, place in enumerate(places)} or {"f": "TRUE"})
        written = {"grid_sum": self.grid_sum, "grid_part": self.grid_part}.get(stem, self.list_of)
        return written(places)

    def own(self, text: str) -> str:
        """A rule's own text, written for DuckDB."""
        return text

    def type_name(self, generic: str) -> str:
        """The name of a type that `shape.type_name` gives."""
        return generic

    def grid_sum(self, values: Sequence[str]) -> str:
        """The sum of one or several values a row, on the grid of `sums`."""
        return f"CAST({self.grid_part(values)} AS DOUBLE)"

    def grid_part(self, values: Sequence[str]) -> str:
        """The same sum as an integer, of which several are added up by `grid_whole`."""
        return f"sum({' + '.join(f'CAST({value} AS HUGEINT)' for value in values)})"

    def grid_whole(self, part: str) -> str:
        """The sum of integers on the grid, as a float."""
        return f"CAST(sum({part}) AS DOUBLE)"

    def list_of(self, items: Sequence[str]) -> str:
        """A list."""
        return f"list_value({', '.join(items)})"

    def write(self, name: str, *arguments: str) -> str:
        """A template filled with texts."""
        return self.template(name).format(*arguments)

    def literal(self, text: str) -> str:
        """A constant, given as DuckDB has it."""
        return text

    def struct(self, parts: Mapping[str, str]) -> str:
        """A struct of texts by field name."""
        return f"struct_pack({', '.join(f'{name} := {text}' for name, text in parts.items())})"

    def field(self, text: str, name: str) -> str:
        """A field of a struct."""
        return f"struct_extract({text}, '{name}')"

    def unnest(self, lists: Mapping[str, str]) -> str:
        """Columns by name, of rows made of the elements of lists of one length, side by side."""
        return ", ".join(f"unnest({text}) AS {name}" for name, text in lists.items())

    def quote(self, name: str) -> str:
        """An identifier."""
        return '"' + name.replace('"', '""') + '"'

    def text_literal(self, text: str) -> str:
        """A string constant."""
        pieces = ["'" + piece.replace("'", "''") + "'" for piece in text.split("\0")]
        return pieces[0] if len(pieces) == 1 else "(" + " || chr(0) || ".join(pieces) + ")"

    def table(self, numbers: Sequence[str], type_name: str) -> str:
        """A list of numbers as one constant, whose text the database reads once.

        An expression for each number would take longer.
        """
        return f"CAST('[{', '.join(numbers)}]' AS {type_name})"


DUCKDB = Dialect("duckdb", {**STANDARD, **TEXTS["duckdb"], "in_part": f"(hash({{0}}) {ALL_ROWS})"})
