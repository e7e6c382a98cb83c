"""From a program's text to its queries and measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from wpinq.api.people import people_of_type
from wpinq.api.query import Query
from wpinq.api.series import series
from wpinq.api.source import source
from wpinq.errors import LanguageError
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.declarations import FACTS
from wpinq.expr.nodes import RESERVED
from wpinq.language import syntax
from wpinq.language.chains import Chains, ProgramValue
from wpinq.language.grammar import read
from wpinq.language.lambdas import Lambdas, snake
from wpinq.language.public_values import PublicScalar, Values, override
from wpinq.language.syntax import Text, shorten, suggest
from wpinq.language.write import print_program, write_source
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.measure.measurement import Measurement
from wpinq.plan.lowering import with_facts, with_records_at_most
from wpinq.plan.node import Node
from wpinq.plan.operators.source import Source
from wpinq.runtime.public import public
from wpinq.tables.tabulation import Tabulation

# Programs: named queries and measurements, as a mapping that prints as text.


class UnknownName(LanguageError, KeyError):
    """A program has no query or measurement of this name."""

    __str__ = Exception.__str__


@public
class Program(Mapping[str, ProgramValue]):
    """The variables of a text program: a mapping from name to query or measurement.

    `str(program)` is a program that parses to equal plans, with functions and parameters written out; printing
    that again changes nothing.

    Attributes
    ----------
    sources : dict
        Name to query of each declared source.
    parameters : dict
        Name to value in use of each declared parameter; numbers are int or exact Fractions.

    Examples
    --------
    >>> from wpinq.language import parse
    >>> program = parse('''
    ... source edges(src: int, dst: int);
    ... parameter epsilon = 0.1;
    ... var ccdf = edges.Select(edge => edge.src).Shave(1.0).Select(pair => pair.index);
    ... var counts = ccdf.NoisyCount(epsilon, over: range(0, 100));
    ... ''')
    >>> list(program), program["ccdf"].uses()
    (['ccdf', 'counts'], {'edges': 1})
    """

    def __init__(
        self, named: Mapping[str, ProgramValue], sources: Mapping[str, Query], parameters: Mapping[str, PublicScalar]
    ) -> None:
        self._named = dict(named)
        self.sources = dict(sources)
        self.parameters = dict(parameters)

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if isinstance(value, Query)}

    @property
    def measurements(self) -> dict[str, Measurement]:
        """The measurements by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if isinstance(value, Measurement)}

    @property
    def tables(self) -> dict[str, Tabulation]:
        """The tables by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if isinstance(value, Tabulation)}

    @property
    def marginals(self) -> dict[str, MarginalTabulation]:
        """The marginals by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if isinstance(value, MarginalTabulation)}

    @property
    def releases(self) -> dict[str, Measurement | Tabulation | MarginalTabulation]:
        """The measurements, tables and marginals by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if not isinstance(value, Query)}

    def promising(self, facts: Mapping[str, Iterable[str]]) -> Program:
        """The same program with further facts for sources, by source name.

        Only what one record of weight 1 is the unit of can promise them.
        """

        def promised(source: Source) -> frozenset[str]:
            more = facts.get(source.source, ()) if source.unit_weight == 1 and source.person is None else ()
            kept = frozenset(source.facts) | frozenset(more)
            return kept - {"whole_weights"} if "unit_weights" in kept else kept

        return self._over(lambda plan: with_facts(plan, promised))

    def of_records_at_most(self, records: Mapping[str, int]) -> Program:
        """The same program with bounds on the records of sources, by source name."""
        return self._over(lambda plan: with_records_at_most(plan, records)) if records else self

    def _over(self, redeclared: Callable[[Node], Node]) -> Program:
        named = {
            name: item.over(redeclared)
            if isinstance(item, (Tabulation, MarginalTabulation))
            else Query(redeclared(item.plan), item.reading)
            if isinstance(item, Query)
            else replace(item, plan=redeclared(item.plan))
            for name, item in self._named.items()
        }
        over = {name: Query(redeclared(query.plan), query.reading) for name, query in self.sources.items()}
        return Program(named, over, self.parameters)

    def __getitem__(self, name: str) -> Any:
        if name not in self._named:
            raise UnknownName(f"the program names nothing {shorten(str(name))!r}; {suggest(str(name), self._named)}")
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        counts = (("tables", len(self.tables)), ("sets of marginals", len(self.marginals)))
        more = "".join(f", {count} {what}" for what, count in counts if count)
        return f"<Program of {len(self.queries)} queries and {len(self.measurements)} measurements{more}>"

    def __str__(self) -> str:
        return print_program(self._named, self.sources)


#: The most statements of a program.
STATEMENT_LIMIT = 2_000


def parse(
    text: str,
    parameters: Mapping[str, object] | None = None,
    name: str = "program",
    sources: Mapping[str, Query] | None = None,
) -> Program:
    """The queries and measurements that a text program defines.

    Parameters
    ----------
    text : str
        The program; `docs/language.md` describes the language and its limits.
    parameters : mapping, optional
        Values for the program's parameters, in place of their defaults. Numbers may be text, such as `"1/3"`.
    name : str
        What messages call the program, such as its file name.
    sources : mapping, optional
        Sources that are declared already, by name: the program may use these and no others. Where it declares one
        itself, it has to say the same.

    Returns
    -------
    Program
        Variable name to `Query` or `Measurement`, with its sources and parameters.

    Raises
    ------
    LanguageError
        At the first thing that is wrong: line, column, the line with a caret, and what to do. Any text gives a program
        or this error, in bounded time.

    Notes
    -----
    Privacy cost: none. A program is pure data; nothing in it is run by Python.

    Source: the notation of Proserpio, Goldberg and McSherry, VLDB 2014, sections 2 to 5.

    Examples
    --------
    >>> program = parse('''
    ... source edges(src: int, dst: int) with unit = "one directed edge";
    ... var paths = edges.Join(edges, x => x.dst, y => y.src, (x, y) => new { a = x.src, b = x.dst, c = y.dst })
    ...                  .Where(p => p.a != p.c);
    ... ''')
    >>> program["paths"].uses()
    {'edges': 2}
    """
    if not isinstance(text, str):
        raise LanguageError(f"a program is text, not {type(text).__name__}: of a file, Path(file).read_text()")
    if text.endswith(".wpq") and "\n" not in text:
        raise LanguageError(f"{text!r} is the name of a file, and a program is its text: parse(Path(file).read_text())")
    if text.lstrip()[:7].lower() in ("select ", "select\n", "select\t"):
        raise LanguageError(
            f"{name}: a program is no SQL: wp.sql reads a SELECT, and so do --sql beside a program with the sources, "
            "and the field sql of a service; "
            'here `source people(city: str); var counts = people.By("city", keys: ["Ulm"]).Agg(0.1, n: Count());`',
            1,
            1,
        )
    try:
        return _Interpreter(Text(text, name), parameters or {}, sources).program()
    except RecursionError:  # only where the caller itself stands near Python's limit
        raise LanguageError(f"{name}: the program nests too deep to be read from here") from None


class _Interpreter:
    """Carries out statements in order: what each name means so far."""

    def __init__(self, text: Text, given: Mapping[str, object], known: Mapping[str, Query] | None = None) -> None:
        self.text = text
        self.given = given
        self.known = known
        self.sources: dict[str, Query] = dict(known or {})
        self.bound: dict[str, ProgramValue] = dict(self.sources)
        self.parameters: dict[str, PublicScalar] = {}
        self.values = Values(text, self.parameters)
        self.lambdas = Lambdas(text, self.parameters, self.bound.keys())
        self.chains = Chains(text, self.values, self.lambdas, self.bound)

    def program(self) -> Program:
        """The program, all statements carried out."""
        statements = read(self.text)
        if len(statements) > STATEMENT_LIMIT:
            raise self.text.error(
                f"a program has at most {STATEMENT_LIMIT:,} statements; split it", statements[STATEMENT_LIMIT].position
            )
        named: dict[str, ProgramValue] = {}
        for statement in statements:
            self._check_name(statement)
            if isinstance(statement, syntax.SourceStatement):
                self._declare(statement)
            elif isinstance(statement, syntax.ParameterStatement):
                self._parameter(statement)
            elif isinstance(statement, syntax.FunctionStatement):
                self.lambdas.functions[statement.name] = statement.function
            elif isinstance(statement, syntax.Binding):
                value = self.chains.value(statement.value)
                named.pop(statement.name, None)  # what is bound again counts where it is bound last
                named[statement.name] = self.bound[statement.name] = value
        unknown = [name for name in self.given if name not in self.parameters]
        if unknown:
            hint = suggest(unknown[0], self.parameters)
            raise LanguageError(f"{self.text.name}: the program has no parameter `{shorten(unknown[0])}`; {hint}")
        return Program(named, self.sources, self.parameters)

    def _check_name(self, statement: syntax.ProgramStatement) -> None:
        name = statement.name
        problem = None
        if name in RESERVED:
            problem = "is a word of the language"
        elif isinstance(statement, syntax.FunctionStatement):
            if name in self.lambdas.functions:
                problem = "is declared already"
            elif snake(name) in FUNCTIONS:
                problem = "is a function of the language"
        elif name in self.parameters:
            problem = "is a parameter already"
        elif isinstance(statement, syntax.Binding):
            if not statement.declared and name not in self.bound:
                raise self.text.error(
                    f"`{shorten(name)}` has no meaning yet: write var {shorten(name)} = …; for a new name, or else "
                    f"{suggest(name, self.bound)}",
                    statement.position,
                )
        elif name in self.bound and not (isinstance(statement, syntax.SourceStatement) and self._may_repeat(name)):
            problem = "is declared already"
        if problem:
            raise self.text.error(f"`{shorten(name)}` {problem}; take another name", statement.position)

    def _may_repeat(self, name: str) -> bool:
        """Whether a name is that of a source declared outside, and nothing else in it yet."""
        return self.known is not None and name in self.known and self.bound[name] is self.known[name]

    def _declare(self, statement: syntax.SourceStatement) -> None:
        name, declared = statement.name, self._source(statement)
        if self.known is not None:
            if name not in self.known:
                raise self.text.error(
                    f"there is no source `{shorten(name)}` here; {suggest(name, self.known)}", statement.position
                )
            if declared != self.known[name]:
                raise self.text.error(
                    f"the source `{name}` is declared otherwise here; leave this statement out, or write "
                    f"{write_source(self.known[name].plan.operator)}",
                    statement.position,
                )
            declared = self.known[name]
        self.sources[name] = self.bound[name] = declared

    def _source(self, statement: syntax.SourceStatement) -> Query:
        options: dict[str, Any] = {}
        for name, position, value in statement.options:
            if name not in _OPTIONS:
                raise self.text.error(f"a source has no option `{shorten(name)}`; {suggest(name, _OPTIONS)}", position)
            if name in options:
                raise self.text.error(f"the option `{name}` is there twice", position)
            read, problem = _OPTIONS[name]
            options[name] = read(self, value)
            if options[name] is None:
                raise self.text.error(problem, value.position)
        with self.text.placed(statement.position):
            if "every" in options:
                return series(statement.name, statement.type, **options)
            if not {"ids", "first", "last", "distinct"}.isdisjoint(options):
                return people_of_type(statement.name, statement.type, options)
            return source(statement.name, statement.type, **options)

    def _parameter(self, statement: syntax.ParameterStatement) -> None:
        default = self.values.scalar(statement.value)
        value = default
        if statement.name in self.given:
            try:
                value = override(statement.name, self.given[statement.name], default)
            except LanguageError as error:
                raise self.text.error(str(error), statement.position) from None
        self.parameters[statement.name] = value


# The options of a source: how each is read, and how it is written, for the error where it is not. A reader gives None
# for what is not written so.

_OptionReader = Callable[[_Interpreter, syntax.Syntax], Any]


def _scalar(kind: type) -> _OptionReader:
    def read(reading: _Interpreter, node: syntax.Syntax) -> Any:
        value = reading.values.scalar(node)
        return value if isinstance(value, kind) else None

    return read


def _word(reading: _Interpreter, node: syntax.Syntax) -> str | None:
    return node.name if isinstance(node, syntax.Name) else None


def _calendar(reading: _Interpreter, node: syntax.Syntax) -> str | list[Any] | None:
    """A period, or the labels of all epochs."""
    return [*map(reading.values.scalar, node.items)] if isinstance(node, syntax.List) else _word(reading, node)


def _id_type(reading: _Interpreter, node: syntax.Syntax) -> str | None:
    return word if (word := _word(reading, node)) in ("int", "str") else None


def _facts(reading: _Interpreter, node: syntax.Syntax) -> list[str] | None:
    facts = []
    for item in node.items if isinstance(node, syntax.List) else ():
        fact = _word(reading, item) or ""
        if fact not in FACTS:
            known = suggest(fact, FACTS)
            raise reading.text.error(f"this is no fact that a source can declare; {known}", item.position)
        facts.append(fact)
    return facts if isinstance(node, syntax.List) else None


def _keys(reading: _Interpreter, node: syntax.Syntax) -> dict[tuple[str, ...], int] | None:
    """Fields, and how many records may agree there."""
    keys: dict[tuple[str, ...], int] = {}
    for item in node.items if isinstance(node, syntax.List) else ():
        *names, most = item.items if isinstance(item, syntax.Tuple) else (item,)
        fields = tuple(map(_field_name, names))
        if not all(fields) or not fields:
            return None
        if fields in keys:
            raise reading.text.error("keys_at_most has one bound for the same fields", item.position)
        keys[fields] = reading.values.integer(most)
    return keys or None


def _named(node: syntax.Syntax, read: Callable[[syntax.Syntax], Any]) -> dict[str, Any] | None:
    """What is written for each name in braces, each of them once."""
    fields = node.fields if isinstance(node, syntax.RecordLiteral) else ()
    found = {field.name or "": read(field.value) for field in fields}
    return found if found and len(found) == len(fields) and all([*found, *found.values()]) else None


def _columns(reading: _Interpreter, node: syntax.Syntax) -> dict[str, Any] | None:
    """The columns of fields; of tables, those of the fields of each."""
    fields = node.fields if isinstance(node, syntax.RecordLiteral) else ()
    tables = all(isinstance(field.value, syntax.RecordLiteral) for field in fields)
    return _named(node, partial(_columns, reading) if tables else reading.values.scalar)


def _field(reading: _Interpreter, node: syntax.Syntax) -> str | dict[str, str] | None:
    """A field, or one of each of some tables."""
    return _word(reading, node) or _named(node, _field_name)


def _field_name(node: syntax.Syntax) -> str:
    """The name of a field, which may be a word of a value; empty where it is none."""
    if isinstance(node, syntax.Literal) and (node.value is None or isinstance(node.value, bool)):
        return {None: "null", True: "true", False: "false"}[node.value]
    return node.name if isinstance(node, syntax.Name) else ""


_FIELDS = "{0} gives tables a field each: {0} = {{visits = day}}".format
_WORD = "{} is a word without quotes: every = day, on = when".format
_OPTIONS: dict[str, tuple[_OptionReader, str]] = {
    "unit": (_scalar(str), 'the unit is said in words: unit = "one directed edge"'),
    "person": (_scalar(str), 'the column of the ids of people is named in quotes: person = "customer_id"'),
    "account": (_scalar(str), 'the account is named in quotes: account = "customers"'),
    **{name: (_scalar(bool), f"{name} is true or false") for name in ("nested", "weights", "strict")},
    "start": (_scalar(str), 'the first epoch is named in quotes: start = "2026-01-01"'),
    **dict.fromkeys(
        ("unit_weight", "cap", "budget_each", "budget_all"), (lambda reading, node: reading.values.number(node), "")
    ),
    "facts": (_facts, "facts are a list of names: facts = [symmetric]"),
    **dict.fromkeys(("records_at_most", "at_most"), (lambda reading, node: reading.values.integer(node), "")),
    "keys_at_most": (
        _keys,
        "keys_at_most lists fields and how many records may agree there: [(src, 500), (src, dst, 3)]",
    ),
    "columns": (_columns, 'columns gives fields their columns: {first_name = "First Name"}'),
    "ids": (_id_type, 'ids are int or str: person = "person_id", ids = int'),
    **{name: (lambda reading, node: _named(node, _field_name), _FIELDS(name)) for name in ("first", "last")},
    "distinct": (_field, _FIELDS("distinct")),
    "every": (_calendar, _WORD("every")),
    "on": (_word, _WORD("on")),
}
