"""The functions of a generated module: those that its entry points reach, each after those it calls.

Numba compiles a function once for each set of argument types, a literal being a type of its own. So every function
gets a signature and is compiled for it alone, callees first; where the entry points are cached, nothing else is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_HEAD = re.compile(r"^def (\w+)\(([^)]*)\)", re.M)
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_FLOATS = frozenset({"w", "weight", "old", "new", "sign", "number", "difference", "width"})
_RESULTS = {
    "settle": "float64",
    "gathered_norm": "float64",
    "draw": "float64",
    "loss": "float64",
    "unlink": "boolean",
    "has_edge": "boolean",
    "chances": "float64",
    "begin": "float64",
    "divides": "boolean",
}
_INTEGERS = (
    "find_",
    "insert_",
    "hash_",
    "new_row",
    "row_at",
    "floor_divide",
    "modulo",
    "truncate",
    "range_end",
    "mix",
    "plus",
)
_ARRAYS = {
    "which": "int64[::1]",
    "words": "int64[:, ::1]",
    "results": "int64[:, ::1]",
    "weights": "float64[::1]",
    "targets": "float64[::1]",
    "seeds": "uint64[::1]",
    "tallies": "int64[::1]",
    "edges": "uint32[:, ::1]",
    "starts": "uint64[::1]",
    "neighbours": "uint32[::1]",
    "ids": "uint32[::1]",
    "marks": "uint32[:, ::1]",
    "labels": "int64[:, ::1]",
}
_VERTICES = {"a": "uint32", "b": "uint32", "p": "uint32", "q": "uint32", "u": "uint32", "v": "uint32", "mark": "uint32"}
_VERTICES |= {"i": "uint64", "j": "uint64"}
_ON_GRAPHS = ("chances", "turn", "exchange", "has_edge", "change_edge")
_ENTRIES = ("propose", "rollback", "pin", "remember", "forget", "swap_chunk", "edge_chunk")


def split(text: str) -> list[str]:
    """The functions of a text, each from its decorator on."""
    return ["@njit" + part.rstrip() for part in text.split("@njit")[1:]]


def arrange(functions: Iterable[str]) -> list[str]:
    """The functions that entry points reach, callees first, with signatures."""
    bodies = {}
    for function in functions:
        found = _HEAD.search(function)
        assert found is not None
        bodies[found.group(1)] = function
    calls = {name: [n for n in dict.fromkeys(_NAME.findall(body)) if n in bodies] for name, body in bodies.items()}
    done: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in done:
            return
        for called in calls[name]:
            if called != name:
                visit(called)
        done[name] = signed(bodies[name])

    for name in _ENTRIES:
        if name in bodies:
            visit(name)
    return list(done.values())


def signed(body: str) -> str:
    """A function with its signature, by the names of its arguments."""
    found = _HEAD.search(body)
    assert found is not None
    name = found.group(1)
    arguments = [argument.strip() for argument in found.group(2).split(",")]
    types = ", ".join(_type(name, argument) for argument in arguments)
    result = _RESULTS.get(name) or ("int64" if name.startswith(_INTEGERS) else "void")
    kind = "entry" if name in _ENTRIES else "inner"
    return f'@{kind}("{result}({types})")\n' + body[body.index("def ") :]


def _type(function: str, argument: str) -> str:
    if argument == "A":
        return "int64[::1]"
    if function in ("sort_down", "sift"):
        return {"weights": "float64[::1]", "rows": "int64[::1]"}.get(argument, "int64")
    if function in ("pin", "remember") and argument == "which":
        return "int64"
    if function in _ON_GRAPHS and argument in _VERTICES:
        return _VERTICES[argument]
    if argument in _ARRAYS:
        return _ARRAYS[argument]
    return "float64" if argument in _FLOATS or argument.startswith("real_") else "int64"
