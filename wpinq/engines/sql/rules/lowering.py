"""Lambdas to terms: the body of a function over the columns of the records it is applied to."""

from __future__ import annotations

from collections.abc import Mapping

from wpinq.engines.relational.blocks.shape import Shape, unpack
from wpinq.engines.relational.blocks.term import parameter
from wpinq.engines.relational.rules.primitives import RULES, constant, variable_name
from wpinq.engines.relational.sql.dialect import Dialect, Unsupported
from wpinq.engines.relational.sql.script import Script
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, walk


def lower(script: Script, lambda_: Lambda, *arguments: Shape) -> Shape:
    """The value of a function on arguments, as terms. Shared parts are lowered once, at any depth.

    Every term of a parameter of an inner lambda counts as able to be null: see `primitives`.
    """
    core = lambda_.core
    bound = {variable.level: shape for variable, shape in zip(core.parameters, arguments, strict=True)}
    return lower_with(core, bound, {}, script.emitter.dialect)


def lower_with(core: Lambda, bound: Mapping[int, Shape], known: Mapping[bytes, Shape], dialect: Dialect) -> Shape:
    """The value of a function whose variables are bound by level; what `known` has, by digest, is taken from there."""
    done: dict[bytes, Shape] = {}
    for node in walk(core.body):
        done[node.digest] = known[node.digest] if node.digest in known else _lower(node, done, bound, dialect)
    return done[core.body.digest]


def _lower(node: Expr, done: dict[bytes, Shape], bound: Mapping[int, Shape], dialect: Dialect) -> Shape:
    if isinstance(node, Constant):
        return constant(node.value, node.type, dialect)
    if isinstance(node, Variable):
        held = bound.get(node.level)
        return unpack(parameter(variable_name(node.level)), node.type) if held is None else held
    if isinstance(node, Lambda):
        return done[node.body.digest]
    assert isinstance(node, Call)
    rule = RULES.get(node.name)
    if rule is None:
        raise Unsupported(f"the primitive {node.name!r} has no rule in SQL")
    return rule(node, tuple(done[argument.digest] for argument in node.arguments))
