"""What the mistakes are made with."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl

import wpinq as wp
from wpinq import functions as F
from wpinq import graphs


def names() -> dict[str, Any]:
    """A table of people under protection, a graph, and answers about them."""
    people = wp.source("people", city=str, age=int, salary=float)
    other, edges = wp.source("other", a=str), wp.source("edges", src=int, dst=int)
    session, closed = wp.Session(), wp.Session()
    closed.close()
    session.protect(people, [("Ulm", 31, 1.0), ("York", 44, 2.0)], budget=100)
    cities, ages = people.select(lambda p: p.city), people.select(lambda p: p.age)
    listed = cities.noisy_count(1, over=["Ulm", "York"])
    record = people.select(lambda p: F.record(city=p.city)).noisy_count(1, over=[("Ulm",)])
    return {
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
