"""Statements of SQL to try: mutated ones of the corpus, and what is asked of them."""

from __future__ import annotations

import random
import re

from hypothesis import strategies as st

import wpinq as wp
from tests.support.sql_statements import ACCEPTED, ATOMS, REFUSED, SOURCES

SEEDS = [
    *(case.text for case in (*ACCEPTED, *REFUSED)),
    *(f"SELECT COUNT(*) AS n FROM people WHERE {atom}" for atom in ATOMS),
]
_TOKEN = re.compile(r"\s+|\w+|'[^']*'|.", re.S)
_WORDS = [word for text in SEEDS for word in _TOKEN.findall(text)]
_WORDS += [
    "(",
    ")",
    "'",
    '"',
    "`",
    ";",
    "--",
    "/*",
    "NULL",
    "CASE",
    "END",
    "OVER",
    "LATERAL",
    "UNNEST",
    "*",
    "::",
    "[",
    "{",
    "$",
    "?",
    "@x",
    ".",
    "1e999",
    "99999999999999999999",
    "0",
    "-",
    "\x00",
    "é",
    "INTERVAL",
    "EXTRACT",
    "CAST",
    "AS",
    "DOUBLE",
    "STRUCT",
    "ARRAY",
    "ROLLUP",
    "CUBE",
    "LIMIT",
    "NOT",
    "IS",
    "TRUE",
    "FLOOR(",
    "CLAMP(",
    "SUBSTR(",
    "PIVOT",
    "VALUES",
    "INSERT",
    "DROP",
    "EXISTS",
    "ANY",
    "ALL",
    "LEFT",
    "OUTER",
    "NATURAL",
    "CROSS",
    "JOIN",
    "LEAST(GREATEST(",
]


def mutated(chosen: random.Random) -> str:
    """A statement, some of its words removed, doubled, exchanged, or taken from elsewhere."""
    tokens = _TOKEN.findall(chosen.choice(SEEDS))
    for _ in range(chosen.choice([1, 1, 1, 1, 2, 2, 3, 5, 12])):
        at = chosen.randrange(len(tokens) + 1)
        match chosen.randrange(6):
            case 0:
                del tokens[at : at + chosen.randrange(1, 4)]
            case 1:
                tokens.insert(at, chosen.choice(_WORDS))
            case 2:
                tokens[at : at + 1] = [chosen.choice(_WORDS)]
            case 3:
                other = _TOKEN.findall(chosen.choice(SEEDS))
                start = chosen.randrange(len(other))
                tokens[at : at + chosen.randrange(4)] = other[start : start + chosen.randrange(1, 12)]
            case 4:
                tokens[at:at] = tokens[at : at + chosen.randrange(1, 8)] * chosen.choice([1, 2, 3, 30])
            case _:
                text, place = "".join(tokens), chosen.randrange(len("".join(tokens)) + 1)
                code = chosen.choice([chosen.randrange(32, 127), chosen.randrange(0x250)])
                tokens = _TOKEN.findall(text[:place] + chr(code) + text[place + chosen.randrange(2) :])
    return "".join(tokens)


STATEMENTS = st.integers(0, 2**64).map(lambda seed: mutated(random.Random(seed)))


def check_statement(text: str) -> None:
    """A text is a table, whose program means the same, or a LanguageError that can be read."""
    try:
        asked = wp.sql(text, SOURCES, epsilon=None if "OPTIONS" in text else 1)
        read = wp.parse(wp.unparse({"sql": asked}))["sql"]
        assert [each.digest for each in read.measurements] == [each.digest for each in asked.measurements]
    except wp.LanguageError as error:
        assert len(str(error)) < 3_000
        assert error.__cause__ is None
