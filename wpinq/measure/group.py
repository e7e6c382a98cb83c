"""Groups of measurements that are requested, paid for and read together, like a single one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypedDict, Unpack, overload

from wpinq.display.html import Explanation, ShownAsText
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import SessionError
from wpinq.measure.accuracy import accuracy as accuracy_of
from wpinq.measure.bill import Bill, Request, bill as bill_of
from wpinq.measure.measurement import Measurement
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind

if TYPE_CHECKING:  # of which a plain Compound needs no argument
    from typing_extensions import TypeVar

    from wpinq.measure.answers import Answers
    from wpinq.measure.measurement import ListedMeasurement

    R = TypeVar("R", default=Any, covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R", covariant=True)


class Compound(ShownAsText, Request, Generic[R]):
    """Several measurements as one: released and billed in one batch, and read as one result."""

    __slots__ = ()

    @abstractmethod
    def read(self, released: Sequence[Any]) -> R:
        """The result of the group."""

    bill = bill_of
    accuracy = accuracy_of

    def explain(self, engine: str = DEFAULT_ENGINE) -> Explanation:
        """The plan of each item as a tree, with types, costs and noise, and without data.

        It also has uses, weights left, and the engine.
        """
        shown = {**self.items, **{title: each for title, (each, _) in self.stand_ins.items() if title in self.items}}
        return Explanation("\n\n".join(f"{title}:\n{each.explain(engine)}" for title, each in shown.items()))


#: What is released together: one, or several in a list or by name.
Together = Measurement | Compound | Iterable[Measurement | Compound] | Mapping[str, Measurement | Compound]


class Options(TypedDict, total=False):
    """The keyword arguments of a release, for type checkers."""

    fresh: bool
    label: str | None


class Releasing:
    """The method `release` of a session and of an analyst, with the type of each result."""

    _release: Callable[[Together, bool, str | None], Any]

    @overload
    def release(self, measurements: ListedMeasurement, **options: Unpack[Options]) -> Answers: ...

    @overload
    def release(self, measurements: Measurement, **options: Unpack[Options]) -> Answers | Any: ...

    @overload
    def release(self, measurements: Compound[R], **options: Unpack[Options]) -> R: ...

    @overload
    def release(
        self, measurements: Mapping[str, ListedMeasurement], **options: Unpack[Options]
    ) -> dict[str, Answers]: ...

    @overload
    def release(self, measurements: Mapping[str, Compound[R]], **options: Unpack[Options]) -> dict[str, R]: ...

    @overload
    def release(
        self, measurements: Mapping[str, Measurement | Compound[Any]], **options: Unpack[Options]
    ) -> dict[str, Any]: ...

    @overload
    def release(self, measurements: Iterable[ListedMeasurement], **options: Unpack[Options]) -> list[Answers]: ...

    @overload
    def release(self, measurements: Iterable[Compound[R]], **options: Unpack[Options]) -> list[R]: ...

    @overload
    def release(self, measurements: Iterable[Measurement | Compound[Any]], **options: Unpack[Options]) -> list[Any]: ...

    def release(self, measurements: Together, *, fresh: bool = False, label: str | None = None) -> Any:
        """Release measurements: debit all of them or none, evaluate, add noise, and answer.

        Parameters
        ----------
        measurements : Measurement, Tabulation or MarginalTabulation, or several in a list or by name in a dict
            The measurements to release.
        fresh : bool
            Whether to draw new noise, at full cost, where the same measurement was released before.
        label : str, optional
            A text to keep with the debit: at most 200 characters. `history` and `wpinq ledger show --history`
            print it. It is kept in clear, so do not write it from the data. A replay has no debit, and no label
            changes what replays.

        Returns
        -------
        Answers or Release, a list of them, or a dict
            Answers for a measurement with a domain; otherwise a Release, which answers requested keys. For a Tabulation
            a Table, or an OpenTable where it neither has keys nor lists them. For a MarginalTabulation MarginalTables.
            Several come as they were given, in a list or under their names.

        Raises
        ------
        BudgetExceeded
            When a budget does not cover the bill; nothing is spent then.
        EvaluationFailed
            When the engine failed. The debit stands.

        Notes
        -----
        Privacy cost: the bill, except for measurements already in the ledger for the same versions of the data: those
        are answered from there, key by key, at no cost.
        """
        return self._release(measurements, fresh, label)


class Unlisted:
    """Paid results that answer any public key, and refuse to be listed, counted or compared."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # it is no value, and may be the key of no mapping
    _unlisted: ClassVar[str]  #: the refusal: what it does not tell, and what to ask instead

    def _refuse(self, *arguments: object) -> NoReturn:
        raise SessionError(self._unlisted)

    __len__ = __iter__ = __contains__ = __reversed__ = __eq__ = __ne__ = __bool__ = _refuse

    @property
    def keys(self) -> NoReturn:
        """Refused, because the existing keys would reveal records."""
        self._refuse()

    items = values = keys


def flattened(asked: Sequence[Request]) -> list[Any]:
    """The measurements of all requested items."""
    return [one for item in asked for one in item.measurements]


def waits_for_keys(asked: Measurement | Compound) -> bool:
    """Whether a result waits for keys: it has neither public keys nor a listing of them."""
    held = flattened([asked])
    return all(one.listing is None for one in held) and any(one.domain is None for one in held)


def regrouped(given: Together, asked: Sequence[Request], released: Sequence[Any]) -> Any:
    """The released results, read and arranged in the form of the request."""
    left = iter(released)
    found = [item.read([next(left) for _ in item.measurements]) for item in asked]
    if isinstance(given, Mapping):
        return ReleasedByName(zip(given, found, strict=True))
    return found[0] if isinstance(given, (Measurement, Compound)) else found


class ReleasedByName(dict[str, Any]):
    """Results by name, which notebooks show one after another."""

    def _repr_html_(self) -> str:
        shown = ((name, each, Explanation(repr(each))) for name, each in self.items())
        return "".join(
            Explanation(name)._repr_html_() + getattr(each, "_repr_html_", text._repr_html_)()
            for name, each, text in shown
        )


@public
class Batch(Compound[Any]):
    """Measurements and tables that are released together under one bill, in a list or by name.

    Parameters
    ----------
    parts : Measurements and tables, in a sequence or by name
        A session's `release` takes the batch as it takes these, and gives the same.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int, facts=["unit_weights"])
    >>> batch = wp.Batch({"people": people.noisy_count(1), "age": people.agg(mean=wp.mean("age", 0, 99), epsilon=2)})
    >>> batch.bill()
    Bill({'people': 3})
    >>> print(batch.accuracy(count=1000))
    measurement       kind   epsilon  ± at 95 %  costs
    people            count  1        2.996      people 1
    age, mean (Mean)  mean   2        0.1483     people 2
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Measurement | Compound] | Mapping[str, Measurement | Compound]) -> None:
        self.parts = dict(parts) if isinstance(parts, Mapping) else list(parts)
        bill_of(self.parts)  # refuses all but measurements

    def __repr__(self) -> str:
        return f"<Batch: {', '.join(title for title, _ in self._titled())}>"

    def _titled(self) -> Iterator[tuple[str, Measurement | Compound]]:
        if isinstance(self.parts, dict):
            yield from self.parts.items()
        else:
            yield from ((str(number), one) for number, one in enumerate(self.parts, 1))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(flattened([one for _, one in self._titled()]))

    @property
    def items(self) -> Mapping[str, Measurement]:
        return dict(Bill(dict(self._titled())).listed)

    @property
    def stand_ins(self) -> Mapping[str, tuple[Measurement, Kind]]:
        return {
            ", ".join(filter(None, (title, label))): stand_in
            for title, one in self._titled()
            for label, stand_in in one.stand_ins.items()
        }

    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Self:
        scaled = {title: one.scaled(epsilon) for title, one in self._titled()}
        return type(self)(scaled if isinstance(self.parts, dict) else list(scaled.values()))

    def read(self, released: Sequence[Any]) -> Any:
        return regrouped(self.parts, [one for _, one in self._titled()], released)


# Labels: a caller's text on a debit, to recognise it. Stored in clear, and no part of the measurement.

#: Characters of a label: a line, and no place for data.
LONGEST_LABEL = 200


def check_label(label: object) -> str:
    """A label as it is kept, "" for none; SessionError when it is no text, or too long."""
    if label is None:
        return ""
    if not isinstance(label, str) or len(label) > LONGEST_LABEL:
        raise SessionError(
            f'a label is text of at most {LONGEST_LABEL} characters, such as label="degrees for the report"; it is '
            "stored as plain text in the ledger, so do not write it from the data"
        )
    return label


def escaped(text: str) -> str:
    """An untrusted text for a terminal: unprintable characters as Python escapes.

    Control characters, ANSI sequences, line breaks, and marks that turn the direction of writing: none gets through.
    Code that writes HTML must escape it in addition.

    Examples
    --------
    >>> print(escaped("report\\x1b[2K of May"))
    report\\x1b[2K of May
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
