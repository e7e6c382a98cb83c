"""HTML for notebooks and reports, by templates of `wpinq/display/templates`.

Every text in them is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

#: The mark of simulated answers on pages and plots.
STAMP = "SIMULATED: protects nothing"

#: A cell of a table: text, or a bar.
Cell = str | Mapping[str, object]

TEMPLATES = Path(__file__).parent / "templates"
_WIDTH, _MARGIN = 160, 4


def render(template: str, **values: object) -> str:
    """A page of `wpinq/display/templates` with values in their places.

    Examples
    --------
    >>> "<script>" in render("bill.html", accounts=[("<script>", [])])
    False
    """
    return _environment().get_template(template).render(values)


class ShownAsText:
    """Objects that notebooks show by their text, line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render("text.html", text=str(self))


class Explanation(ShownAsText, str):
    """A text that consoles show as it is, and not as a literal."""

    __repr__ = str.__str__


def interval_bar(low: float, value: float, high: float, scale: tuple[float, float], words: str = "") -> Cell:
    """A table cell: an interval with its value, drawn on a scale where 0 is marked.

    Parameters
    ----------
    low, value, high : float
        The interval; an end that is not finite is drawn at the edge.
    scale : tuple of float
        The least and the most that the whole width shows.
    words : str
        Text beside the bar.
    """
    least, most = scale

    def at(number: float) -> float:
        share = (number - least) / (most - least) if most > least else 0.5
        return round(_MARGIN + (_WIDTH - 2 * _MARGIN) * min(1.0, max(0.0, share)), 1)

    zero = at(0) if least < 0 < most else None
    return {"width": _WIDTH, "low": at(low), "value": at(value), "high": at(high), "zero": zero, "words": words}


def interval_scale(ends: Iterable[float | None]) -> tuple[float, float]:
    """The scale that fits intervals by their ends, and 0.

    An end that is None or not finite does not count.
    """
    finite = [end for end in ends if end is not None and math.isfinite(end)]
    return min([0.0, *finite]), max([0.0, *finite])


def share_bar(share: float, words: str) -> Cell:
    """A table cell: the used share of a whole, with words for readers who do not see it."""
    return {"share": min(1.0, max(0.0, share)), "words": words}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: Any) -> Any:
    """A text without control characters.

    HTML cannot hold some, and others change how a line reads.
    """
    if type(value) is not str:
        return value
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in value)
