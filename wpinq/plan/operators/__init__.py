"""The operators, one file each. Importing this package fills the registry."""

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
