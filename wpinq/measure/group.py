"""Measurements that are asked for, paid for and read together: what a session takes where it takes a measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

from wpinq.errors import SessionError
from wpinq.measure.measurement import Measurement
from wpinq.sinks.answer_kinds import Kind


class Compound(ABC):
    """Several measurements as one: released in one batch under one bill, and read as one result. Pure data."""

    __slots__ = ()

    @property
    @abstractmethod
    def measurements(self) -> tuple[Measurement, ...]:
        """What is released, in order."""

    @property
    @abstractmethod
    def items(self) -> Mapping[str, Measurement]:
        """What a bill lists, by its title: of measurements that are alike but for the part of a partition, one."""

    @property
    @abstractmethod
    def stand_ins(self) -> Mapping[str, tuple[Measurement, Kind]]:
        """For each item a measurement that is as exact as a number that is read off it, and its kind."""

    @abstractmethod
    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Self:
        """The same with other epsilons, as a function gives them from those that there are."""

    @abstractmethod
    def read(self, released: Sequence[Any]) -> Any:
        """The result, from what a session gave for each measurement: Answers, or a Release where it has no keys."""


Together = Measurement | Compound | Iterable[Measurement | Compound] | Mapping[str, Measurement | Compound]
"""What is released together: one, or several in a list or by name."""


def flattened(asked: Sequence[Measurement | Compound]) -> list[Measurement]:
    """The measurements of all that is asked for together."""
    return [one for item in asked for one in (item.measurements if isinstance(item, Compound) else (item,))]


def waits_for_keys(asked: Measurement | Compound) -> bool:
    """Whether a result waits for keys: it has none that are public, nor a listing that gives them."""
    held = flattened([asked])
    return all(one.listing is None for one in held) and any(one.domain is None for one in held)


def regrouped(given: Together, asked: Sequence[Measurement | Compound], released: Sequence[Any]) -> Any:
    """What was released for each measurement, read as it was asked for, and in the form in which that was given."""
    left = iter(released)
    found = [
        item.read([next(left) for _ in item.measurements]) if isinstance(item, Compound) else next(left)
        for item in asked
    ]
    if isinstance(given, Mapping):
        return dict(zip(given, found, strict=True))
    return found[0] if isinstance(given, (Measurement, Compound)) else found


# Labels: what a caller writes beside a debit, to know it again. Stored in clear, and no part of what is measured.

LONGEST_LABEL = 200
"""Characters of a label: a line, and no place for data."""


def check_label(label: object) -> str:
    """A label as it is kept, "" for none; SessionError when it is no text, or too long."""
    if label is None:
        return ""
    if not isinstance(label, str) or len(label) > LONGEST_LABEL:
        raise SessionError(
            f'a label is text of at most {LONGEST_LABEL} characters, such as label="degrees for the report"; it is '
            "kept in clear in the ledger, so do not write it from the data"
        )
    return label


def escaped(text: str) -> str:
    """A text that anybody may have written, for a terminal: what does not print is shown as Python escapes it.

    Control characters, ANSI sequences, line breaks, and marks that turn the direction of writing: none gets through.
    HTML has to be escaped besides, by whoever writes HTML.

    Examples
    --------
    >>> print(escaped("report\\x1b[2K of May"))
    report\\x1b[2K of May
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
