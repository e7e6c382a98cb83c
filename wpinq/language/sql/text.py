"""The text of a SELECT: its limits, its tree by sqlglot, and errors that show the place.

Any text gives a tree or LanguageError. A part of the tree that no reader asks for is refused, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import sqlglot
from sqlglot import TokenType, exp, tokens

from wpinq.errors import LanguageError
from wpinq.language.syntax import Text

#: The most characters of a statement.
TEXT_LIMIT = 50_000
#: How deep parentheses and CASE may nest.
NESTING_LIMIT = 30
#: The most steps of sqlglot over one statement.
STEP_LIMIT = 50_000
#: How deep the tree of a statement may be.
DEPTH_LIMIT = 90
#: What to write in place of parts of the tree.
MENDS = {
    "order": "ORDER BY is refused: answers are noisy, so sort the released table",
    "limit": "LIMIT is refused: answers are noisy, so cut the released table",
    "distinct": "DISTINCT is refused: COUNT(DISTINCT x) counts values, UNION ALL adds the weights of equal rows",
    "having": "HAVING is refused in a subquery: it compares the noisy count of a released table",
    "side": "an outer join is refused: write JOIN ... USING, and count the other rows in a table of their own",
    "qualify": "windows are refused: use a subquery for each person, or GROUP BY",
    "query": "values from a subquery depend on the data: list constants, city IN ('Oslo', 'Rome'), or JOIN",
    **dict.fromkeys(("rollup", "cube", "grouping_sets"), "release one table for each set of columns"),
}
_WORDS = {
    "CONTRIBUTION_BOUNDS_PER_GROUP": "bound the values: SUM(CLAMP(x, 0, 100))",
    "CONTRIBUTION_BOUNDS_PER_ROW": "bound the values: PERCENTILE_CONT(CLAMP(x, 0, 100), 0.5)",
    "OVER": MENDS["qualify"],
}
_OPENED, _CLOSED = ("(", "[", "{", "CASE"), (")", "]", "}", "END")
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_PREFIX = re.compile(r"\bSELECT(\s+WITH\s+DIFFERENTIAL_PRIVACY\b(?:\s*OPTIONS\s*\(([^()]*)\))?)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?")
_OPTION = re.compile(r"\s*(\w+)\s*=\s*'?([\w.+-]+)'?\s*")


class _Dialect(sqlglot.Dialect):
    """Standard SQL, where backticks quote names as double quotes do."""

    STRICT_JSON_PATH_SYNTAX = False  # no warning that quotes the text

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]

    class Parser(sqlglot.Parser):
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1  # it tries several ways, within one another: joins without ON take twice as many for each
            if self.steps > STEP_LIMIT:
                raise _TooMuch
            super()._advance(times)


class _TooMuch(Exception):
    """A text takes more steps to read than it may."""


class SqlText(Text):
    """A statement as it was written."""

    def at(self, node: exp.Expr, message: str) -> LanguageError:
        """The error at a node of the tree."""
        return self.error(message, position(node))

    def tree(self) -> tuple[exp.Expr, dict[str, str]]:
        """The tree of the statement, and its options of differential privacy."""
        if len(self.text) > TEXT_LIMIT:
            raise LanguageError(f"{self.name}: a statement has at most {TEXT_LIMIT:,} characters; split it")
        self.check()
        plain, depth, selects = self.text, 0, {}
        try:
            words = _Dialect().tokenize(plain)
            if not words or words[0].text.upper() not in ("SELECT", "WITH", "("):
                raise self.error("only SELECT is read here: SELECT COUNT(*) AS n FROM people", 0)
            for word in (each for each in words if each.token_type not in _QUOTED):
                said = word.text.upper()
                depth += (said in _OPENED) - (said in _CLOSED)
                if said == ";" and word is not words[-1]:
                    raise self.error("give one SELECT, and not several statements", word.start)
                if depth > NESTING_LIMIT:
                    raise self.error(f"this nests deeper than {NESTING_LIMIT}: split it over WITH", word.start)
                if said in _WORDS:
                    raise self.error(f"{said} has no meaning here: {_WORDS[said]}", word.start)
                if word.token_type == TokenType.SELECT:
                    selects[word.start] = depth
            plain, options = self._without_options(selects)
            parsed = sqlglot.parse(plain, read=_Dialect, error_level=sqlglot.ErrorLevel.IMMEDIATE)
        except LanguageError:
            raise
        except _TooMuch:
            raise self.error("this takes too many steps to read: give each JOIN its USING, or split it", 0) from None
        except Exception as error:  # of a parser by others, on any text; its own words may be any
            place = error.errors[0] if isinstance(error, sqlglot.ParseError) and error.errors else {}
            lines = plain.split("\n")[: (place.get("line") or 1) - 1]
            at = sum(map(len, lines)) + len(lines) + (place.get("col") or 1) - len(place.get("highlight") or " ")
            raise self.error("this cannot be read as SQL here", max(0, at)) from None
        found = next((tree for tree in parsed if tree is not None), exp.Null())
        for node, depth in levels(found):
            if depth > DEPTH_LIMIT:
                raise self.at(node, f"this nests deeper than {DEPTH_LIMIT}, or chains more signs: split it over WITH")
            if any(needed and node.args.get(part) is None for part, needed in node.arg_types.items()):
                raise self.at(node, f"{node.key.upper()} has too little in it: a value is missing")
            if isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(node.this):
                raise self.at(node, "this is no number, or has too many digits")
        return found, options

    def _without_options(self, selects: dict[int, int]) -> tuple[str, dict[str, str]]:
        """The text with blanks for the options of the outermost SELECT, and these."""
        found = [each for each in _PREFIX.finditer(self.text) if each.start() in selects]
        if not found:
            return self.text, {}
        if len(found) > 1 or selects[found[0].start()]:
            raise self.error("options of privacy stand once, in the outermost SELECT", found[0].start())
        prefix = found[0]
        parts = [_OPTION.fullmatch(part) for part in prefix[2].split(",")] if prefix[2] is not None else []
        options = {part[1].lower(): part[2] for part in parts if part is not None}
        if len(options) < len(parts):
            raise self.error("write options once each: OPTIONS(epsilon = 1, delta = 0)", prefix.start(1))
        blank = re.sub(r"[^\n]", " ", prefix[1])
        return self.text[: prefix.start(1)] + blank + self.text[prefix.end(1) :], options


def levels(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    """Every node of a tree, with its depth."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += ((child, depth + 1) for child in node.iter_expressions())


def position(node: exp.Expr) -> int:
    """Where a node begins: sqlglot knows it of names, literals and calls."""
    starts = [int(each.meta["start"]) for each, _ in levels(node) if "start" in each.meta]
    return min(starts) if starts else 0 if node.parent is None else position(node.parent)


def check_parts(text: SqlText, node: exp.Expr, *known: str) -> None:
    """Refuse every part of a node that nobody reads."""
    for name, value in node.args.items():
        if value and name not in known:
            place = value[0] if isinstance(value, list) else value
            mend = MENDS.get(name, f"{name.rstrip('_').upper()} is refused here: leave it out")
            raise text.at(place if isinstance(place, exp.Expr) else node, mend)
