"""From a program's text to its queries and measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from wpinq.api.people import people_of_type
from wpinq.api.query import Query
from wpinq.api.series import series
from wpinq.api.source import source
from wpinq.errors import LanguageError, WpinqError
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


STATEMENT_LIMIT = 2_000
"""The most statements of a program."""

_SCALARS: dict[str, tuple[type, str]] = {
    "unit": (str, 'the unit is said in words: unit = "one directed edge"'),
    "person": (str, 'the column of the ids of people is named in quotes: person = "customer_id"'),
    "account": (str, 'the account is named in quotes: account = "customers"'),
    "nested": (bool, "nested is true or false"),
    "weights": (bool, "weights is true or false"),
    "start": (str, 'the first epoch is named in quotes: start = "2026-01-01"'),
    "strict": (bool, "strict is true or false"),
}
_OPTIONS = *_SCALARS, "unit_weight", "cap", "facts", "records_at_most", "keys_at_most", "at_most", "columns", "ids"
_OPTIONS += "first", "last", "distinct", "every", "on", "budget_each", "budget_all"


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
            f"{name}: a program is no SQL: declare a source and go on from it, as in "
            '`source people(city: str); var counts = people.Select(p => p.city).NoisyCount(0.1, over: ["Ulm"]);`',
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
            if name == "facts":
                options[name] = self._facts(value)
            elif name in _SCALARS:
                kind, problem = _SCALARS[name]
                options[name] = self.values.scalar(value)
                if not isinstance(options[name], kind):
                    raise self.text.error(problem, value.position)
            elif name == "keys_at_most":
                options[name] = self._keys(value)
            elif name == "columns":
                options[name] = self._columns(value)
            elif name in ("every", "on") or (name == "distinct" and isinstance(value, syntax.Name)):
                options[name] = self._word(name, value)
            elif name in ("first", "last", "distinct"):
                options[name] = self._fields_of_tables(name, value)
            elif name == "ids":
                options[name] = self._id_type(value)
            elif name in ("at_most", "records_at_most"):
                options[name] = self.values.integer(value)
            else:
                options[name] = self.values.number(value)
        try:
            if "every" in options:
                return series(statement.name, statement.type, **options)
            if not {"ids", "first", "last", "distinct"}.isdisjoint(options):
                return people_of_type(statement.name, statement.type, options)
            return source(statement.name, statement.type, **options)
        except WpinqError as error:
            raise self.text.error(str(error), statement.position) from None

    def _word(self, option: str, node: syntax.Syntax) -> str | list[Any]:
        """A word without quotes, a period or a field; or the labels of a calendar, in a list."""
        if option == "every" and isinstance(node, syntax.List):
            return [self.values.scalar(item) for item in node.items]
        if isinstance(node, syntax.Name):
            return node.name
        raise self.text.error(f"{option} is a word without quotes: every = day, on = when", node.position)

    def _facts(self, node: syntax.Syntax) -> list[str]:
        if not isinstance(node, syntax.List):
            raise self.text.error("facts are a list of names: facts = [symmetric]", node.position)
        facts = []
        for item in node.items:
            if not isinstance(item, syntax.Name) or item.name not in FACTS:
                known = suggest(item.name if isinstance(item, syntax.Name) else "", FACTS)
                raise self.text.error(f"this is no fact that a source can declare; {known}", item.position)
            facts.append(item.name)
        return facts

    def _keys(self, node: syntax.Syntax) -> dict[tuple[str, ...], int]:
        """Fields, and how many records may agree there: `[(src, 500), (src, dst, 3)]`."""
        keys: dict[tuple[str, ...], int] = {}
        for item in node.items if isinstance(node, syntax.List) else ():
            *names, most = item.items if isinstance(item, syntax.Tuple) else (item,)
            fields = tuple(filter(None, map(_field_name, names)))
            if not names or len(fields) < len(names):
                break
            if fields in keys:
                raise self.text.error("keys_at_most has one bound for the same fields", item.position)
            keys[fields] = self.values.integer(most)
        else:
            if keys:
                return keys
        raise self.text.error(
            "keys_at_most lists fields and how many records may agree there: [(src, 500), (src, dst, 3)]", node.position
        )

    def _columns(self, node: syntax.Syntax) -> dict[str | None, Any]:
        """The columns of fields, `{day = "Day"}`; of tables, `{visits = {day = "date"}}`."""
        fields = node.fields if isinstance(node, syntax.RecordLiteral) else ()
        tables = all(isinstance(field.value, syntax.RecordLiteral) for field in fields)
        read = self._columns if tables else self.values.scalar
        columns = {field.name: read(field.value) for field in fields}
        if not columns or None in columns or len(columns) < len(fields):
            raise self.text.error('columns gives fields their columns: {first_name = "First Name"}', node.position)
        return columns

    def _id_type(self, node: syntax.Syntax) -> str:
        if isinstance(node, syntax.Name) and node.name in ("int", "str"):
            return node.name
        raise self.text.error('ids are int or str: person = "person_id", ids = int', node.position)

    def _fields_of_tables(self, option: str, node: syntax.Syntax) -> dict[str, str]:
        """A field of each of some tables: `{visits = day}`."""
        given = node.fields if isinstance(node, syntax.RecordLiteral) else ()
        found = {f.name or "": _field_name(f.value) for f in given}
        if not found or len(found) < len(given) or not all([*found, *found.values()]):
            raise self.text.error(f"{option} gives tables a field each: {option} = {{visits = day}}", node.position)
        return found

    def _parameter(self, statement: syntax.ParameterStatement) -> None:
        default = self.values.scalar(statement.value)
        value = default
        if statement.name in self.given:
            try:
                value = override(statement.name, self.given[statement.name], default)
            except LanguageError as error:
                raise self.text.error(str(error), statement.position) from None
        self.parameters[statement.name] = value


def _field_name(node: syntax.Syntax) -> str:
    """The name of a field, which may be a word of a value; empty where it is none."""
    if isinstance(node, syntax.Literal) and (node.value is None or isinstance(node.value, bool)):
        return {None: "null", True: "true", False: "false"}[node.value]
    return node.name if isinstance(node, syntax.Name) else ""
