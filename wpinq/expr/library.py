"""The functions that lambdas call: `wp.record`, `wp.where`, `wp.count`, `wp.sort` and their like.

They live here and not on symbols, so that a field may be called `count`, `index` or `sort`. Every module of
`primitives` and `derived` is found and loaded; the imports tell type checkers and editors what is there.
"""

import importlib
from pathlib import Path

from wpinq.expr import derived, primitives
from wpinq.expr.declare import IN_PYTHON
from wpinq.expr.derived.enumeration import range, subsets
from wpinq.expr.derived.numbers import absolute, bucket, floor
from wpinq.expr.derived.rearranging import reverse, rotate, sort
from wpinq.expr.derived.reducers import collect, count, max, min, sum
from wpinq.expr.derived.search import contains, starts_with
from wpinq.expr.primitives.casts import cast
from wpinq.expr.primitives.collections import element, flatten, length, map, weighted
from wpinq.expr.primitives.logical import is_null, where
from wpinq.expr.primitives.records import record
from wpinq.expr.primitives.strings import concatenate, find, lower, split, substring

for _package in (primitives, derived):
    for _file in sorted(Path(_package.__path__[0]).glob("[!_]*.py")):
        importlib.import_module(f"{_package.__name__}.{_file.stem}")

__all__ = [
    "absolute",
    "bucket",
    "cast",
    "collect",
    "concatenate",
    "contains",
    "count",
    "element",
    "find",
    "flatten",
    "floor",
    "is_null",
    "length",
    "lower",
    "map",
    "max",
    "min",
    "range",
    "record",
    "reverse",
    "rotate",
    "sort",
    "split",
    "starts_with",
    "subsets",
    "substring",
    "sum",
    "weighted",
    "where",
]
__all__ += sorted(IN_PYTHON.keys() - __all__)
globals().update(IN_PYTHON)
