"""Text edge lists: one edge to a line, in columns by place.

The first edge says the separator and the number of columns. A line that differs is unfit. DuckDB reads regular files,
Python all others.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from wpinq.columns.unlinked_file import quoted
from wpinq.data.casts import UNFIT, any_of, of_text
from wpinq.data.files import NO_TEXT, NUMBER, SMALL, ZEROS, lines_of, stage_text, text_columns
from wpinq.data.graphs import formats_of
from wpinq.data.layout import Layout
from wpinq.data.relation import STAGED, Relation
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, TupleOf, Type

_BOM = b"\xef\xbb\xbf"
_BLANK = r' \t\n\v\f\r"'
_NAME = f"[^{_BLANK}',;]([^{_BLANK}]*[^{_BLANK},;])?"
_NUMBER, _NAMED = re.compile(rb"[+-]?[0-9]+"), re.compile(rb'"([^"]|"")+"|' + _NAME.encode())
_CELL = re.compile(rb'"(?:[^"]|"")*"(?!\S)|\S+')
_SIZE, _DIGIT = re.compile(rb"[0-9]{1,18}"), re.compile(rb"[+-]?\.?[0-9]")
#: What columns of edges are called, and hardly ever both nodes of an edge.
_TITLE = re.compile(
    rb"(?i)(source|target|src|dst|dest|destination|origin|from|to|head|tail|start|end|node|vertex|id|u|v|i|j|user|friend"
    rb"|follow(er|ee|ing|ed)|parent|child|sender|receiver|caller|callee|citing|cited|person|protein)_?(node)?_?(id|[12])?"
)

_TITLES = "names of columns (take the line out, or begin it with #; where nodes are called so say columns=(1, 2))"
_COMMENT = "a comment below the first edge (take it out, or say comments='%' or the like, '' where there are none)"
_FEWER = "fewer than {} columns (with blanks or tabs between; with commas it is csv)"
_OTHER_WIDTH = (
    "another number of columns than in the first edge (say columns=(1, 2) where some may be missing; of lists of "
    "neighbours offer networkx.read_adjlist or igraph.Graph.Read_LGL, or name a METIS file .graph)"
)
_NO_INTEGER = "a node that is not an integer (declare str nodes to read names)"
_NO_NAME = "a name with a blank, a bare quote, or at its end , or ; (quote it as csv does), or not in UTF-8"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text edge list is written.

    Attributes
    ----------
    path, file : Path, file
        The file, which is open, and its name for messages.
    comments, columns : str, tuple of int, optional
        What comments begin with, and the places of an edge, where they are told: then other columns may be missing.
    fields : sequence
        The names of the fields that the ends of an edge are read as, where they have names.
    above, first : list of bytes, bytes
        The lines above the first edge, and its own; nothing where there is none.
    separator : str
        A tab, where it separates the ends of the first edge; else a blank, for all that are blank.
    directed : bool, optional
        Whether edges are directed, where the first line says it, as of KONECT.
    """

    path: Path
    file: Any
    comments: str | None
    columns: Sequence[Any] | None
    fields: Sequence[object]
    above: list[bytes]
    first: bytes
    separator: str
    directed: bool | None

    @classmethod
    def of(
        cls, path: Path, file: Any, comments: str | None, columns: Sequence[Any] | None, fields: Sequence[object] = ()
    ) -> TextForm:
        """The form of an open file."""
        signs, ends, above, first = _signs(comments), max(columns or (1, 2)), list[bytes](), b""
        for line in lines_of(file):
            first = line if above else line.removeprefix(_BOM)
            if first.strip() and not first.strip().startswith(signs):
                break
            above.append(first)
        else:
            first = b""
        by_tabs = [cell.strip() for cell in first.split(b"\t")][:ends] == _CELL.findall(first)[:ends]
        konect = re.match(rb"%\s*(a?)sym\b", above[0]) if above else None
        directed = None if konect is None else konect[1] == b"a"
        return cls(path, file, comments, columns, fields, above, first, "\t" if by_tabs else " ", directed)

    def form(self, node: Type) -> str:
        """The form in words, which hang on nothing but how the first edge is written.

        Of columns that are told others may be missing, and their number may be that of the neighbours of a node.
        """
        between = "tabs" if self.separator == "\t" else "blanks"
        width = "" if self.columns else f" of {len(self._cells(self.first)) or 2}"
        signs = " or ".join(map(bytes.decode, _signs(self.comments))) or "nothing"
        ends = " and ".join(map(str, self.columns or (1, 2)))
        return f"columns {ends}{width}, with {between} between; comments begin with {signs}"

    def check(self, node: Type) -> None:
        """Refuse a file that may as well be another graph, unless it was told which."""
        first, why = self._cells(self.first), ""
        like = [re.match(rb"[#%][^\s#%]", line) and len(self._cells(line)) == (len(first) or 2) for line in self.above]
        if node == STR and self.comments is None and any(like):
            why = "begins with lines that are comments or edges: say comments='#' or the like, '' where they are edges"
        elif self.columns is None and self.directed is None and not self._are_titles(first):
            if self._may_be_neighbours(first, node):
                why = (
                    "may have names with blanks (quote them) or several neighbours to a line (offer "
                    "networkx.read_adjlist): of edges say columns=(1, 2)"
                )
            elif self._may_be_sizes(first):
                why = (
                    "may begin with numbers of nodes and edges: take them out, name METIS .graph, or say columns=(1, 2)"
                )
        if why:
            raise SourceRejected(f"{self.path} {why}")

    def _are_titles(self, cells: Sequence[bytes]) -> bool:
        """Whether a first line has names of columns or fields where it has the ends of an edge."""
        ends = [cell.strip(b'"') for cell in cells[:2]]
        named = [end.decode(errors="replace") for end in ends] == [*self.fields[:2]]
        return named or all(map(_TITLE.fullmatch, ends))

    def _may_be_neighbours(self, first: Sequence[bytes], node: Type) -> bool:
        """Whether the first line may have more nodes than two.

        They are integers, or names with more than numbers beside them.
        """
        if node == INT:
            return len(first) > 3 and all(map(_NUMBER.fullmatch, first))
        numbers = [NUMBER.fullmatch(cell.decode("latin-1")) is not None for cell in first]
        valued = self.separator == "\t" and not any(numbers[:2]) and all(numbers[2:])
        return len(first) > 2 and not valued

    def _may_be_sizes(self, first: Sequence[bytes]) -> bool:
        """Whether the first line may say how much follows.

        As many lines do, with no more nodes, or with no larger ids.
        """
        sizes = [int(cell) for cell in first if _SIZE.fullmatch(cell)]
        length = self.file.seek(0, os.SEEK_END) - sum(map(len, self.above))
        likely = any(3 * size <= length <= 2**16 + 128 * size for size in sizes)  # of few large files more is read
        if not likely or not 1 < len(sizes) == len(first) < 4:
            return False

        def below() -> Iterator[bytes]:
            return filter(bytes.strip, islice(lines_of(self.file), len(self.above) + 1, None))

        (nodes, edges, *_), follow = sizes, sum(1 for _ in below())
        if not follow or follow not in sizes:
            return False
        pairs = [self._cells(line)[:2] for line in below()]

        def within(*most: int) -> bool:
            ends = (each for pair in pairs for each in zip(pair, most, strict=False))
            return all(_SIZE.fullmatch(end) and int(end) <= bound for end, bound in ends)

        if follow == edges and len({*chain(*pairs)}) <= nodes:
            return True
        matrix, metis = sizes[2:] == [follow], len(sizes) > 2 and follow == nodes
        return (matrix and within(nodes, edges)) or (metis and within(nodes, nodes))

    def relation(self, connection: Any, type_: TupleOf, directed: bool) -> Relation:
        """The edges as they stand."""
        node, what, places = type_.elements[0], str(self.path), [column - 1 for column in self.columns or (1, 2)]
        self.check(node)

        def in_python() -> Relation:
            self.file.seek(0)
            found = stage_text(connection, self._pairs(self.file.read().removeprefix(_BOM), node, places), 2)
            casts, more = [of_text(f"g{i}", node) for i in (0, 1)], {"noun": "line", "first": 1, "number": "n"}
            relation = Relation.of_fields(what, STAGED, casts, Layout.of(type_), (), found=found, **more)
            relation.advice = {}
            return relation

        cells, raw = self._cells(self.first), self.first.rstrip(b"\r\n").split(self.separator.encode())
        odd = b'"' in self.first or len(cells) <= max(places) or self._are_titles(cells)
        even = all(line.strip() and b"\r" not in line.rstrip(b"\r\n") for line in [*self.above, self.first])
        if odd or not even or [cell.strip() for cell in raw[: len(cells)]] != cells:
            return in_python()
        signs = [quoted(sign.decode()) for sign in _signs(self.comments)]
        unfit = [f"ltrim(g0)[1] = {sign}" for sign in signs if node == STR or 0 not in places]
        for i, cell in enumerate(raw):
            if i in places:
                unfit += [f"NOT regexp_full_match(g{i}, {quoted(_NAME)})"] if node == STR else []
            elif self.separator == " " and i < (max(places) if self.columns else len(raw)):  # blanks may be several
                unfit.append(f"(g{i} = '') <> {not cell}")
        where = f" WHERE CASE WHEN {any_of(unfit)} THEN {UNFIT} ELSE true END" if unfit else ""
        (a,), (b,) = (of_text(f"g{i}", node).checked for i in places)
        read = text_columns(self.file, len(raw), self.separator, len(self.above), "")
        source = f"(SELECT {a} AS a, {b} AS b FROM {read}{where})"
        small = os.fstat(self.file.fileno()).st_size <= SMALL
        return Relation(what, source, ("a", "b"), small=small, places=False, anew=in_python)

    def _cells(self, line: bytes) -> list[bytes]:
        """The columns of a line."""
        return [cell.strip() for cell in line.split(b"\t")] if self.separator == "\t" else _CELL.findall(line)

    def _pairs(self, content: bytes, node: Type, places: list[int]) -> Iterator[tuple[int, Sequence[str] | str]]:
        """The lines of edges by number, each with the text of both nodes or a refusal's reason."""
        if b"\0" in content:
            is_text = content.decode(errors="ignore").encode() == content
            raise SourceRejected(f"{self.path} {ZEROS if is_text else NO_TEXT}")
        width, needed, signs = len(self._cells(self.first)), max(places) + 1, _signs(self.comments)
        for number, line in enumerate(content.splitlines()):
            cells, text = self._cells(line), line.strip()
            if number < len(self.above) or not text:
                continue
            if text.startswith(signs):
                yield number, _COMMENT
            elif len(cells) < needed:
                yield number, _FEWER.format("two" if needed == 2 else needed)
            elif len(cells) != width and self.columns is None:
                yield number, _OTHER_WIDTH
            else:
                yield number, self._nodes([cells[place] for place in places], node, number == len(self.above))

    def _nodes(self, pair: list[bytes], node: Type, is_first: bool) -> Sequence[str] | str:
        """The text of two nodes, or the reason why they are none."""
        ends = [end[1:-1].replace(b'""', b'"') if end.startswith(b'"') else end for end in pair]
        fit = [(_NUMBER if node == INT else _NAMED).fullmatch(end) is not None for end in pair]
        titles = self._are_titles(ends) or (node == INT and not any(map(_DIGIT.match, ends)))
        if is_first and titles and self.columns is None:
            return _TITLES
        with suppress(UnicodeDecodeError):
            if all(fit):
                return [end.decode() for end in ends]
        return _NO_INTEGER if node == INT else _NO_NAME


def _signs(comments: str | None) -> tuple[bytes, ...]:
    """The signs that comments begin with."""
    return tuple(map(str.encode, "#%" if comments is None else comments))


def reads_back(content: bytes, node: Type) -> bool:
    """Whether edges in text are read as such: no other format, names of columns or sizes."""
    with suppress(SourceRejected):
        form = TextForm.of(Path(), io.BytesIO(content), None, None)
        form.check(node)
        return not formats_of(content[: 2**16]) and not form._are_titles(form.first.split())
    return False
