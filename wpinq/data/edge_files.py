"""Text edge lists: one edge to a line, in columns by place.

The first edge says the separator and the number of columns. A line that differs is unfit. DuckDB reads regular files,
Python all others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wpinq.columns.unlinked_file import quoted
from wpinq.data.casts import UNFIT, of_text
from wpinq.data.files import NO_TEXT, SMALL, ZEROS, stage_text
from wpinq.data.graph_files import formats_of
from wpinq.data.layout import Layout
from wpinq.data.relation import STAGED, Relation
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, TupleOf, Type

_BOM = b"\xef\xbb\xbf"
_BLANK = r' \t\n\v\f\r"'
_NAME = f"[^{_BLANK}',;]([^{_BLANK}]*[^{_BLANK},;])?"
_NUMBER, _NAMED = re.compile(rb"[+-]?[0-9]+"), re.compile(rb'"([^"]|"")+"|' + _NAME.encode())
_CELL = re.compile(rb'"(?:[^"]|"")*"(?!\S)|\S+')
_SIZE = re.compile(rb"[0-9]{1,18}")
_TITLE = re.compile(rb"(?i)(source|target|src|dst|dest|destination|from|to|head|tail|node|id)_?(node)?_?(id|[12])?")
"""What columns of edges are called, and hardly ever both nodes of an edge."""
_READ = "auto_detect=false, header=false, quote='', escape='', comment='', nullstr='\x01', strict_mode=true"

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
    above: list[bytes]
    first: bytes
    separator: str
    directed: bool | None

    @classmethod
    def of(cls, path: Path, file: Any, comments: str | None, columns: Sequence[Any] | None) -> TextForm:
        """The form of an open file."""
        file.seek(0)
        signs, ends, above, first = _signs(comments), max(columns or (1, 2)), list[bytes](), b""
        for line in (part for whole in file for part in whole.splitlines(keepends=True)):
            first = line if above else line.removeprefix(_BOM)
            if first.strip() and not first.strip().startswith(signs):
                break
            above.append(first)
        else:
            first = b""
        by_tabs = [cell.strip() for cell in first.split(b"\t")][:ends] == _CELL.findall(first)[:ends]
        konect = re.match(rb"%\s*(a?)sym\b", above[0]) if above else None
        directed = None if konect is None else konect[1] == b"a"
        return cls(path, file, comments, columns, above, first, "\t" if by_tabs else " ", directed)

    def form(self, node: Type) -> str:
        """The form in words, which hang on nothing but how the first edge is written."""
        between, width = "tabs" if self.separator == "\t" else "blanks", len(self._cells(self.first)) or 2
        signs = " or ".join(map(bytes.decode, _signs(self.comments))) or "nothing"
        ends = " and ".join(map(str, self.columns or (1, 2)))
        return f"columns {ends} of {width}, with {between} between; comments begin with {signs}"

    def _check(self, node: Type) -> None:
        """Refuse a file that may as well be another graph, unless it was told which."""
        first, why = self._cells(self.first), ""
        like = [re.match(rb"[#%][^\s#%]", line) and len(self._cells(line)) == (len(first) or 2) for line in self.above]
        if node == STR and self.comments is None and any(like):
            why = "begins with lines that are comments or edges: say comments='#' or the like, '' where they are edges"
        elif node == STR and self.columns is None and self.separator == " " and len(first) > 2:
            why = "may have names with blanks (quote them) or be for networkx.read_adjlist: of edges say columns=(1, 2)"
        elif node == INT and self.columns is None and self.separator == " " and self._may_be_sizes(first):
            why = "may begin with numbers of nodes and edges: take them out, name METIS .graph, or say columns=(1, 2)"
        if why:
            raise SourceRejected(f"{self.path} {why}")

    def _may_be_sizes(self, first: Sequence[bytes]) -> bool:
        """Whether the first edge may say how much follows: as many lines, and no larger id."""
        sizes, length = [int(cell) for cell in first[:5] if _SIZE.fullmatch(cell)], os.fstat(self.file.fileno()).st_size
        follow = sizes[1:] if len(sizes) == 2 else sizes[:3:2]
        likely = any(n > 2 and 3 * n <= length <= 2**16 + 128 * n for n in follow)  # of few large files more is read
        if not likely or not 1 < len(sizes) == len(first) < 5:
            return False
        self.file.seek(0)
        content, most = self.file.read().rstrip(), max(sizes[:-1])
        if content.count(b"\n") - len(self.above) not in follow:
            return False
        ends = [end for line in content.splitlines()[len(self.above) + 1 :] for end in line.split()[:2]]
        return all(_SIZE.fullmatch(end) and int(end) <= most for end in ends)

    def relation(self, connection: Any, type_: TupleOf, directed: bool) -> Relation:
        """The edges as they stand."""
        node, what, places = type_.elements[0], str(self.path), [column - 1 for column in self.columns or (1, 2)]
        self._check(node)

        def in_python() -> Relation:
            self.file.seek(0)
            found = stage_text(connection, self._pairs(self.file.read().removeprefix(_BOM), node, places), 2)
            casts, more = [of_text(f"g{i}", node) for i in (0, 1)], {"noun": "line", "first": 1, "number": "n"}
            relation = Relation.of_fields(what, STAGED, casts, Layout.of(type_), (), found=found, **more)
            relation.advice = {}
            return relation

        cells, raw = self._cells(self.first), self.first.rstrip(b"\r\n").split(self.separator.encode())
        odd = b'"' in self.first or len(cells) <= max(places) or all(map(_TITLE.fullmatch, cells[:2]))
        even = all(line.strip() and b"\r" not in line.rstrip(b"\r\n") for line in [*self.above, self.first])
        if odd or not even or [cell.strip() for cell in raw[: len(cells)]] != cells:
            return in_python()
        signs = [quoted(sign.decode()) for sign in _signs(self.comments)]
        conditions = [f"ltrim(g0)[1] <> {sign}" for sign in signs if node == STR or 0 not in places]
        for i, cell in enumerate(raw):
            if i in places:
                conditions += [f"regexp_full_match(g{i}, {quoted(_NAME)})"] if node == STR else []
            elif self.separator == " " and i < (max(places) if self.columns else len(raw)):  # blanks may be several
                conditions.append(f"(g{i} = '') = {not cell}")
        where = f" WHERE CASE WHEN {' AND '.join(conditions)} THEN true ELSE {UNFIT} END" if conditions else ""
        columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(len(raw)))
        how = f"columns={{{columns}}}, skip={len(self.above)}, delim='{self.separator}', {_READ}"
        (a,), (b,) = (of_text(f"g{i}", node).checked for i in places)
        source = f"(SELECT {a} AS a, {b} AS b FROM read_csv('/dev/fd/{self.file.fileno()}', {how}){where})"
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
        titles = all(map(_TITLE.fullmatch, ends)) or (node == INT and not any(fit))
        if is_first and titles and self.columns is None:
            return _TITLES
        with suppress(UnicodeDecodeError):
            if all(fit):
                return [end.decode() for end in ends]
        return _NO_INTEGER if node == INT else _NO_NAME


def _signs(comments: str | None) -> tuple[bytes, ...]:
    """The signs that comments begin with."""
    return tuple(map(str.encode, "#%" if comments is None else comments))


def is_head(line: str) -> bool:
    """Whether the line of a first edge reads as another format, or as names of columns."""
    return bool(formats_of(line.encode())) or all(map(_TITLE.fullmatch, line.encode().split()))
