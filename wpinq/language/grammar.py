"""From text to syntax: lark reads, and what it reads becomes nodes from the leaves up."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from typing import Any

from wpinq.errors import LanguageError
from wpinq.expr.temporal import MOMENTS
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, Type, category, decimal, record_type, tuple_type
from wpinq.language import syntax
from wpinq.language.syntax import Text, shorten, suggest

#: The most characters of a number.
DIGITS_LIMIT = 400

#: The largest decimal exponent of a number, of either sign; floats end at 308.
EXPONENT_LIMIT = 400

SCALARS: dict[str, Type] = {type_.name: type_ for type_ in (INT, FLOAT, BOOL, STR, *MOMENTS)}


class _Reader:
    """A method for each rule of the grammar, from its children to a node, type or literal.

    The children are nodes and tokens.
    """

    def __init__(self, text: Text) -> None:
        self.text = text

    # --- literals ---------------------------------------------------------------------------------------------------

    def number(self, token: Any) -> syntax.Literal:
        digits, _, exponent = token.lower().partition("e")
        if len(token) > DIGITS_LIMIT or abs(int(exponent or 0)) > EXPONENT_LIMIT:
            raise self.text.error(
                f"a number has at most {DIGITS_LIMIT} digits and an exponent of at most {EXPONENT_LIMIT}",
                token.start_pos,
            )
        whole = digits == token
        return syntax.Literal(token.start_pos, int(token) if whole and "." not in token else Fraction(str(token)))

    def string(self, token: Any) -> syntax.Literal:
        try:
            return syntax.Literal(token.start_pos, json.loads(token))
        except ValueError:
            raise self.text.error(
                'this string has an escape that is not one of \\" \\\\ \\n \\t \\r \\b \\f \\/ \\u0041; '
                "a backslash is written \\\\",
                token.start_pos,
            ) from None

    # --- types ------------------------------------------------------------------------------------------------------

    def named_type(self, name: Any) -> Type:
        if name in SCALARS:
            return SCALARS[name]
        hint = suggest(name, [*SCALARS, "list[T]"])
        raise self.text.error(f"there is no type `{shorten(name)}`; {hint}", name.start_pos)

    def applied_type(self, name: Any, opening: Any, *given: Any) -> Type:
        if name not in ("decimal", "category"):
            raise self.text.error(f'`{shorten(name)}` takes no `(`: decimal(2) and category("a") do', name.start_pos)
        if name == "decimal" and len(given) > 1:
            raise self.text.error("a decimal has one scale: decimal(2) has cents", name.start_pos)
        values: list[Any] = [self.number(t).value if t.type == "NUMBER" else self.string(t).value for t in given]
        return self._made(lambda: decimal(*values) if name == "decimal" else category(*values), name.start_pos)

    def list_type(self, name: Any, element: Type, bound: Any = None) -> Type:
        if name != "list":
            raise self.text.error(f"`{shorten(name)}` takes no `[`; a list is written list[T]", name.start_pos)
        most = None
        if bound is not None:
            number = self.number(bound).value
            if not isinstance(number, int) or number < 1:
                raise self.text.error("the most elements of a list is an integer, at least 1", bound.start_pos)
            most = number
        return self._made(lambda: ListOf(element, bound=most), name.start_pos)

    def tuple_type(self, opening: Any, *children: Any) -> Type:
        if len(children) == 1:  # parentheses only; one field is written (T,)
            return children[0]  # type: ignore[no-any-return]
        return self._made(lambda: tuple_type(c for c in children if isinstance(c, Type)), opening.start_pos)

    def nullable_type(self, type_: Type) -> Type:
        return type_.with_nullable()

    def named(self, name: Any, type_: Type) -> tuple[Any, Type]:
        return name, type_

    def named_types(self, *pairs: tuple[Any, Type]) -> Type:
        fields: dict[str, Type] = {}
        for name, type_ in pairs:
            if name in fields:
                raise self.text.error(f"the field `{shorten(name)}` is there twice; name them apart", name.start_pos)
            fields[str(name)] = type_
        return self._made(lambda: record_type(fields), pairs[0][0].start_pos)

    def _made(self, make: Callable[[], Type], position: int) -> Type:
        with self.text.placed(position):
            return make()

    def _children(self, *children: Any) -> tuple[Any, ...]:
        return children

    start = arguments = fields = items = group = _children

    def read(self, root: Any) -> Any:
        """What the rules give for a parse tree, children first; any depth, no recursion."""
        order, stack = [], [root]
        while stack:
            tree = stack.pop()
            order.append(tree)
            stack.extend(child for child in tree.children if hasattr(child, "children"))
        built: dict[int, Any] = {}
        for tree in reversed(order):
            children = [built.pop(id(child)) if hasattr(child, "children") else child for child in tree.children]
            built[id(tree)] = getattr(self, tree.data)(*children)
        return built[id(root)]

    # --- statements -------------------------------------------------------------------------------------------------

    def source(self, name: Any, type_: Type, *options: tuple[str, int, syntax.Syntax]) -> syntax.ProgramStatement:
        return syntax.SourceStatement(name.start_pos, str(name), type_, options)

    def option(self, name: Any, value: syntax.Syntax) -> tuple[str, int, syntax.Syntax]:
        return str(name), name.start_pos, value

    def parameter(self, name: Any, value: syntax.Syntax) -> syntax.ProgramStatement:
        return syntax.ParameterStatement(name.start_pos, str(name), value)

    def function(self, name: Any, *rest: Any) -> syntax.ProgramStatement:
        *parameters, body = rest
        return syntax.FunctionStatement(name.start_pos, str(name), self._function(name.start_pos, parameters, body))

    def binding(self, *children: Any) -> syntax.ProgramStatement:
        *declared, name, value = children
        return syntax.Binding(name.start_pos, str(name), value, bool(declared))

    # --- expressions ------------------------------------------------------------------------------------------------

    word = string

    def name(self, token: Any) -> syntax.Syntax:
        return syntax.Name(token.start_pos, str(token))

    def choice(self, condition: syntax.Syntax, token: Any, yes: syntax.Syntax, no: syntax.Syntax) -> syntax.Syntax:
        arguments = tuple(syntax.Argument(None, value) for value in (condition, yes, no))
        return syntax.Invocation(token.start_pos, None, "where", arguments)

    def infix(self, left: syntax.Syntax, token: Any, right: syntax.Syntax) -> syntax.Syntax:
        return syntax.Operation(token.start_pos, str(token), (left, right))

    def prefix(self, token: Any, operand: syntax.Syntax) -> syntax.Syntax:
        if token == "-" and isinstance(operand, syntax.Literal) and type(operand.value) in (int, Fraction):
            return syntax.Literal(token.start_pos, -operand.value)  # type: ignore[operator]
        return syntax.Operation(token.start_pos, str(token), (operand,))

    def access(self, subject: syntax.Syntax, name: Any) -> syntax.Syntax:
        return syntax.Access(name.start_pos, subject, str(name))

    def index(self, subject: syntax.Syntax, token: Any, index: syntax.Syntax) -> syntax.Syntax:
        return syntax.Index(token.start_pos, subject, index)

    def method(self, subject: syntax.Syntax, name: Any, arguments: tuple[syntax.Argument, ...]) -> syntax.Syntax:
        return syntax.Invocation(name.start_pos, subject, str(name), arguments)

    def call(self, name: Any, arguments: tuple[syntax.Argument, ...]) -> syntax.Syntax:
        return syntax.Invocation(name.start_pos, None, str(name), arguments)

    def construction(self, new: Any, name: Any, arguments: tuple[syntax.Argument, ...]) -> syntax.Syntax:
        return syntax.Invocation(name.start_pos, None, str(name), arguments, new=True)

    def argument(self, *children: Any) -> syntax.Argument:
        *name, value = children
        return syntax.Argument(str(name[0]) if name else None, value)

    def record(self, *children: Any) -> syntax.Syntax:
        return syntax.RecordLiteral(children[0].start_pos, children[-1])

    def list(self, token: Any, items: tuple[syntax.Syntax, ...]) -> syntax.Syntax:
        return syntax.List(token.start_pos, items)

    def table(self, token: Any) -> syntax.NumberList:
        numbers = tuple(json.loads(token))
        if not all(map(math.isfinite, numbers)):
            raise self.text.error("a number of this list is beyond the range of floats", token.start_pos)
        return syntax.NumberList(token.start_pos, numbers)

    def typed_list(self, new: Any, *children: Any) -> syntax.Syntax:
        *element, items = children
        return syntax.List(new.start_pos, items, str(element[0]) if element else None)

    def grouped(self, group: tuple[Any, ...]) -> syntax.Syntax:
        opening, *items = group
        if len(items) == 1:
            return items[0]  # type: ignore[no-any-return]
        return syntax.Tuple(opening.start_pos, tuple(item for item in items if isinstance(item, syntax.Syntax)))

    def simple_lambda(self, name: Any, body: syntax.Syntax) -> syntax.Syntax:
        return self._function(name.start_pos, [name], body)

    def group_lambda(self, group: tuple[Any, ...], body: syntax.Syntax) -> syntax.Syntax:
        opening, *items = group
        for item in items:
            if not isinstance(item, syntax.Name):
                position = item.position if isinstance(item, syntax.Syntax) else opening.start_pos
                raise self.text.error("the parameters of a lambda are names: (x, y) => …", position)
        return self._function(opening.start_pos, [item.name for item in items], body)

    def _function(self, position: int, names: Iterable[str], body: syntax.Syntax) -> syntax.ArrowFunction:
        parameters = tuple(str(name) for name in names)
        for i, name in enumerate(parameters):
            if name in parameters[:i]:
                raise self.text.error(f"two parameters are called `{shorten(name)}`; name them apart", position)
        if not parameters:
            raise self.text.error("a function needs a parameter: x => …", position)
        return syntax.ArrowFunction(position, parameters, body)


_CLOSERS = ";,)]}=:("


def read(text: Text) -> list[syntax.ProgramStatement]:
    """The statements of a program, or LanguageError at the first thing that cannot be read."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    text.check()
    try:
        tree = _parser().parse(text.text)
    except UnexpectedToken as error:
        position = len(text.text.rstrip()) if error.token.type == "$END" else error.token.start_pos
        raise _unexpected(text, position, error.accepts or error.expected) from None
    except UnexpectedCharacters as error:
        raise _unexpected(text, error.pos_in_stream, error.allowed or ()) from None
    except UnexpectedInput as error:
        raise text.error("this cannot be read", error.pos_in_stream or 0) from None
    return list(_Reader(text).read(tree))


@lru_cache(maxsize=1)
def _parser() -> Any:
    from lark import Lark

    grammar = resources.files("wpinq.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(f"{grammar}\nTABLE: /{syntax.TABLE}/\n", parser="lalr")


def _unexpected(text: Text, position: int, expected: Iterable[str]) -> LanguageError:
    rest = text.text[position:]
    if rest.startswith('"'):
        return text.error('this string is not closed on its line: end it with " (a new line is \\n)', position)
    if rest.startswith("'"):
        return text.error('strings stand in double quotes: "…"', position)
    for back in (0, 1):
        if text.text[max(0, position - back) :].startswith("/*"):
            return text.error("this comment is never closed: end it with */", position - back)
    names = set(expected)
    terminals = {terminal.pattern.value: terminal.name for terminal in _parser().terminals}
    wanted = [f"`{sign}`" for sign in _CLOSERS if terminals[sign] in names]
    if "NUMBER" in names and "PLUS" not in names:
        wanted = ["an expression"]
    elif names >= {"NAME"}:
        wanted = ["a name", *wanted]
    if "SOURCE" in names:
        wanted = ["a statement: source, parameter, function or var"]
    found = "the end of the program" if not rest.strip() else f"`{shorten(rest.split()[0])}`"
    hint = f"expected {' or '.join(wanted)}, not {found}" if wanted else f"{found} cannot stand here"
    before = text.text[:position].rstrip()
    if "//" in before[before.rfind("\n") + 1 :]:
        hint += " (`//` starts a comment; between integers `/` rounds down)"
    elif rest.startswith(("&", "|")) or rest.split(maxsplit=1)[:1] in (["and"], ["or"], ["not"]):
        hint += " (and, or, not are written &&, ||, !)"
    return text.error(hint, position)
