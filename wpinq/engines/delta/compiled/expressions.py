"""Scalar expressions as numba code, in static single assignment.

Integers, floats, bools, nulls and records; strings only as opaque values. Whatever 64 bits cannot say is null, as
in `wpinq.expr.functions`, which is the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from wpinq.engines.delta.compiled import values as code
from wpinq.engines.delta.compiled.hash_table import finding, gathering, row_at
from wpinq.engines.delta.compiled.routine import CannotCompile, call, divides, floor_divide, modulo, truncate
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.types import INT, ListOf, TupleOf, Type, Weighted
from wpinq.expr.values import Value, order_key

# --- memos: functions that Python computes, once for each argument ----------------------------------------------------

#: The words that a group goes by.
GROUP_KEY = 2


@dataclass(frozen=True, slots=True)
class Memo:
    """A function without a form over words, computed by Python once for each argument.

    A table keeps its values, and generated code looks them up. Where one is missing, the arguments are put in a table
    and the proposal is undone. Python computes, and the proposal is made again. So functions of strings and lists
    compile; their values are numbers in a dictionary.

    A reducer that has no running form is a function of a group. The group goes by two sums of mixed words, 128 bits,
    which no order changes. `member` is the type of the members of a group, where it is a function of one.
    """

    number: int
    arguments: tuple[Type, ...]
    value: Type
    compute: Callable[..., Any]
    member: Type | None = None

    @property
    def table(self) -> str:
        """The table of its values."""
        return f"MEMO_{self.number}"

    @property
    def missing(self) -> str:
        """The table that gathers the arguments that are missing."""
        return f"MISS_{self.number}"

    @property
    def members(self) -> str:
        """The table that gathers the members of a group."""
        return f"GROUP_{self.number}"

    @property
    def key_width(self) -> int:
        """The words that its table is looked up by."""
        return GROUP_KEY if self.member is not None else sum(map(code.width, self.arguments))

    @property
    def missing_width(self) -> int:
        """The words that tell what is missing."""
        return self.key_width + (0 if self.member is None else code.width(self.member))

    def learn(self, rows: Sequence[Sequence[int]], dictionary: code.Dictionary) -> list[tuple[list[int], list[int]]]:
        """The key and the value's words of what is missing."""
        found: list[tuple[list[int], list[Value]]] = []
        groups: dict[tuple[int, ...], list[Value]] = {}
        for row in rows:
            if self.member is None:
                words = iter(row)
                found.append((list(row), [dictionary.decode(words, type_) for type_ in self.arguments]))
            else:
                member = dictionary.decode(row[GROUP_KEY:], self.member)
                groups.setdefault(tuple(row[:GROUP_KEY]), []).append(member)
        found += [(list(key), [tuple(sorted(members, key=order_key))]) for key, members in groups.items()]
        return [(key, dictionary.encode(self.compute(*arguments), self.value)) for key, arguments in found]


def memo_of(
    dictionary: code.Dictionary,
    key: object,
    arguments: tuple[Type, ...],
    value: Type,
    compute: Callable[..., Any],
    member: Type | None = None,
) -> Memo:
    """The memo that goes by this key, noted in the dictionary."""
    known = dictionary.memos
    if key not in known:
        known[key] = Memo(len(known), arguments, value, compute, member)
    found: Memo = known[key]
    return found


def looked_up(writer: code.Writer, memo: Memo, words: Sequence[str]) -> list[str]:
    """Write the look-up of a value, and name its words.

    Where the value is missing, the routine being written ends.
    """
    size = memo.key_width
    key = [writer.bind(word) for word in words]
    row = writer.bind(call(finding(size), memo.table, *key), "r")
    writer.when(f"{row} == 0", call(gathering(size), memo.missing, *key, "1.0"), "save(state, MISSED, 1)", "return")
    return value_words(writer, memo, row)


def value_words(writer: code.Writer, memo: Memo, row: str) -> list[str]:
    """Names of the words of a value in its row."""
    start = call(row_at, memo.table, row)
    return [writer.bind(f"load(state, {start} + {memo.key_width + i})") for i in range(code.width(memo.value))]


def length_of(writer: code.Writer, type_: ListOf, word: str) -> str:
    """Write the length of a list."""
    # by `repr`: types are equal that differ in what may be null, and so in their words
    memo = memo_of(writer.dictionary, ("length", repr(type_)), (type_,), INT, len)
    return looked_up(writer, memo, [word])[0]


def element_of(writer: code.Writer, type_: ListOf, word: str, index: str) -> list[str]:
    """Write the words of an element of a list.

    The elements are learnt with the list's length.
    """
    memo = memo_of(writer.dictionary, ("element", repr(type_)), (type_, INT), type_.element, lambda held, at: held[at])
    return looked_up(writer, memo, [word, index])


def elements(dictionary: code.Dictionary, memo: Memo, row: Sequence[int]) -> Iterator[tuple[Memo, list[int]]]:
    """The elements of a list whose length is learnt, each as what would be missing."""
    (type_,) = memo.arguments[:1] or (INT,)
    follower = dictionary.memos.get(("element", repr(type_)))
    if follower is not None and dictionary.memos.get(("length", repr(type_))) is memo:
        for index in range(len(dictionary.decode(row, type_))):
            yield follower, [*row, index]


def group_looked_up(writer: code.Writer, memo: Memo) -> list[str]:
    """Write the look-up of a reducer's value.

    Where it is missing, its members are noted if there is room for all.
    """
    size = memo.missing_width - GROUP_KEY
    row = writer.bind(call(finding(GROUP_KEY), memo.table, "group_a", "group_b"), "r")
    with writer.block(f"if {row} == 0:"):
        writer.line("save(state, MISSED, 1)")
        needed = f"load(state, {memo.missing} + COUNT) + load(state, {memo.members} + COUNT) + 1"
        writer.when(f"{needed} >= load(state, {memo.missing} + CAP)", f"save(state, STATUS, {memo.missing})", "return")
        at, base = writer.name("z"), writer.name("b")
        with writer.block(f"for {at} in range(1, 1 + load(state, {memo.members} + COUNT)):"):
            writer.line(f"{base} = {call(row_at, memo.members, at)}")
            words = ["group_a", "group_b", *(f"load(state, {base} + {i})" for i in range(size))]
            writer.line(call(gathering(GROUP_KEY + size), memo.missing, *words, "1.0"))
        writer.line("return")
    return value_words(writer, memo, row)


def emit(writer: code.Writer, expr: Expr) -> code.ValueCode:
    """Write the computation of a primitive expression, and return its value.

    The writer must know its variables.
    """
    known = writer.known.get(expr.digest)
    if known is not None:
        return known
    if isinstance(expr, Constant):
        return code.constant(writer, expr.value, expr.type)
    if isinstance(expr, Variable) or not isinstance(expr, Call) or isinstance(expr.type, Weighted):
        raise CannotCompile("a group is used as a value")
    rule = _RULES.get(expr.name)
    if isinstance(expr.type, ListOf) and expr.name not in ("field", "where"):
        rule = None
    try:
        if rule is None:
            raise CannotCompile(f"the function {expr.name} has no integer form")
        arguments = [emit(writer, argument) for argument in expr.arguments]
        value = rule(writer, expr, arguments)
    except RecursionError:
        raise CannotCompile("an expression is too deep") from None
    except CannotCompile:
        if not writer.memoizes:
            raise
        value = _memoized(writer, expr)
    writer.known[expr.digest] = value
    return value


def _memoized(writer: code.Writer, expr: Call) -> code.ValueCode:
    """A function of the variables that the expression is made of, which Python computes."""
    inner = {variable.digest for node in walk(expr) if isinstance(node, Lambda) for variable in node.parameters}
    variables = [node for node in walk(expr) if isinstance(node, Variable) and node.digest not in inner]
    if any(variable.digest not in writer.known for variable in variables):
        raise CannotCompile(f"the function {expr.name} of a group has no integer form")
    words = [word for variable in variables for word in code.to_words(writer.known[variable.digest], variable.type)]
    key = ("value", expr.digest, *(variable.digest for variable in variables))
    arguments = tuple(variable.type for variable in variables)
    compute = compile_lambda(make_lambda(tuple(variables), expr))
    memo = memo_of(writer.dictionary, key, arguments, expr.type, compute)
    return code.from_words(expr.type, looked_up(writer, memo, words))


ScalarRule = Callable[[code.Writer, Call, list[code.ValueCode]], code.ValueCode]
_RULES: dict[str, ScalarRule] = {}


def _rule(primitive: str) -> Callable[[ScalarRule], ScalarRule]:
    """Declare the rule of a primitive; a primitive without a rule is a memo."""
    return lambda rule: _RULES.setdefault(primitive, rule)


def _scalars(arguments: list[code.ValueCode]) -> list[code.ScalarCode]:
    terms = [argument for argument in arguments if isinstance(argument, code.ScalarCode)]
    if len(terms) < len(arguments):
        raise CannotCompile("a record stands where a scalar is needed")
    return terms


def _strict(
    writer: code.Writer, kind: str, arguments: list[code.ValueCode], value: str, fits: str | None = None
) -> code.ScalarCode:
    """A scalar that is present where its arguments are and `fits` holds.

    `{0}`, `{1}` stand for the arguments.
    """
    terms = _scalars(arguments)
    if any(term.kind == "null" for term in terms):
        return code.absent(kind)
    texts = [term.text for term in terms]
    present = reduce(code.both, [term.present for term in terms], None)
    if fits is not None:
        present = code.both(present, fits.format(*texts))
    if present is not None:
        present = writer.bind(present, "p")
    return code.ScalarCode(kind, writer.bind(value.format(*texts)), present)


def _arithmetic(primitive: str, sign: str) -> None:
    @_rule(primitive)
    def rule(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
        if any(isinstance(a, code.ScalarCode) and a.kind == "float" for a in arguments):
            return _finite(writer, _strict(writer, "float", arguments, f"{{0}} {sign} {{1}} + 0.0"))
        return _strict(writer, "int", arguments, f"{{0}} {sign} {{1}}", f"{primitive}_fits({{0}}, {{1}})")


for _primitive, _sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")):
    _arithmetic(_primitive, _sign)


def _finite(writer: code.Writer, value: code.ScalarCode) -> code.ScalarCode:
    present = writer.bind(code.both(value.present, f"isfinite({value.text})") or "True", "p")
    return code.ScalarCode("float", value.text, present)


def all_of(conditions: list[str]) -> str:
    """Code of the conjunction."""
    if "False" in conditions:
        return "False"
    return " and ".join(condition for condition in conditions if condition != "True") or "True"


def same(writer: code.Writer, a: code.ValueCode, b: code.ValueCode) -> str:
    """Code that says whether two values are one record; null equals null."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, code.ScalarCode) and one.kind == "null":
            return f"(not {other.present})" if other.present is not None else "False"
    if isinstance(a, code.RecordCode) and isinstance(b, code.RecordCode):
        inside = all_of([same(writer, x, y) for x, y in zip(a.parts, b.parts, strict=True)])
    else:
        assert isinstance(a, code.ScalarCode) and isinstance(b, code.ScalarCode)
        inside = f"{a.text} == {b.text}"
        if writer.distinct(a.text, b.text):
            inside = "False"
        elif a.text == b.text and a.text in writer.order:
            inside = "True"
    if a.present is None and b.present is None:
        return inside if inside in ("True", "False") else f"({inside})"
    p, q = a.present or "True", b.present or "True"
    return f"(({p} and {q} and {inside}) or not ({p} or {q}))"


@_rule("less")
def _less(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    if all(isinstance(a, code.ScalarCode) and a.present is None and a.kind in ("int", "str") for a in arguments):
        first, second = _scalars(arguments)
        known = writer.less(first.text, second.text)
        if known is not None:
            return code.ScalarCode("bool", str(known))
    if any(isinstance(a, code.ScalarCode) and a.kind == "str" for a in arguments):
        raise CannotCompile("strings are ordered")
    return _strict(writer, "bool", arguments, "{0} < {1}")


@_rule("and")
def _and(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    a, b = (code.absent("bool") if term.kind == "null" else term for term in _scalars(arguments))
    p, q = a.present or "True", b.present or "True"
    value = writer.bind(all_of([p, a.text, q, b.text]))
    if a.present is None and b.present is None:
        return code.ScalarCode("bool", value)
    present = writer.bind(f"({p} and {q}) or ({p} and not {a.text}) or ({q} and not {b.text})", "p")
    return code.ScalarCode("bool", value, present)


@_rule("not")
def _not(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    (value,) = _scalars(arguments)
    if value.text in ("True", "False") and value.present is None:
        return code.ScalarCode("bool", str(value.text == "False"))
    return _strict(writer, "bool", arguments, "not {0}")


def truth(value: code.ValueCode) -> str:
    """Code that says whether a bool is there and true."""
    assert isinstance(value, code.ScalarCode)
    if value.kind == "null":
        return "False"
    return value.text if value.present is None else f"({value.present} and {value.text})"


@_rule("where")
def _where(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    condition = writer.bind(truth(arguments[0]))
    if condition in ("True", "False") and type(arguments[1]) is type(arguments[2]):
        chosen = arguments[1] if condition == "True" else arguments[2]
        if chosen.present is None:
            return chosen
    return _choose(writer, condition, arguments[1], arguments[2])


def _choose(writer: code.Writer, condition: str, yes: code.ValueCode, no: code.ValueCode) -> code.ValueCode:
    if isinstance(yes, code.ScalarCode) and yes.kind == "null":
        yes = _null_like(no)
    if isinstance(no, code.ScalarCode) and no.kind == "null":
        no = _null_like(yes)
    present = None
    if yes.present is not None or no.present is not None:
        present = writer.bind(f"{yes.present or 'True'} if {condition} else {no.present or 'True'}", "p")
    if isinstance(yes, code.RecordCode):
        assert isinstance(no, code.RecordCode)
        pairs = zip(yes.parts, no.parts, strict=True)
        return code.RecordCode(tuple(_choose(writer, condition, *pair) for pair in pairs), present)
    assert isinstance(no, code.ScalarCode)
    return code.ScalarCode(yes.kind, writer.bind(f"{yes.text} if {condition} else {no.text}"), present)


def _null_like(value: code.ValueCode) -> code.ValueCode:
    if isinstance(value, code.RecordCode):
        return code.RecordCode(tuple(_null_like(part) for part in value.parts), "False")
    return code.absent(value.kind)


@_rule("is_null")
def _is_null(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    present = arguments[0].present
    return code.ScalarCode("bool", "False" if present is None else writer.bind(f"not {present}"))


@_rule("to_int")
def _to_int(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    (value,) = _scalars(arguments)
    if value.kind in ("int", "null"):
        return value if value.kind == "int" else code.absent("int")
    if value.kind == "bool":
        return _strict(writer, "int", arguments, "(1 if {0} else 0)")
    if value.kind == "float":
        fits = "(-9.223372036854775808e18 <= {0} < 9.223372036854775808e18)"
        return _strict(writer, "int", arguments, call(truncate, "{0}"), fits)
    raise CannotCompile("a string is cast to int")


@_rule("to_float")
def _to_float(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    (value,) = _scalars(arguments)
    if value.kind in ("float", "null"):
        return value if value.kind == "float" else code.absent("float")
    if value.kind == "int":
        return _strict(writer, "float", arguments, "float({0})")
    raise CannotCompile("a string is cast to float")


@_rule("field")
def _field(writer: code.Writer, expr: Call, arguments: list[code.ValueCode]) -> code.ValueCode:
    (value,), (index,) = arguments, expr.attributes
    assert isinstance(index, int)
    if isinstance(value, code.ScalarCode):
        return code.nothing(expr.type)
    part = value.parts[index]
    if value.present is None:
        return part
    present = code.both(value.present, part.present)
    if isinstance(part, code.RecordCode):
        return code.RecordCode(part.parts, present)
    return code.ScalarCode(part.kind, part.text, present)


def shaped(value: code.ValueCode, type_: object) -> code.ValueCode:
    """A null that must fill the shape of a record type."""
    return code.nothing(type_) if isinstance(value, code.ScalarCode) and isinstance(type_, TupleOf) else value


_RULES |= {
    "divide": lambda writer, expr, given: _finite(
        writer, _strict(writer, "float", given, "{0} / {1} + 0.0", "{1} != 0.0")
    ),
    "floor_divide": lambda writer, expr, given: _strict(
        writer, "int", given, call(floor_divide, "{0}", "{1}"), call(divides, "{0}", "{1}")
    ),
    "modulo": lambda writer, expr, given: _strict(writer, "int", given, call(modulo, "{0}", "{1}"), "{1} != 0"),
    "equal": lambda writer, expr, given: code.ScalarCode("bool", writer.bind(same(writer, *given))),
    "record": lambda writer, expr, given: code.RecordCode(tuple(given)),
}
