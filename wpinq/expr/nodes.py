"""Expression nodes: immutable, typed when built, equal when they mean the same.

An expression is a DAG of four kinds of node. Variables are named by level, counted from the outermost lambda,
so that two lambdas which differ only in the names of their parameters are equal. Each node carries a digest of
its meaning, computed once from its children's digests: equality and hashing cost nothing however deep the DAG.
What may be null and how long lists may be is part of that meaning, for compiled code depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol, TypeVar

from wpinq.errors import ExpressionError
from wpinq.expr.types import Type, physical, signature
from wpinq.expr.values import Value, canonical_bytes


def digest_of(*parts: bytes | str) -> bytes:
    """A collision-resistant digest of a sequence of parts, each delimited by its length."""
    hasher = hashlib.blake2b(digest_size=32)
    for part in parts:
        encoded = part.encode("utf-8") if isinstance(part, str) else part
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.digest()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Expr:
    """A scalar expression: its type, the expressions it is built from, and the digest of its meaning."""

    type: Type
    children: tuple[Expr, ...] = field(init=False, default=())
    digest: bytes = field(init=False, default=b"")

    def _seal(self, children: tuple[Expr, ...], *identity: bytes | str) -> None:
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "digest", digest_of(*identity, *(child.digest for child in children)))

    @property
    def core(self) -> Expr:
        """The same expression in primitives over physical types only. Engines see nothing else."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:  # not of the children: a DAG written out as a tree can be exponentially long
        return f"<{type(self).__name__} {self.type} {self.digest.hex()[:8]}>"


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Constant(Expr):
    """A public value written in the query."""

    value: Value

    @property
    def core(self) -> Expr:
        type_ = physical(self.type)
        return self if type_ is self.type else Constant(type_, self.value)

    def __post_init__(self) -> None:
        self._seal((), "constant", signature(self.type), canonical_bytes(self.value, self.type))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Variable(Expr):
    """A parameter of an enclosing lambda. The name is for display only."""

    level: int
    name: str

    @property
    def core(self) -> Variable:
        type_ = physical(self.type)
        return self if type_ is self.type else Variable(type_, self.level, self.name)

    def __post_init__(self) -> None:
        self._seal((), "variable", signature(self.type), str(self.level))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Call(Expr):
    """A function applied to arguments.

    `attributes` are the static parts of a call: field names of a record, the index of a field. `lowered` is the
    same value said in primitives over physical types, or None where the call and everything below it is so already.
    """

    name: str
    arguments: tuple[Expr, ...]
    attributes: tuple[str | int | None, ...] = ()
    lowered: Expr | None = None

    @property
    def core(self) -> Expr:
        return self if self.lowered is None else self.lowered

    def __post_init__(self) -> None:
        self._seal(self.arguments, "call", self.name, repr(self.attributes), str(len(self.arguments)))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Lambda(Expr):
    """A function of `len(parameters)` variables, the first of them at `level`. Its type is its body's."""

    level: int
    parameters: tuple[Variable, ...]
    body: Expr

    def __post_init__(self) -> None:
        types = (signature(parameter.type) for parameter in self.parameters)
        self._seal((self.body,), "lambda", str(self.level), str(len(self.parameters)), *types)

    @property
    def core(self) -> Lambda:
        core, parameters = self.body.core, tuple(parameter.core for parameter in self.parameters)
        if core is self.body and all(one is other for one, other in zip(parameters, self.parameters, strict=True)):
            return self
        return Lambda(core.type, self.level, parameters, core)


def make_lambda(parameters: tuple[Variable, ...], body: Expr, level: int = 0) -> Lambda:
    """The function that gives `body` for the values of `parameters`."""
    if isinstance(body, Lambda):
        raise ExpressionError("a function gives a value, not another function")
    return Lambda(body.type, level, parameters, body)


class Digested(Protocol):
    """What a walk goes along: equal to another where the digests are."""

    @property
    def digest(self) -> bytes: ...


D = TypeVar("D", bound=Digested)


def below_first(roots: Iterable[D], below: Callable[[D], Sequence[D]], known: Iterable[bytes] = ()) -> Iterator[D]:
    """Every distinct node once, after those `below` it, without those that are `known`; any depth, no recursion."""
    done = set(known)
    stack = [(root, False) for root in roots][::-1]
    while stack:
        node, expanded = stack.pop()
        if node.digest in done:
            continue
        if expanded:
            done.add(node.digest)
            yield node
        else:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(below(node))]


def walk(root: Expr) -> Iterator[Expr]:
    """Every distinct node once, children before parents."""
    return below_first([root], attrgetter("children"))


# Whether every variable of a function is bound, by a lambda that gives it the type it has.
#
# Functions come from tracing, from text and from files. Only a closed one can be compiled, and that must be known
# when the query is made: afterwards a failure would come after the debit.

NESTING_LIMIT = 40
"""How deep lambdas may nest in one another."""


def check_function(function: Lambda, types: tuple[Type, ...]) -> None:
    """Refuse what is not a closed function of records of these types.

    Raises
    ------
    ExpressionError
        When its parameters are of other types, a symbol of another lambda has slipped in, or lambdas nest too deep.
    """
    given = tuple(parameter.type for parameter in function.parameters)
    if tuple(map(signature, given)) != tuple(map(signature, types)):
        raise ExpressionError(f"the function is of {_listed(given)}, the records are {_listed(types)}")
    free: dict[bytes, frozenset[bytes]] = {}
    lowest: dict[bytes, int] = {}  # of the levels of the lambdas at or below a node
    highest = NESTING_LIMIT + 1
    for node in walk(function):
        below = [free[child.digest] for child in node.children]
        names = below[0] if below else frozenset()
        for other in below[1:]:
            names = names if other <= names else names | other
        level = min((lowest[child.digest] for child in node.children), default=highest)
        if isinstance(node, Variable):
            names = frozenset((node.digest,))
        elif isinstance(node, Lambda):
            beyond = node.level + len(node.parameters)
            levels = tuple(parameter.level for parameter in node.parameters)
            if levels != tuple(range(node.level, beyond)) or node.level < 0 or beyond > min(level, highest):
                raise ExpressionError(f"lambdas nest deeper than {NESTING_LIMIT}, or share a variable")
            names -= {parameter.digest for parameter in node.parameters}
            level = node.level
        free[node.digest], lowest[node.digest] = names, level
    if free[function.digest]:
        raise ExpressionError(
            "the lambda uses a symbol of another lambda: a function may use its own parameters and constants only"
        )


def _listed(types: tuple[Type, ...]) -> str:
    return ", ".join(map(str, types)) or "nothing"
