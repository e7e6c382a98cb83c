"""Whether every variable of a function is bound, by a lambda that gives it the type it has.

Functions come from tracing, from text and from files. Only a closed one can be compiled, and that must be known
when the query is made: afterwards a failure would come after the debit.
"""

from __future__ import annotations

from wpinq.errors import ExpressionError
from wpinq.expr.nodes import Lambda, Variable, walk
from wpinq.expr.types import Type, signature

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
