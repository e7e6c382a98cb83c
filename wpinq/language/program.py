"""Programs: named queries and measurements, as a mapping that prints as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from wpinq.errors import LanguageError
from wpinq.language.chains import ProgramValue
from wpinq.language.public_values import PublicScalar
from wpinq.language.text import shorten, suggest
from wpinq.language.unparse import print_program
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node
from wpinq.plan.operators.source import Source
from wpinq.plan.redeclared import with_facts, with_records_at_most
from wpinq.query import Query
from wpinq.tables.marginal_tabulation import MarginalTabulation
from wpinq.tables.tabulation import Tabulation


class UnknownName(LanguageError, KeyError):
    """A program has no query or measurement of this name."""

    __str__ = Exception.__str__


class Program(Mapping[str, ProgramValue]):
    """What a text program defines: variable name to query or measurement. Pure data, like what it holds.

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
        self,
        named: Mapping[str, ProgramValue],
        sources: Mapping[str, Query],
        parameters: Mapping[str, PublicScalar],
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
        """All that is to be released, by name, in the order of the text."""
        return {name: value for name, value in self._named.items() if not isinstance(value, Query)}

    def promising(self, facts: Mapping[str, Iterable[str]]) -> Program:
        """The same program over sources that promise more facts, by the names of the sources.

        Only what one record of weight 1 is the unit of can promise them.
        """

        def promised(source: Source) -> frozenset[str]:
            more = facts.get(source.source, ()) if source.unit_weight == 1 and source.person is None else ()
            return frozenset(source.facts) | frozenset(more)

        return self._over(lambda plan: with_facts(plan, promised))

    def of_records_at_most(self, records: Mapping[str, int]) -> Program:
        """The same program over sources that bound how many records they have, by the names of the sources."""
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

    def __getitem__(self, name: str) -> ProgramValue:
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
