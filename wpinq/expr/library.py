"""The functions that lambdas call: `wp.record`, `wp.where`, `wp.count`, `wp.sort` and their like.

They live here and not on symbols, so that a field may be called `count`, `index` or `sort`. Every module of
`primitives` and `derived` is found and loaded, at run time; type checkers and editors know what is imported here.
"""

import importlib
from pathlib import Path

from wpinq.expr import derived, primitives
from wpinq.expr.declare import IN_PYTHON
from wpinq.expr.derived.dates import day as day
from wpinq.expr.derived.dates import day_of_year as day_of_year
from wpinq.expr.derived.dates import hour as hour
from wpinq.expr.derived.dates import microsecond as microsecond
from wpinq.expr.derived.dates import minute as minute
from wpinq.expr.derived.dates import month as month
from wpinq.expr.derived.dates import offset as offset
from wpinq.expr.derived.dates import quarter as quarter
from wpinq.expr.derived.dates import second as second
from wpinq.expr.derived.dates import truncate as truncate
from wpinq.expr.derived.dates import week as week
from wpinq.expr.derived.dates import weekday as weekday
from wpinq.expr.derived.dates import year as year
from wpinq.expr.derived.enumeration import first as first
from wpinq.expr.derived.enumeration import range as range
from wpinq.expr.derived.enumeration import subsets as subsets
from wpinq.expr.derived.logical_casts import cast as cast
from wpinq.expr.derived.numbers import absolute as absolute
from wpinq.expr.derived.numbers import bucket as bucket
from wpinq.expr.derived.numbers import floor as floor
from wpinq.expr.derived.numbers import quotient as quotient
from wpinq.expr.derived.rearranging import reverse as reverse
from wpinq.expr.derived.rearranging import rotate as rotate
from wpinq.expr.derived.rearranging import sort as sort
from wpinq.expr.derived.reducers import collect as collect
from wpinq.expr.derived.reducers import count as count
from wpinq.expr.derived.reducers import max as max
from wpinq.expr.derived.reducers import min as min
from wpinq.expr.derived.reducers import sum as sum
from wpinq.expr.derived.search import contains as contains
from wpinq.expr.derived.search import starts_with as starts_with
from wpinq.expr.primitives.collections import element as element
from wpinq.expr.primitives.collections import flatten as flatten
from wpinq.expr.primitives.collections import length as length
from wpinq.expr.primitives.collections import map as map
from wpinq.expr.primitives.collections import weighted as weighted
from wpinq.expr.primitives.logical import is_null as is_null
from wpinq.expr.primitives.logical import where as where
from wpinq.expr.primitives.records import record as record
from wpinq.expr.primitives.strings import concatenate as concatenate
from wpinq.expr.primitives.strings import find as find
from wpinq.expr.primitives.strings import lower as lower
from wpinq.expr.primitives.strings import split as split
from wpinq.expr.primitives.strings import substring as substring

for _package in (primitives, derived):
    for _file in sorted(Path(_package.__path__[0]).glob("[!_]*.py")):
        importlib.import_module(f"{_package.__name__}.{_file.stem}")

globals().update(IN_PYTHON, __all__=sorted(IN_PYTHON))
