"""The public boundary: refusals show the caller's line alone, misspelt names the nearest.

`public` marks the functions and classes that users call. An error of ours leaves them without the frames of the
inside: nobody reads these, and a collector of tracebacks would send on what their variables hold, such as offered rows.
In Python's development mode (`python -X dev`) the frames stay.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, NoReturn, TypeVar

from wpinq.errors import CallError, UnknownAttribute, WpinqError, nearest, shorten, suggest

T = TypeVar("T")

_INSIDE = {"wpinq", *sys.stdlib_module_names}

_TABLES = tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))


def advice(table: str) -> dict[str, Any]:
    """The advice in a table of `advice.toml`, by each name."""
    return {name: text for names, text in _TABLES[table].items() for name in names.split()}


_MISSING, NO_ARGUMENTS, _CALLS = map(advice, ("missing", "arguments", "calls"))


def public(thing: T) -> T:
    """A function with refusals of one line, or a class with such methods, changed in place."""
    if isinstance(thing, FunctionType):
        return thing if hasattr(thing, "boundary") else _bounded(thing)
    if isinstance(thing, (classmethod, staticmethod)):
        return type(thing)(public(thing.__func__))
    if isinstance(thing, property):
        return property(thing.fget and public(thing.fget), thing.fset, thing.fdel, thing.__doc__)  # type: ignore[return-value]
    if isinstance(thing, type) and not issubclass(thing, Exception):
        for kind in thing.__mro__:
            for name, held in list(vars(kind).items()) if kind.__module__.startswith("wpinq.") else ():
                methods = isinstance(held, (FunctionType, classmethod, staticmethod, property))
                if methods and (not name.startswith("_") or name.endswith("__")):
                    setattr(kind, name, public(held))
        if not hasattr(thing, "__getattr__"):
            thing.__getattr__ = _unknown_attribute  # type: ignore[attr-defined]  # type checkers know the attributes
    return thing


def public_names(module: dict[str, Any], later: Mapping[str, str] = {}) -> None:
    """Mark all that a module exports of this package, given its globals.

    Names in `later` are exported too: each is loaded from the path that it maps to when it is first used.
    """
    for name, held in list(module.items()):
        home = getattr(held, "__module__", None)
        if not name.startswith("_") and isinstance(home, str) and home.startswith("wpinq."):
            module[name] = marked = public(held)
            if marked is not held and getattr(sys.modules[home], name, None) is held:
                setattr(sys.modules[home], name, marked)  # where pickle looks for it
    if "__getattr__" in module:
        return

    def load(name: str) -> Any:
        if name not in later:
            known = [
                name for name, held in module.items() if name[0] != "_" and callable(held) and held != public_names
            ]
            unknown_name(module["__name__"], name, [*known, *later])
        home, _, own = later[name].rpartition(".")
        module[name] = public(getattr(importlib.import_module(home), own))
        return module[name]

    module["__getattr__"] = public(load)
    module["__dir__"] = lambda: sorted({*module, *later} - {"public_names", "TYPE_CHECKING"})


def unknown_name(owner: str, name: str, known: Iterable[str], mend: str = "") -> NoReturn:
    """Refuse a name after a dot, with its mend or the nearest names."""
    if name.startswith("_"):  # which protocols of Python look for
        raise AttributeError(f"{owner} has no attribute {name!r}")
    raise UnknownAttribute(f"{owner} has no {shorten(name)!r}: {mend or suggest(name, known)}")


def _bounded(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            try:
                return function(*given, **named)
            except TypeError:
                misfit = _misfit(function, given, named)
                if misfit:
                    raise CallError(misfit) from None
                raise
        except WpinqError as error:
            if not sys.flags.dev_mode:
                _trim(error)
            raise  # bare, which adds no line to the traceback

    vars(call)["boundary"] = True
    return call


@_bounded
def _unknown_attribute(self: Any, name: str) -> Any:
    """What Python calls for an attribute that is not there."""
    kind = type(self)
    if name.startswith("_") or name in dir(kind):
        return object.__getattribute__(self, name)  # Python's own error, or once more that of a property
    known = [each for each in dir(kind) if not each.startswith("_")]
    mend = self._mend_attribute(name) if hasattr(kind, "_mend_attribute") else ""
    if not mend and "to_pandas" in known:
        near = f"{suggest(name, known)} " if nearest(name, known) else ""
        mend = f"{near}to_pandas() gives a data frame, with all its methods"
    unknown_name(f"the {kind.__name__}", name, known, mend)


def _trim(error: BaseException) -> None:
    """Take the frames of the inside from an error, and from errors that it replaced there."""
    error.__traceback__ = _outside(error.__traceback__)
    before = None if error.__suppress_context__ else error.__context__
    error.__context__ = before
    if before is not None and before.__traceback__ is not None and _is_inside(before.__traceback__):
        _trim(before)


def _is_inside(traceback: TracebackType) -> bool:
    return str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are the user's, such as those of a lambda."""
    kept = []
    while traceback is not None:
        if not _is_inside(traceback):
            kept.append(traceback)
        traceback = traceback.tb_next
    for one, after in zip(kept, [*kept[1:], None], strict=False):
        one.tb_next = after
    return kept[0] if kept else None


def _misfit(function: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Python's reason why arguments do not fit a function, with the mend; empty where they fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
        return ""
    except TypeError as error:
        reason = str(error)
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    table = _MISSING if "missing" in reason else NO_ARGUMENTS
    mends = [f"{mend}." for name, mend in table.items() if f"'{name}'" in reason]
    mends += [f"did you mean `{near}`?" for each in named if each not in names for near in nearest(each, names)]
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    shown = [
        str(each.replace(annotation=each.empty, default=each.empty))
        + "=..." * (each.kind is each.KEYWORD_ONLY or each.default is not each.empty)
        for each in map(signature.parameters.__getitem__, names)
    ]
    usage = _CALLS.get(name, f"{name}({', '.join(shown)})")
    return f"{name}: {reason}{'; ' if mends else '.'}{''.join(mends[:1])} Write {usage}"
