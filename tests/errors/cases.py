"""What the mistakes are made with."""

from __future__ import annotations

import contextlib
import datetime
import io
import math
import shlex
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl

import wpinq as wp
from wpinq import functions as F, graphs, histograms
from wpinq.cli.main import main

FILES = {
    "a.csv": "city,age\nUlm,31\n",
    "semicolons.csv": "n;m\n1;2\n",
    "tabs.csv": "n\tm\n1\t2\n",
    "p.wpq": 'source people(city: str, age: int);\nvar n = people.Select(p => p.city).NoisyCount(2, over: ["Ulm"]);\n',
}


def shell(line: str) -> None:
    """Run a command, and raise what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(shlex.split(line))
        except SystemExit as end:
            code = int(end.code or 0)
    if code:
        raise wp.errors.UsageError(f"{said.getvalue().strip()} [{code}]")


def names() -> dict[str, Any]:
    """A table of people under protection, a graph, and answers about them."""
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    shell("run p.wpq --ledger kept.db --source people=a.csv --budget people=4")
    people = wp.source("people", city=str, age=int, salary=float)
    other, edges = wp.source("other", a=str), wp.source("edges", src=int, dst=int)
    session, closed = wp.Session(), wp.Session()
    closed.close()
    session.protect(people, [("Ulm", 31, 1.0), ("York", 44, 2.0)], budget=100)
    cities, ages = people.select(lambda p: p.city), people.select(lambda p: p.age)
    listed = cities.noisy_count(1, over=["Ulm", "York"])
    record = people.select(lambda p: F.record(city=p.city)).noisy_count(1, over=[("Ulm",)])
    counts = people.by("city", keys=["Ulm", "York"]).agg(n=wp.count(), epsilon=1)
    return {
        "shell": shell,
        "h": histograms,
        "frame": pd.DataFrame({"city": ["Ulm"], "age": [31], "salary": [1.0]}),
        "table": session.release(counts),
        "visits": wp.source("visits", when=datetime.datetime, day=datetime.date),
        "owned": wp.source("owned", amount=float, person="id", at_most=3),
        "numbers": wp.source("numbers", n=int),
        "wp": wp,
        "F": F,
        "graphs": graphs,
        "math": math,
        "np": np,
        "pd": pd,
        "pl": pl,
        "nx": nx,
        "people": people,
        "other": other,
        "edges": edges,
        "cities": cities,
        "ages": ages,
        "listed": listed,
        "session": session,
        "closed": closed,
        "answers": session.release(listed),
        "record_answers": session.release(record),
        "asked": session.release(cities.noisy_count(2)),
    }
