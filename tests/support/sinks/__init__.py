"""The sinks as the tests know them, a file each, found by its place here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.support.sink_cases import SinkCase

_found: list[SinkCase] = [import_module(f"{__name__}.{module.name}").CASE for module in iter_modules(__path__)]

CASES = {case.name: case for case in _found}
"""Every sink's case by its name."""
