"""A plan as a picture: sources on top, each step below what it reads, the output at the bottom. No data."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from wpinq.display.explanation import describe, explain_plan
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties
from wpinq.runtime.markup import FAINT, FILL, LINE, TEXT, block, element, title

MOST_STEPS = 60
"""Beyond it a picture is no help: the text of the plan is shown instead."""

_WIDTH, _HEIGHT, _GAP, _RISE, _LANE = 290, 58, 18, 34, 12
_LONGEST = 41

_Slot = tuple[bytes, bytes]
"""A step, as its digest and nothing, or a lane past other steps for the arrow from one step to another."""


def plan_picture(root: Node) -> Element | None:
    """The steps of a plan as boxes, with arrows from inputs to users; None where there are more than `MOST_STEPS`.

    A box tells the operator, its functions, the type of its records, and how often it is used. A step that several
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
    boxes = [part for node in steps.values() for part in _box(node, root, *at[node.digest, b""])]
    return element(
        "svg", *arrows, *boxes, width=round(width), height=height, viewBox=f"0 0 {width:.0f} {height}", role="img",
        style="max-width:100%;height:auto",
    )  # fmt: skip


def plan_html(root: Node, reading: str = "") -> str:
    """What a notebook shows of a query: its plan as a picture, what it costs, and how to read its weights."""
    certificate = plan_properties(root)
    costs = "; ".join(f"a release costs {name} epsilon × {s * certificate.sources[name].unit_weight}"
                      for name, s in certificate.stability.items())  # fmt: skip
    told = [element("div", f"Reading: {reading}")] if reading else []
    picture = plan_picture(root)
    if picture is None:
        picture = element("pre", explain_plan(root))
    return block(title(f"Query of {root.type}", costs), picture, *told)


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


def _arrow(way: list[tuple[float, float]], shift: float) -> Element:
    (x, y), *lanes, (last, end) = way
    drawn = f"M{x:.1f} {y + _HEIGHT:.1f}"
    y += _HEIGHT
    for lane, top in lanes:
        drawn += f" C{x:.1f} {y + _RISE / 2:.1f} {lane:.1f} {top - _RISE / 2:.1f} {lane:.1f} {top:.1f} v{_HEIGHT}"
        x, y = lane, top + _HEIGHT
    last += shift * _WIDTH
    drawn += f" C{x:.1f} {y + _RISE / 2:.1f} {last:.1f} {end - _RISE / 2:.1f} {last:.1f} {end:.1f}"
    head = f" M{last - 4:.1f} {end - 6:.1f} L{last:.1f} {end:.1f} L{last + 4:.1f} {end - 6:.1f}"
    return element("path", d=drawn + head, fill="none", stroke=FAINT, stroke_width=1.3)


def _box(node: Node, root: Node, middle: float, y: float) -> list[Element]:
    step = plan_properties(root).steps[node.digest]
    whole = describe(node)
    name, _, inside = whole.partition("(")
    source, x = isinstance(node.operator, Source), middle - _WIDTH / 2
    often = "used once" if step.paths == 1 else f"used {step.paths} times" if step.paths < 10**6 else "used often"
    shape = element(
        "rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=5, fill=FILL, fill_opacity=0.9 if source else 0.45,
        stroke=TEXT if node is root else LINE,
    )  # fmt: skip
    shape.append(element("title", f"{whole}: {node.type}; weight left {step.weight_left}"))
    written = [
        _text(name, x + 9, y + 17, font_weight="bold", font_size=12),
        _text(often, x + _WIDTH - 9, y + 17, fill=FAINT, font_size=11, text_anchor="end"),
        _text("" if source else inside.removesuffix(")"), x + 9, y + 33, font_family="monospace", font_size=11),
        _text(str(node.type), x + 9, y + 49, fill=FAINT, font_size=11),
    ]
    return [shape, *written]


def _text(text: str, x: float, y: float, **style: object) -> Element:
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return element("text", shown, x=x, y=y, **{"fill": TEXT, "font_family": "sans-serif", **style})
