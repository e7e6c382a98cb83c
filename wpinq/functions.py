"""The functions of expressions: `from wpinq import functions as F`, then `F.where`, `F.sort` and their like.

They live here and not on symbols, so that a field may be called `count`, `index` or `sort`. Every function that a
module of `wpinq.expr.functions` defines is here at run time; type checkers and editors know the imports below.

Examples
--------
>>> import wpinq as wp
>>> from wpinq import functions as F
>>> people = wp.source("people", name=str, age=int)
>>> wp.evaluate(people.select(lambda p: F.lower(p.name)), {"people": [("Ada", 36)]})
WeightedDataset({'ada': 1.0})
"""

from wpinq.expr.declare import IN_PYTHON
from wpinq.expr.functions.casts import cast as cast
from wpinq.expr.functions.dates import day as day
from wpinq.expr.functions.dates import day_of_year as day_of_year
from wpinq.expr.functions.dates import hour as hour
from wpinq.expr.functions.dates import microsecond as microsecond
from wpinq.expr.functions.dates import minute as minute
from wpinq.expr.functions.dates import month as month
from wpinq.expr.functions.dates import offset as offset
from wpinq.expr.functions.dates import quarter as quarter
from wpinq.expr.functions.dates import second as second
from wpinq.expr.functions.dates import truncate as truncate
from wpinq.expr.functions.dates import week as week
from wpinq.expr.functions.dates import weekday as weekday
from wpinq.expr.functions.dates import year as year
from wpinq.expr.functions.lists import element as element
from wpinq.expr.functions.lists import first as first
from wpinq.expr.functions.lists import flatten as flatten
from wpinq.expr.functions.lists import length as length
from wpinq.expr.functions.lists import map as map
from wpinq.expr.functions.lists import range as range
from wpinq.expr.functions.lists import subsets as subsets
from wpinq.expr.functions.lists import weighted as weighted
from wpinq.expr.functions.logic import is_null as is_null
from wpinq.expr.functions.logic import where as where
from wpinq.expr.functions.numbers import absolute as absolute
from wpinq.expr.functions.numbers import bucket as bucket
from wpinq.expr.functions.numbers import floor as floor
from wpinq.expr.functions.numbers import quotient as quotient
from wpinq.expr.functions.records import record as record
from wpinq.expr.functions.records import reverse as reverse
from wpinq.expr.functions.records import rotate as rotate
from wpinq.expr.functions.records import sort as sort
from wpinq.expr.functions.reductions import collect as collect
from wpinq.expr.functions.reductions import count as count
from wpinq.expr.functions.reductions import max as max
from wpinq.expr.functions.reductions import min as min
from wpinq.expr.functions.reductions import sum as sum
from wpinq.expr.functions.text import concatenate as concatenate
from wpinq.expr.functions.text import contains as contains
from wpinq.expr.functions.text import find as find
from wpinq.expr.functions.text import lower as lower
from wpinq.expr.functions.text import split as split
from wpinq.expr.functions.text import starts_with as starts_with
from wpinq.expr.functions.text import substring as substring

globals().update(IN_PYTHON, __all__=sorted(IN_PYTHON))
