"""The text form of sinks: names of releases, their arguments, and their printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product as crossed
from typing import Any, Literal, Protocol

from wpinq.expr.nodes import write_public
from wpinq.expr.types import DATE, INT, TupleOf, Type
from wpinq.expr.values import LAST_DAY, Value
from wpinq.plan.node import Node
from wpinq.sinks.keys import DigitKeys, GivenKeys, IntegerKeys, KeyDomain, ProductKeys

#: How a program writes an argument.
ParameterKind = Literal["epsilon", "number", "integer", "real", "function", "keys", "key_domain"]


class Measured(Protocol):
    """A measurement, as the text form of its sink reads it."""

    @property
    def plan(self) -> Node: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def domain(self) -> tuple[Value, ...] | None: ...
    @property
    def listing(self) -> Any: ...
    @property
    def key_type(self) -> Type: ...
    @property
    def sink(self) -> Any: ...


#: The plan that a release is called on, and its arguments after epsilon.
Written = tuple[Node, list[str]]


@dataclass(frozen=True, slots=True)
class SinkParameter:
    """One argument of a release in text."""

    name: str
    kind: ParameterKind
    optional: bool = False


@dataclass(frozen=True, slots=True)
class SinkSyntax:
    """One way to write a release in text.

    Attributes
    ----------
    name : str
        The word of programs.
    parameters : tuple of SinkParameter
        Its arguments, in order; the first is epsilon.
    write : callable
        From a measurement of the sink to its text form, or None where this is not the way to write it.
    method : str
        The method of a query that makes the measurement; without one, `Query.measure` takes the sink.
    renamed : mapping
        Arguments that the method knows under another name.
    fixed : mapping
        Arguments of the method that the word fixes.
    """

    name: str
    parameters: tuple[SinkParameter, ...]
    write: Callable[[Measured], Written | None]
    method: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def build(self, sink: Any, query: Any, given: dict[str, Any]) -> Any:
        """The measurement of a query by a sink that the arguments describe."""
        if self.method:
            named = {self.renamed.get(name, name): value for name, value in given.items()}
            return getattr(query, self.method)(**named, **self.fixed)
        fields = {name: value for name, value in given.items() if name not in ("epsilon", "over")}
        return query.measure(sink.from_arguments(**fields), given["epsilon"], given.get("over"))


EPSILON = SinkParameter("epsilon", "epsilon")
OVER = SinkParameter("over", "keys")


def write_keys(keys: tuple[Value, ...], type_: Type) -> str:
    """Public keys in their shortest form: a range, a product, or a list."""
    if len(keys) > 2 and type_ in (INT, DATE) and keys == tuple(range(keys[0], keys[0] + len(keys))):
        end = keys[0] + len(keys)
        if type_ == INT or end <= LAST_DAY:
            return f"range({write_public(keys[0], type_)}, {write_public(end, type_)})"
    if len(keys) > 2 and isinstance(type_, TupleOf) and type_.elements and None not in keys:
        parts = [tuple(dict.fromkeys(column)) for column in zip(*keys, strict=True)]
        if math.prod(map(len, parts)) == len(keys) and tuple(crossed(*parts)) == keys:
            inside = (write_keys(part, element) for part, element in zip(parts, type_.elements, strict=True))
            return f"product({', '.join(inside)})"
    return f"[{', '.join(write_public(key, type_) for key in keys)}]"


def write_domain(domain: KeyDomain, type_: Type) -> str:
    """A public domain as it is described: a range, digits, a list, or a product of such."""
    if isinstance(domain, IntegerKeys):
        return f"range({write_public(domain.first, type_)}, {write_public(domain.last + 1, type_)})"
    if isinstance(domain, DigitKeys):
        return f"digits({domain.length})"
    if isinstance(domain, ProductKeys):
        assert isinstance(type_, TupleOf)
        inside = (write_domain(part, element) for part, element in zip(domain.parts, type_.elements, strict=True))
        return f"product({', '.join(inside)})"
    assert isinstance(domain, GivenKeys)
    return f"[{', '.join(write_public(key, type_) for key in domain.keys)}]"
