"""The compiler: a plan becomes a program of SQL statements, by passes in order.

1. Facts: what the properties of the plan say of each step (`_facts`).
2. Rules: each operator as blocks over tables (`rules.operators`), its functions as terms (`rules.lowering`).
3. Rewrites: each target as it comes up, by the rewrites of its kind in the order of `rewrites.REWRITES`.
4. Tables: datasets with several users (`Script.stored`), and partial sums of steps that plans share.
5. Output: one query, in canonical order where SQL can sort; narrowed to keys where that helps (`key_pushdown`).

Terms and blocks become text as statements are written (`emit`, in a `dialect`). Plans that begin alike share their
steps (`PrefixCache`). A program is a function of the plan and of the steps that it shares, never of the data.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from operator import is_not

from wpinq.columns.records import column_names, column_types, has_lists
from wpinq.engines.sql.blocks import Relation, Reuse, SqlTable, column_list, grows
from wpinq.engines.sql.dialect import DUCKDB, Dialect, Unsupported
from wpinq.engines.sql.emit import Emitter, can_narrow
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.rules.lowering import MODERATE, constant
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.script import CachedStep, PrefixCache, Rewrite, RowsToSum, Script, SqlStatement, rows_to_sum
from wpinq.engines.sql.terms import ONE, as_term
from wpinq.errors import PlanError, WpinqError
from wpinq.expr.build import record
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, digest_of, make_lambda, walk
from wpinq.expr.types import Type, signature
from wpinq.expr.values import Value
from wpinq.plan.lowering import over, physical_plan
from wpinq.plan.node import Node, sources, topological, upward
from wpinq.plan.operator import Operator
from wpinq.plan.operators import Partition, Select, Shave
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties
from wpinq.plan.work import equal_weights

#: The most programs that are cached: a table has a choice in each of thousands of groups, and reads all in turn.
PLANS_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan to compile, with its rewrites and the steps that other plans share, by digest.

    Steps that are shared with other plans are stored as partial sums where that changes no weight: see
    `Script.partly_summed`. With `keyed`, rows of other records are left out where that helps: see `key_pushdown`. With
    `alone`, no other plan adds up the same rows, and the program may be filled in: see `parameters`.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> print(Plan(numbers.where(lambda x: x < 5).plan).program().query)  # doctest: +NORMALIZE_WHITESPACE
    SELECT * FROM (SELECT a0."c0" AS c0, a0."w" AS w FROM source_numbers AS a0
    WHERE (a0."c0" < CAST(5 AS BIGINT))) WHERE w <> 0 ORDER BY c0 NULLS FIRST
    """

    root: Node
    rewrites: tuple[Rewrite, ...] = REWRITES
    shared: frozenset[bytes] = frozenset()
    keyed: bool = False
    alone: bool = False

    def program(self, dialect: Dialect = DUCKDB) -> Compiled:
        """Its program, for a database."""
        return _compiled(self, dialect)


def compile_uncached(plan: Plan, dialect: Dialect, prefixes: PrefixCache) -> Compiled:
    """The program of a plan, of which only the steps are cached, in `prefixes`."""
    script = Script(Emitter(dialect), plan.rewrites)
    try:
        return _compile(plan, script, prefixes)
    except Unsupported as gap:
        reason = f"{script.step}: {gap}"
    raise PlanError(reason)


@lru_cache(maxsize=PLANS_LIMIT)
def _compiled(plan: Plan, dialect: Dialect) -> Compiled:
    return (_filled_in(plan) if plan.alone else None) or compile_uncached(plan, dialect, _prefixes)


_prefixes = PrefixCache()


def _compile(plan: Plan, script: Script, prefixes: PrefixCache) -> Compiled:
    facts = _facts(plan.root)
    order = list(topological([plan.root]))
    uses = Counter(child.digest for node in order for child in node.inputs)
    steps: list[tuple[str, int]] = []
    relations: dict[bytes, Relation] = {}
    first = (script.rewrites, script.emitter.dialect)
    before: CachedStep | None = None
    for node in order:
        script.step = node.operator.name
        steps.append((script.step, len(script.statements)))
        count, shared = uses[node.digest], node.digest in plan.shared
        identity = (node.digest, count, shared, first if before is None else ())
        step = partial(_step, script, node, relations, facts[node.digest], count, shared)
        before = prefixes.after(before, identity, script, step)
        relations[node.digest] = before.result
    result = relations[plan.root.digest]
    script.step = plan.root.operator.name
    grown = result.parts is None and any(map(grows, result.blocks))  # its rows may outnumber its tables'
    output, table = prefixes.after(before, "output", script, partial(script.grouped, result)).result
    narrow = _narrowed(script, result) if plan.keyed and grown and can_narrow(result.blocks) else None
    if narrow is not None:
        output, table = narrow
    if result.unique and result.table is None and result.blocks[0].weight.kind != "literal":
        output = f"SELECT * FROM ({output}) WHERE w <> 0"
    return Compiled(
        source_tables(plan.root),
        tuple(script.statements),
        output,
        _order(script, result.type),
        result.table,
        table.reads,
        result.type,
        tuple(steps),
        grown,
        narrow is not None,
        rows_to_sum(result),
        table.beside,
    )


def _facts(root: Node) -> dict[bytes, Relation]:
    """The facts of the dataset at each node, as a relation without blocks."""
    steps, weights = plan_properties(root).steps.items(), equal_weights(root)
    return {d: Relation((), s.node.type, s.norm_bound, s.nonnegative, each=weights.get(d)) for d, s in steps}


def _step(
    script: Script,
    node: Node,
    relations: Mapping[bytes, Relation],
    facts: Relation,
    uses: int,
    shared: bool,
) -> Relation:
    """The dataset at a node, from those at its inputs."""
    if isinstance(node.operator, Source):
        relation = _source(script, node.operator, facts)
    else:
        inputs = [relations[child.digest] for child in node.inputs]
        relation = relation_of(node.operator, script, inputs, facts)
    if script.rewritten(Reuse(relation, uses)).stored:
        relation = script.stored(relation)
    return script.partly_summed(relation) if shared else relation


def _source(script: Script, operator: Source, output: Relation) -> Relation:
    columns, weight = column_list(operator.record), ONE if "unit_weights" in operator.facts else None
    keys, both_ways = (frozenset(dict(columns)),), "symmetric" in operator.facts
    unequal = len(columns) == 2 and not {"simple", "simple_digraph"}.isdisjoint(operator.facts)
    table = SqlTable(_table(operator.source), columns, keys, weight=weight, mirrored=both_ways, unequal=unequal)
    return Relation((script.scan(table, operator.record),), output.type, output.mass, output.nonnegative)


def _narrowed(script: Script, result: Relation) -> tuple[str, SqlTable] | None:
    """The query of an output for given keys, where they filter a table in each of its blocks."""
    script.key_types = column_types(result.type)
    try:
        found = script.grouped(result)
    finally:
        script.key_types = ()
    return found if script.narrow else None


def _order(script: Script, type_: Type) -> str:
    """The clause that puts an output in canonical order, where SQL can."""
    names = column_names(type_) if script.emitter.dialect.sorts and not has_lists(type_) else ()
    return " ORDER BY " * bool(names) + ", ".join(f"{name} NULLS FIRST" for name in names)


def _table(source: str) -> str:
    """The table of a source; names that are not plain lower case are spelt in hex.

    A database may take names that differ in case for one.
    """
    plain = source.isidentifier() and source.isascii() and source == source.lower()
    return f"source_{source}" if plain else f"sourcex_{source.encode().hex()}"


def source_tables(root: Node) -> dict[str, str]:
    """The tables that the sources of a plan must stand in, by name of the source."""
    return {name: _table(name) for name in sources([root])}


@dataclass(frozen=True)
class Compiled:
    """The statements of a plan in order, the query of its output, and the tables of its sources.

    Attributes
    ----------
    sources : dict of str to str
        Source name to the name of its table.
    statements : tuple of SqlStatement
        Each creates one table.
    output : str
        The query of the output: its columns, then its weight.
    order : str
        What puts it in canonical order; empty where a column is a list, or the dialect does not sort.
    table : str or None
        The table that holds the output as it stands, if one does.
    reads : tuple of str
        The tables that the query reads.
    type : Type
        The type of the output's records.
    steps : tuple of (str, int)
        The operators in order, each with the number of statements that come before it.
    grows : bool
        Whether the query of the output joins tables to more rows than they have.
    narrowed : bool
        Whether keys are pushed into the query, which then takes them as parameters.
    added : RowsToSum or None
        What the query of the output adds up, where other plans may add up more of it at once.
    beside : tuple of str
        See `SqlTable.beside`.
    template : str
        The shape of the program that it was filled in from, with small numbers; else empty.
    """

    sources: dict[str, str]
    statements: tuple[SqlStatement, ...]
    output: str
    order: str
    table: str | None
    reads: tuple[str, ...]
    type: Type
    steps: tuple[tuple[str, int], ...]
    grows: bool
    narrowed: bool
    added: RowsToSum | None = None
    beside: tuple[str, ...] = ()
    template: str = field(default="", compare=False)

    @property
    def query(self) -> str:
        """The output in order."""
        return self.output + self.order

    @property
    def queries(self) -> list[tuple[str, str]]:
        """The query of each statement with its step, then that of the output."""
        return [*((statement.step, statement.query) for statement in self.statements), (self.steps[-1][0], self.query)]

    @property
    def rows(self) -> object:
        """The rows that it adds up, where they may be added up for other plans, too."""
        return None if self.added is None else self.added.block

    @cached_property
    def shape(self) -> str:
        """The program without names of tables and small numbers.

        Numbers beside ranges and functions of lists stay. DuckDB can run all programs of one shape or none, for the
        other numbers are no lengths, places or types.
        """
        queries, names = [*(statement.query for statement in self.statements), self.output], dict[str, str]()
        text = ";".join(sql if _LENGTHS.search(sql) else _without_numbers(sql) for sql in queries)
        return _TABLES.sub(lambda found: names.setdefault(found[0], f"t{len(names)}"), _CONSTANTS.sub("", text))

    @cached_property
    def similar(self) -> Hashable:
        """What programs without lists have in common that can be one statement: see `in_one`."""
        return None if _LISTS.search(self.shape) else (self.shape, self.type, *self.sources)


# Programs that differ in numbers alone as one: the numbers are rows of a table, and the program is a query for each.
#
# A number stands in the same place with the same type, so a row of the output is what it is in a program of its own.
# Sums are exact on their grids, so they have the same bits.

_NUMBERS = re.compile(
    r"""'(?:[^']|'')*'|"[^"]*"|"""  # what is quoted has no numbers
    r"(?:CAST\((?=[^ ]+ AS (?:BIGINT|DOUBLE)\))|// |% |ELSE )(?!-0(?:\.0)?[ )])(-?[0-9]{1,9}(?:\.[0-9]{1,17})?)(?=[ )])"
)
_LISTS, _TABLES = re.compile(r"\brange\(|list(?!_con)"), re.compile(r"\bt[0-9a-f]{40}\b")
_LENGTHS = re.compile(r"\brange\(|list(?!_con|_value|\()")
_CONSTANTS = re.compile(r"\(VALUES .*\) AS constants")


@lru_cache(maxsize=256)
def numbers_apart(sql: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The text around the small numbers of a query, and these.

    Examples
    --------
    >>> numbers_apart("SELECT 'CAST(1 AS BIGINT)' WHERE c0 % 7 < CAST(-2 AS BIGINT)")
    (("SELECT 'CAST(1 AS BIGINT)' WHERE c0 % ", ' < CAST(', ' AS BIGINT)'), ('7', '-2'))
    """
    numbers = [each[1] for each in _NUMBERS.finditer(sql) if each[1]]
    return tuple(_without_numbers(sql).split("\0")), tuple(numbers)


def _without_numbers(sql: str) -> str:
    return _NUMBERS.sub(lambda each: each[0].removesuffix(each[1]) + "\0" if each[1] else each[0], sql)


@lru_cache(maxsize=64)
def in_one(plans: tuple[Plan, ...]) -> Compiled | None:
    """The programs of one shape of some plans as one, if that can be had.

    Its output has, after the weight of a record, the number of the plan.
    """
    programs = [plan.program() for plan in plans]
    common = set.intersection(*({statement.creates for statement in each.statements} for each in programs))
    written = [each for program in programs if (each := written_out(program, common)) is not None]
    apart = [numbers_apart(each.output) for each in written]
    if len(apart) < len(plans) or len({around for around, _ in apart}) > 1:
        return None
    places = [*zip(*(numbers for _, numbers in apart), strict=True)]
    varied = {each: f"constants.x{i}" for i, each in enumerate(dict.fromkeys(p for p in places if len({*p}) > 1))}
    (start, *around), _ = apart[0]
    body = start + "".join(varied.get(p, p[0]) + text for p, text in zip(places, around, strict=True))
    typed = [[f"CAST({n} AS DOUBLE)" if "." in n else n for n in each] for each in varied]
    rows = zip(map(str, range(len(plans))), *typed, strict=True)
    names = ", ".join(["p", *(f"x{i}" for i in range(len(varied)))])
    values = f"(VALUES ({'), ('.join(map(', '.join, rows))})) AS constants({names})"
    return replace(written[0], output=f"SELECT q.*, constants.p FROM {values}, LATERAL ({body}) AS q")


def written_out(program: Compiled, kept: Container[str]) -> Compiled | None:
    """A program with its tables, but some, inside of its output.

    None where one of them is read twice.
    """
    sql, reads = program.output, {*program.reads}
    for statement in reversed(program.statements):
        if statement.creates not in kept and statement.creates in reads:
            if sql.count(statement.creates) > 1:
                return None
            sql = sql.replace(statement.creates, f"({statement.query})")
            reads = reads - {statement.creates} | {*statement.reads}
    statements = tuple(each for each in program.statements if each.creates in kept)
    return replace(program, statements=statements, output=sql, reads=tuple(sorted(reads)))


# Plans that differ in parameters alone: their program is written once, with marks, and filled in for each.
#
# A parameter is a moderate number that is only compared, added or multiplied, the lesser or greater of two, or a
# divisor of 1 or more, as the marks are. The compiler puts it into SQL as one literal, and asks nothing else of it but
# whether it is the same as another. Other divisors mean more, and so do numbers that bound a list, are a width or a
# weight, or number a piece of a Shave: then they are part of the shape. So are the facts of its steps, found for each
# plan with its own numbers: bounds, and the weight of every record, which the widths of a Shave and the weights of a
# written list decide.

#: The primitives whose rules write numbers and do not look at them.
_OPAQUE = frozenset(("less", "equal", "add", "subtract", "multiply"))

#: The first of the marks. Nobody knows it, so no number and no text of a plan is like one.
_MARK = 2**52 + secrets.randbits(51)


def parameters(root: Node) -> list[Constant]:
    """The parameters of a plan of physical records, in the order of their first use.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> [each.value for each in parameters(numbers.where(lambda x: x < 5).select(lambda x: x // 7 + 3).plan)]
    [5, 3]
    """
    steps = [*topological([root])]
    shaves = any(isinstance(node.operator, Shave) for node in steps)
    opaque = _OPAQUE - {"equal"} if shaves else _OPAQUE
    functions = [value for node in steps for _, value in node.operator.arguments() if isinstance(value, Lambda)]
    numbers, others = dict[Constant, None](), dict[Constant, None]()
    for each in (each for function in functions for each in walk(function.core) if each.children):
        name, first = (getattr(some, "name", "") for some in (each, each.children[0]))
        written = name in opaque or (name, first, shaves) == ("where", "less", False)
        for place, child in enumerate(each.children):
            if isinstance(child, Constant) and type(child.value) in (int, float):
                divides = name == "divide" and place == 1 and child.value >= 1
                (numbers if (written or divides) and abs(child.value) < MODERATE else others)[child] = None
    return [each for each in numbers if each not in others]


def with_constants(function: Lambda, constants: Mapping[Constant, Constant]) -> Expr:
    """The core of a function with other constants."""
    done: dict[bytes, Expr] = {old.digest: new for old, new in constants.items()}
    for each in walk(function.core):
        parts = tuple([done[part.digest] for part in each.children])
        if isinstance(each, Call) and any(map(is_not, parts, each.children)):
            done[each.digest] = Call(each.type, each.name, parts, each.attributes)
        elif isinstance(each, Lambda) and parts[0] is not each.body:
            done[each.digest] = Lambda(each.type, each.level, each.parameters, *parts)
        done.setdefault(each.digest, each)
    return done[function.core.digest]


@lru_cache(maxsize=64)
def _marked(root: Node) -> tuple[bytes, dict[str, str], Callable[[], Node]]:
    """The digest of a plan's shape, the SQL of its parameters by mark, and the plan with marks."""
    held = parameters(root)
    marks = [Constant(each.type, n if type(each.value) is int else n * 2.0**300) for n, each in enumerate(held, _MARK)]
    put = dict(zip(held, marks, strict=True))

    def changed(operator: Operator) -> Operator:
        given = {name: with_constants(value, put) for name, value in operator.arguments() if isinstance(value, Lambda)}
        return replace(operator, **given) if given else operator  # type: ignore[type-var]

    def digest(node: Node, inputs: list[bytes]) -> bytes:
        return digest_of(changed(node.operator).identity(), *inputs) if inputs else node.digest

    sql = [[as_term(constant(number.value, number.type, DUCKDB)).text for number in each] for each in (marks, held)]
    return upward(root, digest)[root.digest], dict(zip(*sql, strict=True)), lambda: over(root, changed)


_templates = lru_cache(maxsize=1024)(lambda *shape: list[Compiled | None]())


def _filled_in(plan: Plan) -> Compiled | None:
    """The program of a plan from that of its shape, or None.

    It is None for a plan without parameters, and for the first plan of a shape.
    """
    shape, texts, marked = _marked(plan.root)
    if not texts:
        return None
    facts = _all_facts(plan.root)
    held = _templates(shape, facts, plan.rewrites, plan.keyed)
    if len(held) < 2:
        held.append(None)
        with suppress(WpinqError):
            if len(held) == 2 and _all_facts(root := marked()) == facts:
                made = compile_uncached(replace(plan, root=root), DUCKDB, _prefixes)
                held[1] = replace(made, added=None, template=made.shape)
    return None if held[-1] is None else _filled(held[-1], texts)


def _all_facts(root: Node) -> tuple[object, ...]:
    return tuple((signature(each.type), each) for each in _facts(root).values())


def _filled(program: Compiled, texts: Mapping[str, str]) -> Compiled:
    """A program with other texts in the place of some, and tables named by their new queries."""
    names, places = dict(texts), re.compile(rf"{_TABLES.pattern}|CAST\([0-9.e+]+ AS (?:BIGINT|DOUBLE)\)")
    fill = partial(places.sub, lambda found: names.get(found[0], found[0]))
    script = Script(Emitter(DUCKDB), ())
    for each in program.statements:
        script.step = each.step
        rows, legs = fill(each.rows), tuple(map(fill, each.legs))
        names[each.creates] = script.table(fill(each.query), [*map(fill, each.reads)], rows, each.in_parts, legs)
    table, reads = program.table and fill(program.table), tuple(map(fill, program.reads))
    statements, output = tuple(script.statements), fill(program.output)
    template = program.template if all(map(_NUMBERS.search, texts.values())) else ""
    filled = replace(program, statements=statements, output=output, table=table, reads=reads, template=template)
    return replace(filled, beside=tuple(map(fill, program.beside)))


# Plans over parts of one partition as one plan: a release by groups has a plan for each of thousands of groups.

#: How many parts of one partition are read from an output of all of them: fewer are read one by one.
PARTS = 16


def parts_of(roots: Iterable[Node]) -> dict[Node, tuple[Node, Value]]:
    """Of many plans over parts of one partition: the plan of all parts, and the own key.

    Records of the plan of all parts are pairs of a key and a record of that part. Each weighs what the record weighs in
    its part, to the last bit: both are one sum of the same numbers, under the same bound on the norm.
    """
    found: dict[Node, tuple[Node, Value]] = {}
    for root in roots:
        operator, below = root.operator, root.inputs[0] if root.inputs else root
        if isinstance(operator, Select) and isinstance(below.operator, Partition):
            whole = _of_all_parts(below.inputs[0], below.operator.key, operator.function)
            if whole is not None:
                found[root] = whole, below.operator.part.value
    many = Counter(whole for whole, _ in found.values())
    return {root: (whole, key) for root, (whole, key) in found.items() if many[whole] >= PARTS}


@lru_cache(maxsize=64)
def _of_all_parts(split: Node, key: Lambda, function: Lambda) -> Node | None:
    with suppress(WpinqError):  # both functions of a record may be too much for one step
        pair = make_lambda(key.parameters, record((None, None), (key.body, function.body)))
        return physical_plan(Node(Select(pair), (split,)))
    return None
