"""A plan as a picture: sources on top, each step below what it reads, the output at the bottom. No data."""

from __future__ import annotations

from typing import Any

from wpinq.display.explanation import describe, explain_plan
from wpinq.display.html import render
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties

MOST_STEPS = 60
"""Beyond it a picture is no help: the text of the plan is shown instead."""

_WIDTH, _HEIGHT, _GAP, _RISE, _LANE = 290, 58, 18, 34, 12
_LONGEST = 41

_Slot = tuple[bytes, bytes]
"""A step, as its digest and nothing, or a lane past other steps for the arrow from one step to another."""


def plan_picture(root: Node) -> dict[str, Any] | None:
    """The steps of a plan as boxes, with arrows from inputs to users; None where there are more than `MOST_STEPS`.

    A box shows the operator, its functions, the type of its records, and how often it is used. A step that several
    others read is drawn once.
    """
    steps = {node.digest: node for node in topological([root])}
    if len(steps) > MOST_STEPS:
        return None
    layers = _layers(list(steps.values()))
    widths = [sum(_width(slot) + _GAP for slot in layer) - _GAP for layer in layers]
    width, height = max(widths) + 6, len(layers) * (_HEIGHT + _RISE) - _RISE + 6
    at: dict[_Slot, tuple[float, float]] = {}  # the middle of the top of each slot
    for depth, layer in enumerate(layers):
        left = (width - widths[depth]) / 2
        for slot in layer:
            at[slot] = left + _width(slot) / 2, 3 + depth * (_HEIGHT + _RISE)
            left += _width(slot) + _GAP
    arrows = [
        _arrow(_way(child.digest, node.digest, at), (i + 1) / (len(node.inputs) + 1) - 0.5)
        for node in steps.values()
        for i, child in enumerate(node.inputs)
    ]
    boxes = [_box(node, root, *at[node.digest, b""]) for node in steps.values()]
    sizes = {"width": round(width), "height": height, "box_width": _WIDTH, "box_height": _HEIGHT}
    return {"arrows": arrows, "boxes": boxes, **sizes}


def plan_html(root: Node, reading: str = "") -> str:
    """A query as HTML: its plan as a picture, its cost, and how to read its weights."""
    properties = plan_properties(root)
    costs = "; ".join(
        f"a release costs {name} epsilon × {times * properties.sources[name].unit_weight}"
        for name, times in properties.stability.items()
    )
    picture = plan_picture(root)
    text = explain_plan(root) if picture is None else ""
    title = f"Query of {root.type}"
    return render("query.html", title=title, costs=costs, picture=picture, text=text, reading=reading)


def _width(slot: _Slot) -> int:
    return _LANE if slot[1] else _WIDTH


def _layers(steps: list[Node]) -> list[list[_Slot]]:
    """Steps by the longest way to them from a source, and lanes for arrows; in a layer, near to what they read."""
    depth: dict[bytes, int] = {}
    for node in steps:
        depth[node.digest] = 1 + max((depth[child.digest] for child in node.inputs), default=-1)
    layers: list[list[_Slot]] = [[] for _ in range(1 + max(depth.values()))]
    above: dict[_Slot, list[_Slot]] = {}
    for node in steps:
        above[node.digest, b""] = []
        for child in {child.digest for child in node.inputs}:
            reached: _Slot = (child, b"")
            for between in range(depth[child] + 1, depth[node.digest]):
                lane = (child, node.digest + bytes([between]))
                layers[between].append(lane)
                above[lane], reached = [reached], lane
            above[node.digest, b""].append(reached)
        layers[depth[node.digest]].append((node.digest, b""))
    place: dict[_Slot, float] = {}
    for layer in layers:
        layer.sort(key=lambda slot: sum(place[up] for up in above[slot]) / max(1, len(above[slot])))
        place |= {slot: i - (len(layer) - 1) / 2 for i, slot in enumerate(layer)}
    return layers


def _way(source: bytes, user: bytes, at: dict[_Slot, tuple[float, float]]) -> list[tuple[float, float]]:
    lanes = [at[slot] for slot in sorted(slot for slot in at if slot[0] == source and slot[1].startswith(user))]
    return [at[source, b""], *lanes, at[user, b""]]


def _arrow(way: list[tuple[float, float]], shift: float) -> str:
    (x, y), *lanes, (last, end) = way
    drawn = f"M{x:.1f} {y + _HEIGHT:.1f}"
    y += _HEIGHT
    for lane, top in lanes:
        drawn += f" C{x:.1f} {y + _RISE / 2:.1f} {lane:.1f} {top - _RISE / 2:.1f} {lane:.1f} {top:.1f} v{_HEIGHT}"
        x, y = lane, top + _HEIGHT
    last += shift * _WIDTH
    drawn += f" C{x:.1f} {y + _RISE / 2:.1f} {last:.1f} {end - _RISE / 2:.1f} {last:.1f} {end:.1f}"
    return drawn + f" M{last - 4:.1f} {end - 6:.1f} L{last:.1f} {end:.1f} L{last + 4:.1f} {end - 6:.1f}"


def _box(node: Node, root: Node, middle: float, y: float) -> dict[str, Any]:
    step = plan_properties(root).steps[node.digest]
    whole = describe(node)
    name, _, inside = whole.partition("(")
    source = isinstance(node.operator, Source)
    used = "used once" if step.paths == 1 else f"used {step.paths} times" if step.paths < 10**6 else "used often"
    return {
        "x": middle - _WIDTH / 2,
        "y": y,
        "source": source,
        "root": node is root,
        "whole": f"{whole}: {node.type}; weight left {step.weight_left}",
        "name": _short(name),
        "used": used,
        "arguments": "" if source else _short(inside.removesuffix(")")),
        "type": _short(str(node.type)),
    }


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
