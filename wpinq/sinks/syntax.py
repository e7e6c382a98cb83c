"""The text form of sinks: how a program names a release, which arguments it takes, and how it is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node

ParameterKind = Literal["epsilon", "number", "integer", "real", "function", "keys", "key_domain"]
"""How a program writes an argument."""


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


Written = tuple[Node, list[str]]
"""The plan that a release is called on, and its arguments after epsilon."""


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
        """The measurement of a query by a sink that the arguments ask for."""
        if self.method:
            named = {self.renamed.get(name, name): value for name, value in given.items()}
            return getattr(query, self.method)(**named, **self.fixed)
        fields = {name: value for name, value in given.items() if name not in ("epsilon", "over")}
        return query.measure(sink.from_arguments(**fields), given["epsilon"], given.get("over"))


EPSILON = SinkParameter("epsilon", "epsilon")
OVER = SinkParameter("over", "keys")
