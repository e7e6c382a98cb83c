"""JSON documents to try: sound ones of every kind, with parts removed, doubled, exchanged or made odd."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Json = Any
Place = tuple[Any, Any]
"""A container, and a key or index in it."""

ODD: list[Json] = [
    None, True, False, 0, 1, -1, 2, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1e308, 5e-324,
    float("nan"), float("inf"), "", "0", "1/3", "-1", "1/0", "1e999999999", "a", "x", "\0", "\ud800", "\u202e",
    "é" * 50,
    "0" * 5000, "__class__", "int", "str", "Select", "__import__", [], [[]], {}, [None], [0], ["a"], {"scalar": "int"},
    {"list": {"scalar": "int"}, "bound": None}, {"list": {"scalar": "str"}, "bound": 10**9}, {"fields": []},
    {"expression": []}, {"value": 10**9}, {"value": None}, {"value": 1e308}, {"texts": ["symmetric"]},
    {"fraction": "1/7"},
    {"constant": None, "type": {"scalar": "null"}}, {"call": "range", "arguments": [0, 0], "attributes": [1000000]},
]  # fmt: skip


def places(document: Json) -> list[Place]:
    """Every part of a document that can be exchanged."""
    found: list[Place] = []
    stack = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)):
            keys = list(item) if isinstance(item, dict) else list(range(len(item)))
            found += [(item, key) for key in keys]
            stack += [item[key] for key in keys]
    return found


@st.composite
def mutated(draw: st.DrawFn, documents: Sequence[Json]) -> Json:
    """One of the documents, with some changes."""
    document = copy.deepcopy(draw(st.sampled_from(list(documents))))
    for _ in range(draw(st.integers(1, 5))):
        known = places(document)
        if not known:
            break
        container, key = draw(st.sampled_from(known))
        match draw(st.integers(0, 6)):
            case 0 | 1:
                container[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
            case 2:
                other, place = draw(st.sampled_from(known))
                container[key] = copy.deepcopy(other[place])
            case 3:
                other, place = draw(st.sampled_from(places(draw(st.sampled_from(list(documents))))))
                container[key] = copy.deepcopy(other[place])
            case 4:
                del container[key]
            case 5 if isinstance(container, list):
                container[key:key] = [copy.deepcopy(container[key])] * draw(st.sampled_from([1, 2, 50]))
            case 5:
                container[draw(st.sampled_from(["nullable", "version", "extra", ""]))] = copy.deepcopy(container[key])
            case _:
                value = container[key]
                if type(value) is int:
                    container[key] = value + draw(st.sampled_from([-1, 1, 2]))
                elif isinstance(value, str):
                    container[key] = value[: draw(st.integers(0, 5))] + draw(st.sampled_from(["", "0", "\0", "a"]))
    return document


def written(document: Json) -> str:
    """The document as text; what JSON has no word for is written as Python does."""
    return json.dumps(document)
