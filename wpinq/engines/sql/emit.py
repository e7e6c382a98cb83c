"""Terms and blocks to SQL text; a term that is used often is written once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wpinq.engines.sql.blocks import Block
from wpinq.engines.sql.dialect import DUCKDB, Dialect, Unsupported
from wpinq.engines.sql.terms import SqlTerm, columns, conjuncts, parameter, renamed, walk

TEXT_LIMIT = 4000
"""Characters of one list of terms beyond which shared terms are computed as columns of an inner query."""

_SHARE_LIMIT = 40
"""The length below which a shared term is just written again."""

_PLACES = re.compile(r"(?<!\{)\{(\d+)\}(?!\})")


@dataclass(frozen=True, slots=True)
class Emitter:
    """Writes terms in a dialect."""

    dialect: Dialect = DUCKDB

    def term(self, root: SqlTerm, names: Mapping[SqlTerm, str] | None = None) -> str:
        """The text of a term; those in `names` are written as their name."""
        return self.terms([root], names or {})[0]

    def terms(self, roots: Sequence[SqlTerm], names: Mapping[SqlTerm, str]) -> list[str]:
        """The texts of terms."""
        written: dict[bytes, str] = {term.digest: name for term, name in names.items()}
        for root in roots:
            self._write(root, written)
        return [written[root.digest] for root in roots]

    def _write(self, root: SqlTerm, written: dict[bytes, str]) -> None:
        stack = [(root, False)]
        while stack:
            term, ready = stack.pop()
            if term.digest in written:
                continue
            if term.kind == "call" and term.text == "map":
                items, function = term.arguments
                if items.digest in written:
                    written[term.digest] = self._map(written[items.digest], function, written)
                else:
                    stack += [(term, False), (items, False)]
            elif not ready and term.arguments:
                stack.append((term, True))
                stack.extend((argument, False) for argument in term.arguments)
            else:
                written[term.digest] = self._text(term, [written[argument.digest] for argument in term.arguments])

    def _text(self, term: SqlTerm, arguments: list[str]) -> str:
        if term.kind == "column":
            return f"{term.scope}.{self.dialect.quote(term.text)}" if term.scope else self.dialect.quote(term.text)
        if term.kind == "parameter":
            return term.text
        if term.kind == "literal":
            return self.dialect.literal(term.text)
        if term.parameters and term.text in self.dialect.outer_only:
            raise Unsupported("a sum of floats, inside of a function over the elements of a list")
        return self.dialect.write(term.text, *arguments)

    def _map(self, items: str, function: SqlTerm, written: dict[bytes, str]) -> str:
        """A function of each element of a list; what it uses often is put beside the element first, step by step."""
        name, (body,) = function.text, function.arguments
        levels = _levels(self.shared([body], set(written), inside=name), [body])
        held = {parameter(name).digest: "v"}
        for number, level in enumerate([*levels, [body]]):
            fields = {digest: self.dialect.field(name, place) for digest, place in held.items()} if number else {}
            inner = written | fields
            for term in [parameter(name), *level]:
                self._write(term, inner)
            result = inner[body.digest] if number == len(levels) else ""
            if not result:
                held |= {term.digest: f"s{len(held) + i}" for i, term in enumerate(level)}
                result = self.dialect.struct({place: inner[digest] for digest, place in held.items()})
            items = self.dialect.write("map", items, self.dialect.lambda_.format(name=name, body=result))
        return items

    def shared(self, roots: Sequence[SqlTerm], known: set[bytes], inside: str | None = None) -> list[SqlTerm]:
        """The terms to name so that the text does not blow up: none while it is short; else all that are shared.

        With `inside`, those in which that parameter is free and no parameter of a function deeper down; without,
        those in which no parameter is.
        """
        sizes = self.lengths(roots, known)
        if sum(sizes[root.digest] for root in roots) <= TEXT_LIMIT:
            return []
        uses: Counter[bytes] = Counter(root.digest for root in roots)
        order = [term for term in walk(roots) if term.digest not in known]
        deeper = {term.text for term in order if term.kind == "function"}
        for term in order:
            for place in self._places(term):
                uses[term.arguments[place].digest] += 1
        return [
            term
            for term in order
            if term.kind == "call"
            and uses[term.digest] > 1
            and sizes[term.digest] > _SHARE_LIMIT
            and (not term.parameters if inside is None else inside in term.parameters and not term.parameters & deeper)
        ]

    def _places(self, term: SqlTerm) -> list[int]:
        """The argument at each place of a term's text."""
        if term.kind != "call":
            return list(range(len(term.arguments)))
        return [int(place) for place in _PLACES.findall(self.dialect.template(term.text))]

    def lengths(self, roots: Iterable[SqlTerm], known: set[bytes]) -> dict[bytes, int]:
        """The length of each term's text, were nothing shared."""
        sizes: dict[bytes, int] = {}
        for term in walk(roots):
            own = len(self.dialect.template(term.text)) if term.kind == "call" else len(term.text) + 10
            if term.digest in known:
                own, places = 8, []
            else:
                places = self._places(term)
            sizes[term.digest] = own + sum(sizes[term.arguments[place].digest] for place in places)
        return sizes

    # --- blocks -------------------------------------------------------------------------------------------------------

    def select(self, block: Block, outputs: Sequence[SqlTerm], names: Sequence[str]) -> str:
        """Terms over the rows of a block, under these names."""
        # aliases by position: equal blocks are equal text, whatever they were called while they were built
        rename = {alias: f"a{i}" for i, (alias, _) in enumerate(block.tables)}
        rewrite = renamed(rename)
        outputs, conditions = [rewrite(term) for term in outputs], conjuncts(rewrite(block.condition))
        tables = ", ".join(f"{table.source} AS {rename[alias]}" for alias, table in block.tables)
        shared = self.shared([*outputs, *conditions], set())
        if not shared:
            chosen = self._named(outputs, names, {})
            return f"SELECT {chosen} FROM {tables}{self._where(conditions, {})}"
        return self._staged(tables, conditions, outputs, names, shared)

    def _staged(
        self,
        tables: str,
        conditions: Sequence[SqlTerm],
        outputs: Sequence[SqlTerm],
        names: Sequence[str],
        shared: Sequence[SqlTerm],
    ) -> str:
        """Shared terms level by level, each level the columns of one query inside the next."""
        early = [term for term in conditions if self.lengths([term], set())[term.digest] <= TEXT_LIMIT // 8]
        late = [term for term in conditions if term not in early]
        known = {term: f"k{i}" for i, term in enumerate(sorted(columns(*outputs, *late), key=lambda t: t.digest))}
        inner = f"SELECT {self._named(list(known), list(known.values()), {}) or '1'} FROM {tables}"
        inner += self._where(early, {})
        for level in _levels(shared, [*outputs, *late]):
            new = {term: f"s{len(known) + i}" for i, term in enumerate(level)}
            inner = f"SELECT *, {self._named(list(new), list(new.values()), known)} FROM ({inner})"
            known |= new
        return f"SELECT {self._named(outputs, names, known)} FROM ({inner}){self._where(late, known)}"

    def _named(self, terms: Sequence[SqlTerm], names: Sequence[str], known: Mapping[SqlTerm, str]) -> str:
        texts = self.terms(terms, known)
        return ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))

    def _where(self, conditions: Sequence[SqlTerm], known: Mapping[SqlTerm, str]) -> str:
        return f" WHERE {' AND '.join(self.terms(conditions, known))}" if conditions else ""


def _levels(shared: Sequence[SqlTerm], roots: Sequence[SqlTerm]) -> list[list[SqlTerm]]:
    """Shared terms in rounds, each made of those before."""
    held = set(shared)
    depth: dict[bytes, int] = {}
    for term in walk(roots):
        below = max((depth[argument.digest] for argument in term.arguments), default=0)
        depth[term.digest] = below + (term in held)
    levels: dict[int, list[SqlTerm]] = {}
    for term in shared:
        if term.digest in depth:
            levels.setdefault(depth[term.digest], []).append(term)
    return [levels[number] for number in sorted(levels)]
