"""Programs of untrusted mode: each in a process of its own, for only one without other threads may fork."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

PRELUDE = '''
import json, os, signal, sys, time
import wpinq as wp
import wpinq.functions as F
from wpinq import graphs
from wpinq.kernel.sandbox import process

class AtTheEnd(process.Clock):
    """A clock that goes to a moment as soon as there is no child at work: what is told is the moments."""

    def __init__(self):
        self.moment, self.slept = 1000.0, []

    def now(self):
        return self.moment

    def sleep_until(self, moment):
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass
        self.moment = max(self.moment, moment)
        self.slept.append(self.moment)

def opened(ledger=None, limits=None, **options):
    session = wp.Session(ledger, sandbox=limits or wp.Limits(), **options)
    session._releaser._evaluator.clock = AtTheEnd()
    return session

def moments(session):
    return session._releaser._evaluator.clock.slept

def outcome(work):
    """What an analyst sees but for noise: the error by its type and words, or the keys of the answers."""
    try:
        answers = work()
    except wp.WpinqError as error:
        return [type(error).__name__, str(error), repr(error.__cause__), repr(error.__context__)]
    return ["answers", repr(answers.keys) if hasattr(answers, "keys") else ""]

def tell(**found):
    print("\\n" + json.dumps(found))
'''

TWO_SOURCES = """
numbers = wp.source("numbers", int, records_at_most=100, cap=1000)
others = wp.source("others", int, records_at_most=100, cap=1000)
asked = numbers.select(lambda x: x % 2).noisy_count(1)
before = numbers.select(lambda x: x % 3).noisy_count(1)
other = others.select(lambda x: x % 2).noisy_count(1)

def protected(session, version="1"):
    session.protect(numbers, [1, 2, 3], budget=100, version=version)
    session.protect(others, [1, 2, 3], budget=100, version=version)
"""


def breaking(fault: str) -> str:
    """Two sources, and a look that does something else than to draw noise: `LaplaceSink.draw = broken`."""
    return (
        f"{TWO_SOURCES}\nfrom wpinq.sinks.laplace import LaplaceSink\n\n"
        f"def broken(sink, output, keys, scales, random):\n    {fault}\n"
    )


def told(program: str, *, status: int = 0) -> Any:
    """What a program told last, which ended with a status."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
