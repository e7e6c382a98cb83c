"""The SQL dialect: the text of each template, and all that changes for another database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpinq.errors import PlanError

#: The texts of numbers, as a template has them: with braces doubled.
INT_TEXT = r"[+-]?[0-9]{{1,19}}"
FLOAT_TEXT = r"[+-]?([0-9]{{1,400}}(\.[0-9]{{0,400}})?|\.[0-9]{{1,400}})([eE][+-]?[0-9]{{1,5}})?"

#: What every database here reads alike. What is written for DuckDB is none of another's until that says so.
STANDARD: dict[str, str] = {
    "equal": "({0} = {1})",
    "same": "({0} IS NOT DISTINCT FROM {1})",
    "less": "({0} < {1})",
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(NOT {0})",
    "where": "CASE WHEN {0} THEN {1} ELSE {2} END",
    "if_valid": "CASE WHEN {0} THEN {1} END",
    "is_null": "({0} IS NULL)",
    "is_present": "({0} IS NOT NULL)",
    "float_add": "({0} + {1})",
    "float_subtract": "({0} - {1})",
    "float_multiply": "({0} * {1})",
    "quotient": "({0} / {1})",
    "divide_float": "({0} / nullif({1}, CAST(0 AS DOUBLE)))",
    "modulo_by": "CASE WHEN {0} >= 0 THEN {0} % {1} ELSE {1} - 1 - ((-1 - {0}) % {1}) END",
    "bool_to_int": "CAST({0} AS BIGINT)",
    "int_to_float": "CAST({0} AS DOUBLE)",
    "concatenate": "CASE WHEN length({0}) + length({1}) <= {2} THEN {0} || {1} END",
    "lower": "translate({0}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')",
    "text_start": "least(greatest({0}, 0), 2147483647)",
    "float_list_sum": "wpinq_sum({0})",
    "divide_weights": "({0} / greatest({1}, CAST(1e-300 AS DOUBLE)))",
    "least": "least({0}, {1})",
    "greatest": "greatest({0}, {1})",
    "absolute": "abs({0})",
    "negate_weight": "(-{0})",
    "shares": "wpinq_share({0}, {1})",
    "in_part": "TRUE",
    "in_order": "{0}",
}

#: What stands for one part of so many in a statement that may be run in parts: all rows. No literal has such quotes.
ALL_ROWS = "% '1' = '0'"

_DUCKDB: dict[str, str] = {
    # arithmetic: in 128 bits, where no sum or product of two 64-bit integers overflows
    "int_add": "(CAST({0} AS HUGEINT) + {1})",
    "int_subtract": "(CAST({0} AS HUGEINT) - {1})",
    "int_multiply": "(CAST({0} AS HUGEINT) * CAST({1} AS HUGEINT))",
    "fit_int": "TRY_CAST({0} AS BIGINT)",
    # + 0.0 turns -0.0 into 0.0
    # DuckDB writes an argument of nullif twice: where floats nest, exponentially often
    "fit_float": "(CASE WHEN isfinite({0}) THEN {0} END + CAST(0 AS DOUBLE))",
    "floor_divide_by": "CASE WHEN {0} >= 0 THEN {0} // {1} ELSE -((-1 - {0}) // {1}) - 1 END",
    "floor_divide_128": "CASE WHEN {0} >= 0 THEN {0} // {1} ELSE -((-1 - {0}) // {1}) - 1 END",
    "signed_dividend": "CASE WHEN {1} < 0 THEN -CAST({0} AS HUGEINT) ELSE CAST({0} AS HUGEINT) END",
    "divisor": "nullif(abs(CAST({0} AS HUGEINT)), 0)",
    "float_to_int": "TRY_CAST(trunc({0}) AS BIGINT)",
    "str_to_int": f"CASE WHEN regexp_full_match({{0}}, '{INT_TEXT}') THEN TRY_CAST({{0}} AS BIGINT) END",
    "str_to_float": f"CASE WHEN regexp_full_match({{0}}, '{FLOAT_TEXT}') THEN TRY_CAST({{0}} AS DOUBLE) END",
    "to_text": "CAST({0} AS VARCHAR)",
    "find": "(instr({0}, {1}) - 1)",
    "text_stop": "CAST(least(greatest({0}, 0, CAST({0} AS HUGEINT) + {1}), 2147483647) AS BIGINT)",
    "text_between": "CASE WHEN {0} IS NOT NULL AND {3} IS NOT NULL AND {4} IS NOT NULL "
    "THEN substring({0}, {1} + 1, {2} - {1}) END",
    "split": "CASE WHEN {1} = '' THEN list_value({0}) WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    "THEN string_split({0}, {1}) END",
    "text_length": "length({0})",
    "list_length": "len({0})",
    "element": "CASE WHEN {1} >= 0 AND {1} < len({0}) THEN list_extract({0}, {1} + 1) END",
    "table_element": "CASE WHEN {1} >= 0 AND {1} < {2} THEN list_extract({0}, {1} + 1) END",
    "range": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN range({0}, {1}) END",
    "range_stop": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    "THEN CAST(least(CAST({0} AS HUGEINT) + {2}, {1}) AS BIGINT) END",
    "map": "list_transform({0}, {1})",
    "filter": "list_filter({0}, {1})",
    "flatten": "flatten({0})[1:{1}]",
    "sort": "list_sort({0}, 'ASC', 'NULLS FIRST')",
    "int_list_sum": "CASE WHEN {1} THEN TRY_CAST(coalesce(list_sum({0}), 0) AS BIGINT) END",
    "list_min": "list_min({0})",
    "list_max": "list_max({0})",
    "first": "{0}[1:{1}]",
    # sums and numbers on a grid: see `sums`
    "ceil": "ceil({0})",
    "trunc": "trunc({0})",
    "to_grid": "CAST({0} AS HUGEINT)",
    "from_grid": "CAST({0} AS DOUBLE)",
    "sum_of_ints": "sum({0})",
    "collect": "list({0})",
    "collect_all": "flatten(list({0}) OVER p)",
    "collected": "{0}",
    "numbers_below": "range({0})",
    "first_item": "{0}[1]",
    "among": "list_contains({0}, {1})",
    "in_part": f"(hash({{0}}) {ALL_ROWS})",
    "in_order": "(SELECT * FROM {0} ORDER BY {1})",  # sums by {1} follow one another, and stay in the cache
    # the search for repeats takes the square of the length: not where there are none
    "places": "CASE WHEN list_unique({0}) = len({0}) THEN range(1, len({0}) + 1) "
    "ELSE list_transform({0}, lambda x: list_position({0}, x)) END",
}


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


DUCKDB = Dialect("duckdb", {**STANDARD, **_DUCKDB})
