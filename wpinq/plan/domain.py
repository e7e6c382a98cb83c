"""Output domains that are public by construction: inferred from the query alone, never from data.

A constant has one value, `x % n` has n, a bool has two, a partition's key has one, a record has the product of
its fields' values. A null that comes of the data is left out, and so is what Intersect could keep only by a
negative weight: what is listed is asked for, the rest is simply not released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, walk
from wpinq.expr.types import BOOL, CategoryOf, Type
from wpinq.expr.values import Value

DOMAIN_LIMIT = 1_000_000
"""The most values that are inferred; beyond it a domain must be given."""

WORK_LIMIT = 4 * DOMAIN_LIMIT
"""The most values that inference handles on its way, so that no query is slow to write down."""

Domain = tuple[Value, ...]


class Inference:
    """One inference over a plan and the work left to it. Iterative: depth is no limit, what is shared is done once."""

    def __init__(self) -> None:
        self.left = WORK_LIMIT

    def of_function(
        self, function: Lambda, inputs: Sequence[Domain | None], *, elements: bool = False
    ) -> Domain | None:
        """The values of a function, or the elements of the lists that it gives."""
        arguments = {v.digest: domain for v, domain in zip(function.core.parameters, inputs, strict=True)}
        listed_in_types = _of_categories(function)
        done: dict[tuple[bytes, bool], Domain | None] = {}
        root = (function.body.core, elements)
        stack = [(*root, False)]
        while stack:
            expr, listed, ready = stack.pop()
            parts = _parts(expr, listed)
            if ready:
                found = self.combine(expr, listed, arguments, [done[part.digest, within] for part, within in parts])
                if found is None:
                    found = of_type(expr.type) if listed else listed_in_types.get(expr.digest, of_type(expr.type))
                done[expr.digest, listed] = found
            elif (expr.digest, listed) not in done:
                stack.append((expr, listed, True))
                stack.extend((part, within, False) for part, within in parts)
        return done[root[0].digest, elements]

    def combine(
        self, expr: Expr, listed: bool, arguments: dict[bytes, Domain | None], parts: list[Domain | None]
    ) -> Domain | None:
        if isinstance(expr, Variable):
            return None if listed else arguments.get(expr.digest)
        if isinstance(expr, Constant):
            return tuple(dict.fromkeys(expr.value or ())) if listed else (expr.value,)
        if not isinstance(expr, Call):
            return None
        if expr.name == "where" or (listed and expr.name == "list"):
            return self.merge(parts)
        if listed:
            return None
        if expr.name == "record":
            return self.product(parts)
        if expr.name == "weighted":
            return parts[0]
        if expr.name == "field" and parts[0] is not None:
            (index,) = expr.attributes
            assert isinstance(index, int)
            return self.keep(record[index] for record in parts[0] if record is not None)
        if expr.name == "modulo" and isinstance(divisor := expr.arguments[1], Constant):
            return self.keep(range(divisor.value)) if 0 < (divisor.value or 0) <= DOMAIN_LIMIT else None
        return None

    def merge(self, domains: Sequence[Domain | None]) -> Domain | None:
        finite = [domain for domain in domains if domain is not None]
        return self.keep(value for domain in finite for value in domain) if len(finite) == len(domains) else None

    def product(self, domains: Sequence[Domain | None]) -> Domain | None:
        finite = [domain for domain in domains if domain is not None]
        size = 1
        for domain in finite:
            size *= len(domain)
        return self.keep(product(*finite)) if len(finite) == len(domains) and size <= DOMAIN_LIMIT else None

    def keep(self, values: Iterable[Value]) -> Domain | None:
        """The distinct values, while there are few enough and work is left."""
        kept: dict[Value, None] = {}
        for value in values:
            self.left -= 1
            kept[value] = None
            if len(kept) > DOMAIN_LIMIT or self.left < 0:
                return None
        return tuple(kept)


def of_type(type_: Type) -> Domain | None:
    """The values of a type that has few."""
    if isinstance(type_, CategoryOf):
        return type_.listed
    return (False, True) if type_ == BOOL else None


def _of_categories(function: Lambda) -> dict[bytes, Domain]:
    """The values of what is a category, by what stands for it in primitives, which know strings only."""
    if function.core is function:
        return {}
    return {e.core.digest: e.type.listed for e in walk(function) if isinstance(e.type, CategoryOf)}


def _parts(expr: Expr, listed: bool) -> tuple[tuple[Expr, bool], ...]:
    """The parts of an expression whose values decide its own; for each, whether its elements are meant."""
    if not isinstance(expr, Call):
        return ()
    if expr.name == "where":
        return tuple((branch, listed) for branch in expr.arguments[1:])
    if listed:
        return tuple((item, False) for item in expr.arguments) if expr.name == "list" else ()
    if expr.name == "record":
        return tuple((item, False) for item in expr.arguments)
    return ((expr.arguments[0], False),) if expr.name in ("weighted", "field") else ()
