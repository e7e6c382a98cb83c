"""The registry of functions, which loads every module of this folder.

A *primitive* has a typing rule, a meaning and a bound on its work. Engines know primitives and nothing else. All are
total: a result out of 64 bits (division by zero, overflow, a failed cast, an element out of range) is null.
Floats come from correctly rounded operations alone: another last bit is another record.

A *derived* function is a rule from expressions to expressions of primitives.
"""

import importlib
from pathlib import Path

from wpinq.expr.definition import LIST_LIMIT as LIST_LIMIT, PRIMITIVES as PRIMITIVES, TEXT_LIMIT as TEXT_LIMIT

for _file in sorted(Path(__file__).parent.glob("[!_]*.py")):
    importlib.import_module(f"{__name__}.{_file.stem}")
