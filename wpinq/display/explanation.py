"""The explanation of a query from public facts: plan, uses, weights, noise and accuracy.

It needs no data and no release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import Any

from wpinq.display.html import Explanation, render
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import PlanError, shorten
from wpinq.expr.nodes import Constant, Lambda, show, write_public
from wpinq.noise.epsilon_text import format_epsilon, format_factor
from wpinq.plan.demand import JOIN_OF_PEOPLE, charges, joins_tables
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties
from wpinq.plan.work import plan_work, row_bounds
from wpinq.sinks.answer_kinds import WEIGHT, Kind
from wpinq.sinks.count_above import Listing
from wpinq.sinks.laplace import NoisyCount
from wpinq.sinks.sink import Sink

COLUMN_LIMIT = 72


def gap(root: Node, name: str) -> str:
    """The reason why an engine cannot run a plan, with a remedy; empty if it can."""
    engine = find_engine(name)
    try:
        engine.check(root)
    except PlanError as error:
        return str(error)
    return ""


def explain_plan(
    plan: Node,
    epsilon: Fraction | None = None,
    reading: str = "",
    engine: str = DEFAULT_ENGINE,
    sink: Sink | None = None,
    listing: Listing | None = None,
    missing: str | None = None,
    keys: int | None = None,
) -> Explanation:
    """What a query is and costs, as text.

    Parameters
    ----------
    plan : Node
        What to explain.
    epsilon : Fraction, optional
        The epsilon of the release; without it the noise of a NoisyCount is given per unit of 1/ε.
    reading : str
        How to read its weights, where that is known.
    engine : str
        The engine that would run it; where it cannot, what to do is said.
    sink : Sink, optional
        How it is to be released: as a NoisyCount unless given.
    listing : Listing, optional
        Which keys it is to list.
    missing : str, optional
        The reason why the engine cannot run it, empty if it can; the engine finds it out unless given.
    keys : int, optional
        The number of public keys that are given with the query.
    """
    rows = list(_tree(plan))
    missing = gap(plan, engine) if missing is None else missing
    left = min(COLUMN_LIMIT, max(len(row[0]) for row in rows))
    middle = min(COLUMN_LIMIT, max(len(row[1]) for row in rows))
    lines = [f"{tree:<{left}}  {type_:<{middle}}  {rest}".rstrip() for tree, type_, rest in rows]
    sink = sink or NoisyCount()
    own_cost = [] if epsilon is None else [*sink.explain_cost(plan, epsilon)]
    if own_cost and epsilon is not None:
        told = [*own_cost, *sink.explain_noise(plan, epsilon)]
    else:
        told = [*_costs(plan, epsilon), *_accuracy(plan, epsilon, sink, listing, keys), ""]
    told += _work(plan)
    told += _how_to_read(sink.kind(plan).read_as(reading if sink.per_key else ""))
    ends = f"Engine: {engine}." if not missing else f"Engine: none. {missing}"
    return Explanation("\n".join([*lines, "", *told, ends]))


def _tree(root: Node) -> Iterator[tuple[str, str, str]]:
    """A row for each step: drawing, type, uses and weight.

    A shared step is drawn once and then referred to.
    """
    certain, rows = plan_properties(root).steps, row_bounds(root)
    users: dict[bytes, int] = {}
    for node in topological([root]):
        for child in node.inputs:
            users[child.digest] = users.get(child.digest, 0) + 1
    numbers: dict[bytes, int] = {}
    stack: list[tuple[Node, str, str]] = [(root, "", "")]
    while stack:
        node, prefix, indent = stack.pop()
        if node.digest in numbers:
            yield f"{prefix}(step {numbers[node.digest]}, again)", "", ""
            continue
        label = ""
        if users.get(node.digest, 0) > 1:
            numbers[node.digest] = len(numbers) + 1
            label = f"step {numbers[node.digest]}: "
        step = certain[node.digest]
        used = "used once" if step.paths == 1 else f"used {_short(step.paths)} times"
        records = rows[node.digest].records
        most = "" if records is None else f", at most {_size(records)} records"
        left = f"{used}, weight left {_weight(step.weight_left)}"
        yield f"{prefix}{label}{describe(node)}", str(node.type), f"{left}{most}"
        for i, child in reversed(list(enumerate(node.inputs))):
            last = i == len(node.inputs) - 1
            stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def describe(node: Node) -> str:
    """One step as the paper would write it."""
    operator = node.operator
    if isinstance(operator, Source):
        return operator.source
    inside = []
    for item in fields(operator):  # type: ignore[arg-type]  # every operator is a dataclass
        value = getattr(operator, item.name)
        if isinstance(value, Lambda):
            inside.append(show(value))
        elif isinstance(value, Constant):
            inside.append(write_public(value.value, value.type))
        elif value is not None:
            inside.append(f"{item.name}: {value!r}" if item.name in ("limit", "divisor") else repr(value))
    return shorten(f"{operator.name}({', '.join(inside)})", COLUMN_LIMIT)


def _weight(weight: Fraction) -> str:
    bits = weight.numerator.bit_length(), weight.denominator.bit_length()
    if abs(bits[0] - bits[1]) > 1000:  # which no float holds
        return f"about 2^{bits[0] - bits[1]}"
    return str(weight) if max(bits) < 64 and len(str(weight)) <= 12 else f"{float(weight):.4g}"


def _short(count: int) -> str:
    return str(count) if count < 10**9 else f"about 2^{count.bit_length() - 1}"


def _costs(plan: Node, epsilon: Fraction | None) -> Iterator[str]:
    certificate = plan_properties(plan)
    shared: dict[str, list[str]] = {}
    for name, count in certificate.uses.items():
        declared = certificate.sources[name]
        declared.check()
        weight = declared.unit_weight
        often = "once" if count == 1 else f"{_short(count)} times"
        factor = "" if weight == 1 else f" x {format_epsilon(weight)} (its unit weight)"
        moved = certificate.stability[name]
        cost = "" if epsilon is None else f" = {format_epsilon(epsilon * moved * weight)}"
        far = format_factor(moved)
        sharper = f" and pays for {far}" if moved < count else ""
        price = far if moved < count else _short(count)
        yield f"Uses {name} {often}{sharper}: a release costs epsilon x {price}{factor}{cost}."
        if sharper:
            yield f"{far} instead of {_short(count)} due to: {'; '.join(certificate.rules)}."
        yield f"Protects {declared.unit}{declared.rows_of_unit} of {name}."
        shared.setdefault(declared.account, []).append(name)
    factors = charges(certificate.stability, certificate.sources)
    for account, names in shared.items():
        if names != [account]:
            total = f"epsilon x {format_epsilon(factors[account])}"
            cost = "" if epsilon is None else f" = {format_epsilon(epsilon * factors[account])}"
            yield f"The account {account} pays for {', '.join(sorted(names))}, in sum: {total}{cost}."
            if joins_tables(plan, account):
                yield f"{JOIN_OF_PEOPLE[0].upper()}{JOIN_OF_PEOPLE[1:]}."


def _work(plan: Node) -> Iterator[str]:
    """The rows that the plan's steps handle at most, and the step that handles most.

    They need declared sizes.
    """
    if all(source.sizes is None for source in plan_properties(plan).sources.values()):
        return
    found = plan_work(plan)
    step = describe(found.dominant.node)
    if found.rows is None:
        missing = f"; {', '.join(found.unbounded)} declares no records_at_most" if found.unbounded else ""
        yield f"Work: no bound, because no declaration bounds the rows of {step}{missing}."
        return
    share = "" if found.dominant.rows is None else f", with {_size(found.dominant.rows)} rows"
    yield f"Work: at most {_size(found.rows)} rows in all steps; the largest step is {step}{share}."


def _size(count: int) -> str:
    return f"{count:,}" if count < 10**15 else _short(count)


def _accuracy(
    plan: Node, epsilon: Fraction | None, sink: Sink, listing: Listing | None, keys: int | None
) -> Iterator[str]:
    certificate = plan_properties(plan)
    slack = certificate.slack(exact=sink.lattice is not None)
    if slack > 2**1000:
        yield "The slack for floating-point error exceeds any useful noise: no budget covers this plan."
        return
    if epsilon is None:
        (scale,) = sink.scales(plan, Fraction(1))
        yield f"NoisyCount(epsilon) adds Laplace noise of scale {scale:.9g}/epsilon to every weight,"
        yield f"so 95 % of answers lie within {sink.half_width(scale, 0.95):.4g}/epsilon of the weight."
    else:
        yield from sink.explain_noise(plan, epsilon)
    yield f"Of that scale, a share of {float(slack):.2g} covers floating-point error."
    if sink.chooses:
        return
    domain = certificate.domain
    if listing is not None:
        yield f"Keys: {sink.kind(plan).selection(listing)}. The 95 % is of all keys of that domain;"
        yield "the interval of a listed key gives its own error."
    elif domain is None and keys is not None:
        yield f"Keys: {keys:,}, given with the query."
    elif domain is None:
        yield "Keys: the query fixes none; give them with over=..., or request them from a Release."
    else:
        yield f"Keys: {len(domain)}, known from the query itself."


def _how_to_read(kind: Kind) -> Iterator[str]:
    if kind.name == WEIGHT:
        yield f"Gives a {kind}."
        yield "The weight that one record contributes at a step depends on the records that it is combined with."
    else:
        yield f"Gives: {kind}."
    yield "'weight left' is the largest weight that a single record of weight 1 contributes when it is alone."


# A plan as a picture: sources on top, each step below what it reads, the output at the bottom. No data.

#: Beyond it a picture is no help: the text of the plan is shown instead.
MOST_STEPS = 60

_WIDTH, _HEIGHT, _GAP, _RISE, _LANE = 290, 58, 18, 34, 12
_LONGEST = 41

#: A step, as its digest and nothing, or a lane past other steps for the arrow from one step to another.
_Slot = tuple[bytes, bytes]


def plan_picture(root: Node) -> dict[str, Any] | None:
    """The steps of a plan as boxes, with arrows from inputs to users; None beyond `MOST_STEPS`.

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
    """Layers of steps by the longest path from a source, with lanes for arrows.

    In a layer, steps are near to what they read.
    """
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
        "name": shorten(name, _LONGEST),
        "used": used,
        "arguments": "" if source else shorten(inside.removesuffix(")"), _LONGEST),
        "type": shorten(str(node.type), _LONGEST),
    }
