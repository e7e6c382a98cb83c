"""Processes that are killed at an SQL statement: for the programs that tests run as children of their own."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any


def die_before_statement(number: int) -> None:
    """Have this process killed just before its n-th SQL statement on a file."""
    real, count = sqlite3.connect, 0

    def trace(statement: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(target: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(target, **options)
        if target != ":memory:":
            connection.set_trace_callback(trace)
        return connection

    sqlite3.connect = connect


def each_killed(child: Callable[[int], object], first: int = 1, step: int = 1) -> Iterator[int]:
    """Fork children, numbered, one after the other until one gets to its end: the numbers of those that were killed."""
    for number in itertools.count(first, step):
        process = os.fork()
        if process == 0:
            child(number)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status == 0:
            return
        assert status == -signal.SIGKILL, (number, status)
        yield number
