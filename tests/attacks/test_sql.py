"""SQL through names, strings and unicode: what a user writes is no part of a statement, and means the same everywhere.

The attack: a constant, a key, a field, a source or a file is named so that it ends a literal or an identifier and goes
on as a statement, or so that the database compares it otherwise (case, accents, blanks at the end, wildcards, NUL).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.attacks.conftest import OnEngine
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines import reference

HOSTILE = [
    "'", "''", '"', '""', "`", "\\", "\\'", "' OR '1'='1", "'; DROP TABLE words; --", '"; DROP TABLE words; --',
    "--", "/*", "*/",
    "$1", "?", ":x", "%", "_", "%%", "{0}", "${x}", "$$", "E'\\n'", "\\x41", "\n", "\r\n", "\t", "\0", "a\0b", "a",
    "A", "a ", " a",
    "", " ", "é", "e\u0301", "ß", "SS", "ss", "ı", "I", "i", "İ", "ﬁ", "fi", "\u202e", "\ufeff", "\u200b", "🂡",
    "\U0010ffff",
    "NULL", "null", "true", "NaN", "select", "f0", "c0", "w", "a" * 3000,
]  # fmt: skip
"""No two are equal, whatever a database thinks of case, accents, blanks or wildcards."""

WORDS = wp.source("words", str)
PAIRS = wp.source("pairs", word=str, number=int)


def test_hostile_strings_are_records_like_others(engine: OnEngine) -> None:
    """As data: each is one record, and none is another."""
    data = {word: 1.0 + i for i, word in enumerate(HOSTILE)}
    assert engine(WORDS, words=data) == data
    joined = WORDS.join(WORDS, lambda w: w, lambda v: v, lambda w, v: w)
    found = engine(joined, words=data)
    assert found == reference.evaluate(joined.plan, {"words": data})
    assert set(found) == set(data)
    grouped = engine(WORDS.group_by(lambda w: w, lambda g: F.count(g)), words=dict.fromkeys(data, 1.0))
    assert {record[0] for record in grouped} == set(data)


def test_hostile_strings_are_constants_like_others(engine: OnEngine) -> None:
    """In the query: as what is compared, put together, split at, looked for and chosen."""
    data = {(word, i): 1.0 for i, word in enumerate(HOSTILE)}
    for some in (HOSTILE[i : i + 12] for i in range(0, len(HOSTILE), 12)):
        query = PAIRS.select(
            lambda p, some=some: tuple(
                (
                    p.word == word,
                    F.where(p.word == word, word, ""),
                    F.contains(p.word, word),
                    F.starts_with(p.word, word),
                    F.find(p.word, word),
                    p.word < word,
                )
                for word in some
            )
        )
        if not engine.refuses(query):
            assert engine(query, pairs=data) == reference.evaluate(query.plan, {"pairs": data})
        else:
            assert engine.name == "spark"
    parts = PAIRS.partition(lambda p: p.word, HOSTILE)
    for word in HOSTILE[::5]:
        assert engine(parts[word].select(lambda p: p.word), pairs=data) == {word: 1.0}


@pytest.mark.parametrize("name", ["duckdb", "reference"])
def test_hostile_strings_are_keys_like_others(name: str) -> None:
    """As keys of a release: as many answers as keys, each of its own."""
    asked = [word for word in HOSTILE if len(word) < 100]
    with wp.Session(engine=name) as session:
        session.protect(WORDS, asked, budget=10**6)
        answers = session.release(WORDS.noisy_count(10**5, over=asked))
        assert answers.keys == tuple(asked)
        assert all(abs(answers[word] - 1) < 0.01 for word in asked)  # noise of scale 1e-5


@for_each("name", ["x; DROP TABLE y", "x'", 'x"', "x y", "1x", "x-y", "", "x.y", "х", "__x__", "x\0"])
def test_no_name_of_a_source_or_field_is_more_than_a_name(name: str) -> None:
    """Names are plain identifiers: what could end one in a statement or forge a line of a bill is refused."""
    with pytest.raises(wp.WpinqError):
        wp.source("rows", {name: int, "other": int})
    with pytest.raises(wp.WpinqError):
        wp.source("rows", {"other": wp.source(name, int), name: str})


@pytest.mark.parametrize(
    "name", ["main", "temp", "select", "table", "c0", "f0", "w", "sqlite_master", "information_schema"]
)
def test_words_of_sql_are_names_like_others(engine: OnEngine, name: str) -> None:
    """A source and a field under a word of SQL, or under a name that the engine gives to columns of its own."""
    source = wp.source(name, {name: int, "other": int})
    query = source.group_by(lambda r: getattr(r, name), lambda g: F.count(g))
    data: dict[Any, float] = {(1, 2): 1.0, (1, 3): 1.0, (2, 2): 1.0}
    assert engine(query, **{name: data}) == {(1, 2): 0.5, (2, 1): 0.5}


@for_each("name", ["it's", 'a"b', "a; DROP TABLE x; --", "*", "?", "[1]", "{1}", "$x", "%s", "\\", "é", "-x", " "])
def test_no_name_of_a_file_or_column_is_more_than_a_name(tmp_path: Path, name: str) -> None:
    """The path of a file, and the columns of a table that are not declared."""
    folder = tmp_path / name
    folder.mkdir()
    path = folder / f"{name}.csv"
    quoted = name.replace('"', '""')
    path.write_text(f'word,"{quoted}",number\na,x,1\nb,y,2\n', encoding="utf-8")
    beside = tmp_path / "other.csv"
    beside.write_text("word,number\nz,9\n")
    held = wp.evaluate(PAIRS, {"pairs": path})
    assert dict(held) == {("a", 1): 1.0, ("b", 2): 1.0}
