"""The operators, one file each. Importing this package imports every file of it, which fills the registry."""

from importlib import import_module
from pkgutil import iter_modules

from wpinq.plan.operators.concat import Concat
from wpinq.plan.operators.except_ import Except
from wpinq.plan.operators.group_by import GroupBy
from wpinq.plan.operators.intersect import Intersect
from wpinq.plan.operators.join import Join
from wpinq.plan.operators.partition import Partition
from wpinq.plan.operators.select import Select
from wpinq.plan.operators.select_many import SelectMany
from wpinq.plan.operators.shave import Shave
from wpinq.plan.operators.source import Source
from wpinq.plan.operators.union import Union
from wpinq.plan.operators.where import Where

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Concat",
    "Except",
    "GroupBy",
    "Intersect",
    "Join",
    "Partition",
    "Select",
    "SelectMany",
    "Shave",
    "Source",
    "Union",
    "Where",
]
"""The operators that other code names."""
