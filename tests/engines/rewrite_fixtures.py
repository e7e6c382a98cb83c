"""The fixtures of the rewrites: a program, and the statements that it runs without and with one of them.

A fixture is a file `rewrites/SWITCH/CASE.txt`:

    what it shows, in a few words
    -- also: SWITCH ...            the other rewrites that are on, without and with
    -- program
    the program; its query is `q`
    -- without
    the statements, as printed
    -- with
    the statements, as printed

    python -m tests.engines.rewrite_fixtures     writes the statements of all of them anew
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import wpinq as wp
from tests.support.relational import only
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Compiled, Plan
from wpinq.engines.sql.script import Rewrite

FOLDER = Path(__file__).parent / "rewrites"


@dataclass(frozen=True)
class Fixture:
    """One file, read."""

    path: Path
    shows: str
    also: tuple[str, ...]
    program: str
    without: str
    with_: str

    @property
    def switch(self) -> str:
        return self.path.parent.name

    @property
    def query(self) -> Query:
        query = wp.parse(self.program)["q"]
        assert isinstance(query, Query)
        return query

    def rewrites(self, on: bool) -> tuple[Rewrite, ...]:
        return only(*self.also, *([self.switch] if on else []))

    def printed(self, on: bool) -> str:
        """The statements, then the query of the output."""
        compiled = Plan(self.query.plan, self.rewrites(on)).program()
        lines = [f"{statement.step}: {broken(statement.sql)}" for statement in compiled.statements]
        text = "\n".join([*lines, f"output: {broken(compiled.query)}"])
        for name, number in numbers(compiled).items():
            text = text.replace(name, number)
        return text

    def text(self, without: str, with_: str) -> str:
        also = f"-- also: {' '.join(self.also)}\n" if self.also else ""
        return f"{self.shows}\n{also}-- program\n{self.program}\n-- without\n{without}\n-- with\n{with_}\n"


def numbers(compiled: Compiled) -> dict[str, str]:
    """What is printed for the name of each table: t1, t2, …, in the order in which they are made."""
    return {statement.creates: f"t{i}" for i, statement in enumerate(compiled.statements, 1)}


_CLAUSES = "FROM|WHERE|GROUP BY|HAVING|ORDER BY|UNION ALL|ANTI JOIN|WINDOW"


def broken(sql: str) -> str:
    """SQL with a line for each clause, indented by the queries it is in; powers of two as such."""
    written = ""
    queries: list[bool] = []  # for each parenthesis that is open, whether a query is in it
    for token in re.split(rf"(\(SELECT |[()]| (?:{_CLAUSES}) )", sql):
        if token == "(SELECT ":
            queries.append(True)
        elif token == "(":
            queries.append(False)
        elif token == ")":
            queries.pop()
        elif re.fullmatch(f" (?:{_CLAUSES}) ", token) and all(queries):
            token = "\n" + "  " * (1 + sum(queries)) + token.lstrip()
        written += token
    return re.sub(r"CAST\(([^ ()]+e[+-]\d+) AS DOUBLE\)", _power, written)


def _power(found: re.Match[str]) -> str:
    mantissa, exponent = math.frexp(float(found[1]))
    return f"2^{exponent - 1}" if mantissa == 0.5 else found[0]


def read(path: Path) -> Fixture:
    parts = re.split(r"^-- (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    also: tuple[str, ...] = ()
    held = {}
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        name, _, words = head.partition(":")
        if name == "also":
            also = tuple(words.split())
        else:
            held[name] = body.strip()
    program, without, with_ = held["program"], held.get("without", ""), held.get("with", "")
    return Fixture(path, parts[0].strip(), also, program, without, with_)


def fixtures() -> list[Fixture]:
    return [read(path) for path in sorted(FOLDER.glob("*/*.txt"))]


def main() -> None:
    for fixture in fixtures():
        fixture.path.write_text(fixture.text(fixture.printed(False), fixture.printed(True)), encoding="utf-8")


if __name__ == "__main__":
    main()
