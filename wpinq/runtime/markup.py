"""HTML and SVG for notebooks: elements whose texts are escaped, by the standard library's serialiser."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree.ElementTree import Element, tostring

TEXT, FAINT, LINE, FILL, ACCENT = "currentColor", "#8a8f98", "#c7ccd1", "#e8eef5", "#3b76af"
"""Colours that read on light and dark pages."""

_PLAIN = "text-align:left;padding:2px 10px;border:none"
_NUMBER = "text-align:right;padding:2px 10px;border:none;font-variant-numeric:tabular-nums"


def element(tag: str, *content: str | Element, **attributes: object) -> Element:
    """An element with texts and elements inside; in names of attributes `_` stands for `-`, at the end for nothing.

    >>> html(element("b", "1 < 2", class_="x"))
    '<b class="x">1 &lt; 2</b>'
    """
    made = Element(
        tag, {name.rstrip("_").replace("_", "-"): printable(str(value)) for name, value in attributes.items()}
    )
    last: Element | None = None
    for item in content:
        if isinstance(item, Element):
            made.append(item)
            last = item
        elif last is None:
            made.text = (made.text or "") + printable(item)
        else:
            last.tail = (last.tail or "") + printable(item)
    return made


def printable(text: str) -> str:
    """Text without the control characters that HTML cannot hold, or that change how a line reads."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def html(whole: Element) -> str:
    """An element as text."""
    return tostring(whole, encoding="unicode", method="html")


def block(*content: str | Element) -> str:
    """A whole representation: what `_repr_html_` gives."""
    return html(element("div", *content, style="font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto"))


def title(text: str, note: str = "") -> Element:
    """A heading, with a fainter note beside it."""
    head = element("div", element("b", text), style="margin:2px 0 4px 0")
    if note:
        head.append(element("span", f"  {note}", style=f"color:{FAINT};margin-left:8px"))
    return head


def table(names: list[str], rows: list[list[str | Element]], numbers: Collection[int] = ()) -> Element:
    """A table; the columns whose places are in `numbers` are aligned as numbers."""
    head = element("tr", *(element("th", name, style=_style(i, numbers)) for i, name in enumerate(names)))
    body = [
        element("tr", *(element("td", cell, style=_style(i, numbers)) for i, cell in enumerate(row))) for row in rows
    ]
    ruled = f"border-bottom:1px solid {LINE}"
    return element(
        "table", element("thead", head, style=ruled), element("tbody", *body), style="border-collapse:collapse;margin:0"
    )


def _style(place: int, numbers: Collection[int]) -> str:
    return _NUMBER if place in numbers else _PLAIN


def interval_bar(low: float, value: float, high: float, least: float, most: float) -> Element:
    """An interval with its value as a bar on the scale from `least` to `most`, on which 0 is marked."""
    width, height = 160, 14

    def place(number: float) -> float:
        share = (number - least) / (most - least) if most > least else 0.5
        return round(4 + (width - 8) * min(1.0, max(0.0, share)), 1)

    drawn = [
        element(
            "line",
            x1=place(low),
            x2=place(high),
            y1=height / 2,
            y2=height / 2,
            stroke=ACCENT,
            stroke_width=3,
            opacity=0.5,
        ),
        element("circle", cx=place(value), cy=height / 2, r=3.5, fill=ACCENT),
    ]
    if least < 0 < most:
        drawn.insert(0, element("line", x1=place(0), x2=place(0), y1=0, y2=height, stroke=FAINT, stroke_width=1))
    return element("svg", *drawn, width=width, height=height, viewBox=f"0 0 {width} {height}", role="img")


def share_bar(share: float, words: str) -> Element:
    """How much of a whole is used, as a bar, with words for those who do not see it."""
    width, height = 220, 12
    filled = round(width * min(1.0, max(0.0, share)), 1)
    return element(
        "svg",
        element("title", words),
        element("rect", x=0, y=0, width=width, height=height, rx=3, fill=FILL, stroke=LINE),
        element("rect", x=0, y=0, width=filled, height=height, rx=3, fill=ACCENT),
        width=width, height=height, role="img",
    )  # fmt: skip
