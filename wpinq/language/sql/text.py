"""The text of a SELECT: its limits, what sqlglot reads of it, and errors that show the place.

sqlglot is trusted with nothing: any text gives a tree or LanguageError, and a tree holds only what a reader asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.errors import LanguageError
from wpinq.language.syntax import Text, shorten

try:
    import sqlglot
    from sqlglot import exp, tokens
except ImportError:
    raise LanguageError("SQL needs sqlglot: pip install 'wpinq[sql]'") from None

TEXT_LIMIT = 50_000
"""The most characters of a statement."""
TOKENS_LIMIT = 10_000
"""The most words and signs of a statement."""
NESTING_LIMIT = 30
"""How deep parentheses and CASE may nest."""
DEPTH_LIMIT = 90
"""How deep the tree of a statement may be."""


class _Dialect(sqlglot.Dialect):
    """Standard SQL, where backticks quote names as double quotes do."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]


_PREFIX = re.compile(r"\s*WITH\s+DIFFERENTIAL_PRIVACY\b(\s*OPTIONS\s*\(([^()']*(?:'[^']*'[^()']*)*)\))?", re.IGNORECASE)
_OPTION = re.compile(r"\s*(\w+)\s*=\s*('[^']*'|[\w.+-]+)\s*\Z")

REFUSED_WORDS = {
    "CONTRIBUTION_BOUNDS_PER_GROUP": "bound the values themselves: SUM(CLAMP(x, 0, 100))",
    "CONTRIBUTION_BOUNDS_PER_ROW": "bound the values themselves: PERCENTILE_CONT(CLAMP(x, 0, 100), 0.5)",
    "OVER": "windows rank rows by one another: use a subquery for each person, or GROUP BY",
    "RECURSIVE": "write the steps one after another, each as a WITH of its own",
}
"""Words that no statement here may have, each with what to write."""


class SqlText(Text):
    """A statement as it was written, and its tree."""

    def __init__(self, text: str, name: str = "sql") -> None:
        super().__init__(text, name)
        if len(text) > TEXT_LIMIT:
            raise LanguageError(f"{name}: a statement has at most {TEXT_LIMIT:,} characters; split it")
        self.check()

    def at(self, node: exp.Expression | None, message: str) -> LanguageError:
        """The error at a node of the tree."""
        return self.error(message, 0 if node is None else position(node))

    def tree(self) -> tuple[exp.Expression, dict[str, tuple[str, int]]]:
        """The tree of the statement, and the options of differential privacy with their positions."""
        plain, options = self._split()
        self._check_tokens(plain)
        try:
            trees = sqlglot.parse(plain, read=_Dialect, error_level=sqlglot.ErrorLevel.IMMEDIATE)
        except sqlglot.ParseError as error:
            place = error.errors[0] if error.errors else {}
            raise self.error("this cannot be read as SQL here", self._place(place)) from None
        except Exception:  # whatever a parser of others raises on some text: its own words may be any
            raise self.error("this cannot be read as SQL", 0) from None
        found = [tree for tree in trees if tree is not None]
        if len(found) != 1:
            raise self.error(f"give one SELECT, not {len(found)} statements", 0)
        for node, depth in _levels(found[0]):
            if depth > DEPTH_LIMIT:
                raise self.at(node, f"this nests deeper than {DEPTH_LIMIT}, or chains more signs: split it over WITH")
        return found[0], options

    def _split(self) -> tuple[str, dict[str, tuple[str, int]]]:
        """The text with blanks for the options of the outermost SELECT, and these."""
        places = re.finditer(r"\bSELECT\b", self.text, re.IGNORECASE)
        prefixed = [(place, found) for place in places if (found := _PREFIX.match(self.text, place.end()))]
        if not prefixed:
            return self.text, {}
        (place, found), *more = prefixed
        depth = self.text.count("(", 0, place.start()) - self.text.count(")", 0, place.start())
        if more or depth:
            raise self.error("the options of differential privacy stand once, in the outermost SELECT", place.start())
        options: dict[str, tuple[str, int]] = {}
        start = found.start(2)
        for part in (found.group(2) or "").split(",") if found.group(1) else ():
            option = _OPTION.match(part)
            if option is None or option.group(1).lower() in options:
                raise self.error("write options once each: OPTIONS(epsilon = 1, max_groups_contributed = 3)", start)
            options[option.group(1).lower()] = option.group(2).strip("'"), start + option.start(1)
            start += len(part) + 1
        blank = re.sub(r"[^\n]", " ", found.group())
        return self.text[: found.start()] + blank + self.text[found.end() :], options

    def _check_tokens(self, text: str) -> None:
        try:
            words = _Dialect().tokenize(text)
        except Exception:
            raise self.error("a string, a name or a comment has no end", 0) from None
        if len(words) > TOKENS_LIMIT:
            raise self.error(f"a statement has at most {TOKENS_LIMIT:,} words and signs; split it", 0)
        depth = 0
        for word in words:
            said = word.text.upper()
            depth += (said in ("(", "[", "{", "CASE")) - (said in (")", "]", "}", "END"))
            if depth > NESTING_LIMIT:
                raise self.error(f"this nests deeper than {NESTING_LIMIT}: split it over WITH", word.start)
            if said in REFUSED_WORDS and word.token_type not in (tokens.TokenType.STRING, tokens.TokenType.IDENTIFIER):
                raise self.error(f"{said} has no meaning here: {REFUSED_WORDS[said]}", word.start)

    def _place(self, error: Any) -> int:
        """The position of the word at which sqlglot stopped."""
        lines = self.text.split("\n")
        line, column = error.get("line") or 1, error.get("col") or 1
        start = sum(len(each) + 1 for each in lines[: line - 1])
        return max(0, start + column - len(error.get("highlight") or " "))


def _levels(tree: exp.Expression) -> Iterator[tuple[exp.Expression, int]]:
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += ((child, depth + 1) for child in node.iter_expressions())


def position(node: exp.Expression) -> int:
    """Where a node begins: sqlglot knows it of names, literals and calls."""
    starts = [each.meta["start"] for each, _ in _levels(node) if "start" in each.meta]
    if starts or node.parent is None:
        return int(min(starts, default=0))
    return position(node.parent)


_CLAUSE_NAMES = {"order": "ORDER BY", "side": "an outer join", "laterals": "LATERAL", "columns": "a list of columns"}


def check_parts(text: SqlText, node: exp.Expression, *known: str, mends: dict[str, str] | None = None) -> None:
    """Refuse every part of a node that nobody reads: nothing written is left out in silence."""
    for name, value in node.args.items():
        if value and name not in known:
            place = value[0] if isinstance(value, list) else value
            clause = _CLAUSE_NAMES.get(name, name.rstrip("_").upper())
            mend = (mends or {}).get(name, f"leave {clause} out")
            raise text.at(place if isinstance(place, exp.Expression) else node, f"{clause} is refused: {mend}")


def number(text: SqlText, given: tuple[str, int], what: str) -> Fraction:
    """An option that is a number, exactly."""
    try:
        return Fraction(given[0]) if len(given[0]) < 100 and "e" not in given[0].lower() else Fraction(float(given[0]))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise text.error(f"{what} is a number, not {shorten(given[0])}", given[1]) from None
