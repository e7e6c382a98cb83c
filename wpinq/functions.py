"""The functions of expressions, as in `from wpinq import functions as F`, then `F.where`.

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

from typing import TYPE_CHECKING

from wpinq.expr.declare import IN_PYTHON
from wpinq.runtime.public import public_names

if TYPE_CHECKING:
    from wpinq.expr.functions.casts import cast as cast
    from wpinq.expr.functions.composites import *  # noqa: F403
    from wpinq.expr.functions.dates import *  # noqa: F403
    from wpinq.expr.functions.reductions import *  # noqa: F403
    from wpinq.expr.functions.scalars import *  # noqa: F403

globals().update(IN_PYTHON, __all__=sorted(IN_PYTHON))
public_names(globals())
