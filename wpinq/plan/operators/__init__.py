"""The operators, one file each; importing the package registers all of them.

Operators that other code names can be imported from here.
"""

from importlib import import_module
from pkgutil import iter_modules

from wpinq.plan.operators.concat import Concat as Concat
from wpinq.plan.operators.except_ import Except as Except
from wpinq.plan.operators.group_by import GroupBy as GroupBy
from wpinq.plan.operators.intersect import Intersect as Intersect
from wpinq.plan.operators.join import Join as Join
from wpinq.plan.operators.partition import Partition as Partition
from wpinq.plan.operators.select import Select as Select
from wpinq.plan.operators.select_many import SelectMany as SelectMany
from wpinq.plan.operators.shave import Shave as Shave
from wpinq.plan.operators.source import Source as Source
from wpinq.plan.operators.union import Union as Union
from wpinq.plan.operators.where import Where as Where

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
