"""What is kept in files: answers and marginals, the notes of a synthesis, its checkpoints, ledgers."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import wpinq as wp
from tests.fuzz import documents, files
from tests.fuzz.following import follow
from wpinq.errors import WpinqError
from wpinq.graphs.synthesis.fit import FORMAT, FORMAT_VERSION, load_run
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.mcmc.settings import Checkpoint, Settings


@cache
def answers() -> list[Any]:
    """Answers of every sink, and marginals, as documents."""
    counted = wp.source("numbers", int, facts=["unit_weights"])
    numbers, words = wp.source("numbers", int), wp.source("words", str)
    edges = wp.source("edges", src=int, dst=int, unit_weight=2, facts=["symmetric", "unit_weights"])
    people = wp.source("people", age=int, city=str, member=bool)
    data: dict[str, Any] = {"numbers": [1, 2, 3], "words": ["a", "b"], "edges": [(1, 2), (2, 1)]}
    data["people"] = [(1, "a", True), (2, "b", False)]
    asked = [
        numbers.noisy_count(1, over=[1, 3]),
        counted.select(lambda x: x % 3).geometric_count(1, over=[1, 2]),
        numbers.noisy_sum(1, lambda x: x, 0, 5),
        numbers.noisy_average(1, lambda x: x, 0, 5),
        numbers.median(1, [1, 2, 3]),
        words.most_common(1, ["a", "b"]),
        edges.select(lambda e: e).read_as("edges").noisy_count(0.5, over=[(1, 2), (2, 2)]),
    ]
    found = [wp.simulate(measurement, data, seed=1).to_json() for measurement in asked]
    cells = [wp.attribute("age", bins=[0, 1, 3]), wp.attribute("city", categories=["a", "b"]), "member"]
    found.append(wp.simulate(people.marginals(cells, epsilon=1), data, seed=1).to_json())
    with wp.Session() as session:
        session.protect(words, ["a", "b"] * 9, budget=10)
        found.append(session.release(words.noisy_count(1)).at(["a", "c"]).to_json())
    return found


def check_answers(document: Any) -> None:
    """A document is answers or marginals that can be shown and kept again, or an AnswersError."""
    with contextlib.suppress(wp.AnswersError):
        found = wp.Answers.from_json(document)
        again = wp.Answers.from_json(found.to_json())
        assert documents.written(again.to_json()) == documents.written(found.to_json())
        with contextlib.suppress(WpinqError):
            assert str(found) + found._repr_html_()
        follow(found.plan, engines=False)
    with contextlib.suppress(wp.AnswersError):
        tables = wp.MarginalTables.from_json(document)
        with contextlib.suppress(WpinqError):
            assert str(tables) + tables._repr_html_()


# --- notes and checkpoints --------------------------------------------------------------------------------------------

RUN = "run.json"


@cache
def notes() -> list[Any]:
    """What stands in the folder of a synthesis."""
    known = {"format": FORMAT, "version": FORMAT_VERSION, "method": "tags", "nodes": None}
    settings = Settings(steps=10).to_json()
    return [{**known, "answers": names, "settings": settings} for names in (["nodes"], [])]


def check_note(document: Any) -> None:
    """A note is read, or a CheckpointError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "answers").mkdir()
        (folder / "answers" / "nodes.json").write_text(json.dumps(answers()[0]))
        (folder / RUN).write_text(json.dumps(document))
        method, settings, *_ = load_run(folder)
        method.check(settings)


@cache
def checkpoint() -> bytes:
    """A checkpoint, as a file."""
    import io

    packed = io.BytesIO()
    header = {"format": "wpinq chain", "version": 1, "digest": "d", "steps": 10, "trace": {}}
    np.savez(packed, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **{"state.a": np.arange(5)})
    return packed.getvalue()


def any_bytes() -> st.SearchStrategy[bytes]:
    """Files that should hold answers, marginals or a checkpoint."""
    sound = [json.dumps(document).encode() for document in answers()]
    cut = [content[: len(content) // 2] for content in sound]
    return files.mutated([checkpoint(), *sound, *cut, b"[" * 100_000, b"null", b'{"a":' * 50_000, b"1" * 10_000])


def check_bytes(content: bytes) -> None:
    """A file holds answers, marginals or a checkpoint, or there is an error that explains."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.json"
        path.write_bytes(content)
        with contextlib.suppress(WpinqError):
            wp.Answers.load(path)
        with contextlib.suppress(WpinqError):
            wp.MarginalTables.load(path)
        with contextlib.suppress(WpinqError):
            Checkpoint(path, "d", 10).load()


# --- ledgers ----------------------------------------------------------------------------------------------------------


@cache
def ledger() -> bytes:
    """A ledger with a debit and answers, in one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        words = wp.source("words", str)
        with wp.Session(path) as session:
            session.protect(words, ["a", "b"], budget=10)
            session.release(words.noisy_count(1, over=["a", "c"]), label="first")
            session.release(words.partition(lambda w: w, ["a", "b"])["a"].noisy_count(1, over=["a"]))
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


@st.composite
def ledger_bytes(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """A ledger with some bytes changed, and the file beside it."""
    content = bytearray(draw(files.mutated([ledger()])) if not draw(st.integers(0, 2)) else ledger())
    for _ in range(draw(st.integers(0, 4))):
        if content:
            at = draw(st.integers(0, len(content) - 1))
            piece = draw(st.sampled_from([b"\0", b"\xff", b"9", b"-", b"{", b'"', b"\x7f\xff\xff\xff", b"\0" * 8]))
            content[at : at + len(piece)] = piece
    return bytes(content), draw(st.one_of(st.none(), st.binary(max_size=80)))


def check_ledger(given: tuple[bytes, bytes | None]) -> None:
    """A file is a ledger that is read to its end and takes a debit, or a LedgerError."""
    content, head = given
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        path.write_bytes(content)
        if head is not None:
            path.with_name("ledger.db-head").write_bytes(head)
        words = wp.source("words", str)
        with Ledger(path) as opened:
            list(opened.entries()), opened.accounts(), opened.balances(), opened.events()
            opened.plans()
            opened.verify()
        with wp.Session(path) as session:
            session.protect(words, ["a", "b"], budget=10)
            session.release(words.noisy_count(1, over=["a", "z"]))
