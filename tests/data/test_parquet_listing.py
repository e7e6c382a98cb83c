"""Which files a folder or a pattern means: all of them, each once, or a refusal."""

from __future__ import annotations

import contextlib
import glob
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.declared import declared
from wpinq.data import read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, Type, record_type

VALUE = record_type({"v": INT})


def write_values(path: Path, *values: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"v": list(values)}), path)
    return path


def read(data: object, type_: Type = VALUE) -> dict[Any, float]:
    held = read_source(data, declared(type_, cap=10**6))
    return dict(held.items())


def refused(path: object, type_: Type = VALUE) -> str:
    with pytest.raises(SourceRejected) as caught:
        read(path, type_)
    assert caught.value.__context__ is None
    return str(caught.value)


def locking(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Let a call of the system fail in folders of this name: rights do not bind root, who may run the tests."""
    original = getattr(os, call)

    def locked(path: Any, *rest: Any, **more: Any) -> Any:
        if "locked" in Path(path).parts:
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *rest, **more)

    monkeypatch.setattr(os, call, locked)


@pytest.mark.parametrize(
    ("offered", "call"),
    [("", "scandir"), ("**/*.parquet", "scandir"), ("*/*.parquet", "scandir"), ("*/a.parquet", "lstat")],
)
def test_a_folder_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: str, call: str
) -> None:
    write_values(tmp_path / "ok" / "a.parquet", 1)
    write_values(tmp_path / "locked" / "a.parquet", 2)
    assert read(tmp_path / offered) == {(1,): 1.0, (2,): 1.0}
    with monkeypatch.context() as patch:
        locking(patch, call)
        message = refused(tmp_path / offered)
    assert f"a folder inside {tmp_path / offered} cannot be read: " in message
    assert "locked" not in message


@pytest.mark.parametrize("offered", ["", "**/*.parquet"])
def test_links_to_folders_are_followed_once(tmp_path: Path, offered: str) -> None:
    outer = tmp_path / "outer"
    write_values(outer / "here" / "a.parquet", 1)
    write_values(tmp_path / "elsewhere" / "deep" / "b.parquet", 2)
    (outer / "linked").symlink_to(tmp_path / "elsewhere")
    (outer / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "circle").symlink_to(outer)
    (outer / "here" / "of two names.parquet").symlink_to(outer / "here" / "a.parquet")
    assert read(outer / offered) == {(1,): 1.0, (2,): 1.0}
    (outer / "gone").symlink_to(tmp_path / "nowhere")
    assert "leads nowhere" in refused(outer / offered)


def test_a_pattern_finds_what_glob_finds(tmp_path: Path) -> None:
    for place in ("a/x1.parquet", "a/b/x2.parquet", "a/.hidden/x3.parquet", "a/_aside/x4.parquet", "x5.parquet"):
        write_values(tmp_path / place, int(place[-9]))
    write_values(tmp_path / "a" / ".x6.parquet", 6)
    patterns = ("*.parquet", "**/*.parquet", "*/*.parquet", "a/**/x?.parquet", "**/b/*.parquet", "**/**/x[12].parquet")
    for pattern in (*patterns, "a/.*.parquet", "*/.hidden/x*.parquet", "a/../*/b/x*.parquet", "*/no/x*.parquet"):
        found = sorted({int(name[-9]) for name in glob.glob(str(tmp_path / pattern), recursive=True)})
        with contextlib.chdir(tmp_path):
            for offered in (pattern, tmp_path / pattern) if found else ():
                assert sorted(read(offered)) == [(number,) for number in found], offered
            assert found or "no file that matches" in refused(pattern)


def test_a_pattern_may_match_folders(tmp_path: Path) -> None:
    for number in (1, 2):
        write_values(tmp_path / f"x{number}.parquet" / "part-0.parquet", number)
        (tmp_path / f"x{number}.parquet" / "_SUCCESS").touch()
    write_values(tmp_path / "x3.parquet", 3)
    for pattern in ("x*.parquet", "**/*.parquet"):
        assert read(tmp_path / pattern) == {(1,): 1.0, (2,): 1.0, (3,): 1.0}
    (tmp_path / "x4.parquet").mkdir()
    assert "matches a directory without .parquet files" in refused(tmp_path / "x*.parquet")


@pytest.mark.parametrize("offered", ["hive", "hive/*/*.parquet", "hive/year=2023/a.parquet"])
def test_names_of_folders_are_not_read_and_not_quoted(tmp_path: Path, offered: str) -> None:
    write_values(tmp_path / "hive" / "year=2023" / "a.parquet", 1)
    assert read(tmp_path / offered) == {(1,): 1.0}
    message = refused(tmp_path / offered, record_type({"v": INT, "year": INT}))
    assert "no column of the files is named 'year', only folders are (year=...)" in message
    assert "hive_partitioning=true" in message
    assert "2023" not in message
    assert "has no column named 'month'" in refused(tmp_path / offered, record_type({"month": INT}))
    table = f"read_parquet('{tmp_path}/hive/**/*.parquet', hive_partitioning=true)"
    relation = duckdb.connect().sql(f"SELECT * FROM {table}")
    assert read(relation, record_type({"v": INT, "year": INT})) == {(1, 2023): 1.0}
