"""Answers: frozen public tables of released numbers, the only input to all later steps."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wpinq.display.html import STAMP as STAMP, Cell, interval_bar, interval_scale, render
from wpinq.errors import AnswersError, described
from wpinq.expr.nodes import write_value
from wpinq.expr.types import FLOAT, TupleOf, Type, physical
from wpinq.expr.values import Value, presenter
from wpinq.measure.answer_rows import CONFIDENCE, OWN_COLUMNS, Framed, Row, arrow_type, arrow_value, field_names
from wpinq.measure.measurement import Measurement, check_domain, measurement_to_json, read_measurement, read_plain
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import Node
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.count_above import Listing

if TYPE_CHECKING:
    import pandas
    import pyarrow


# Released results in JSON files: written, read, and refused where a file has other content.


class Saved(ABC):
    """A result that can be saved and read again: it contains nothing that was not released."""

    __slots__ = ()
    #: The content of a file of these, in words.
    saved_as: ClassVar[str]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, for `from_json`."""

    @classmethod
    @abstractmethod
    def _read(cls, data: Any) -> Self:
        """From plain data; any error where they are others."""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The result of plain data of `to_json`, checked; AnswersError for other data."""
        return read_plain(data, cls._read, cls.saved_as, AnswersError)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the object with its plan to a JSON file, for `load`."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of `save`; AnswersError for other content."""
        named = os.fspath(path)
        if "://" in named:
            raise AnswersError(f"{named} is an address, not the path of a file: fetch it, and load the file")
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise AnswersError(f"{named} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise AnswersError(f"{named} cannot be read as JSON: load what {cls.__name__}.save(path) wrote") from None
        return cls.from_json(data)


FORMAT, FORMAT_VERSION = "wpinq answers", 1
#: Of listed answers: versions that know no listings would give intervals that forget how the keys were chosen.
LISTING_VERSION = 2
#: The most rows of a repr.
_SHOWN = 10
#: The most rows of a notebook's page; the number of rows left out is shown.
SHOWN_ROWS = 50


@public
@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Answers(Saved, Framed):
    """Released answers: public keys, noisy values, and the data needed to interpret them.

    Attributes
    ----------
    measurement : Measurement
        The plan, the sink, the epsilon and the public keys.
    scale : float
        The scale of the Laplace noise in each value: 0 for a choice, in rungs of the ladder for a count of subgraphs.
    values : numpy array of float64, shape (number of keys,)
        The noisy values in the order of `keys`, read-only.
    simulated : bool
        Whether the answers come from `simulate`, which protects nothing.
    keys : tuple
        The public keys, in order, as Python objects.

    Notes
    -----
    Privacy cost: none. Answers contain released values only.
    """

    saved_as: ClassVar[str] = "answers"
    measurement: Measurement
    scale: float
    values: NDArray[np.float64]
    simulated: bool = False
    keys: tuple[Value, ...] = field(init=False)
    _positions: dict[Value, int] = field(init=False, default_factory=dict)  # made on the first request of a key

    def __post_init__(self) -> None:
        # over bytes: an array that owns its memory could be made writeable again
        values = np.frombuffer(np.asarray(self.values, dtype=np.float64).tobytes(), dtype=np.float64)
        object.__setattr__(self, "values", values)
        domain = self.measurement.domain or ()
        type_ = self.measurement.key_type
        shown = domain if physical(type_) is type_ else tuple(map(presenter(type_), domain))
        object.__setattr__(self, "keys", shown)
        if len(values) != len(self.keys):
            raise AnswersError(f"{len(self.keys)} keys need as many values, not {len(values)}")

    @property
    def listing(self) -> Listing | None:
        """The selection of listed keys, with `domain` and `above`; None without a threshold."""
        return self.measurement.listing

    @property
    def plan(self) -> Node:
        """The plan that was measured."""
        return self.measurement.plan

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the measurement."""
        return self.measurement.epsilon

    @property
    def value(self) -> Any:
        """The single number, average or candidate; AnswersError if there are several answers."""
        return self.measurement.sink.value(dict(self.items()))

    def value_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """An interval that contains the value without noise with at least this probability."""
        return self.measurement.sink.value_interval(dict(self.items()), self.scale, confidence)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys)

    def __getitem__(self, key: object) -> float:
        return float(self.values[self._position(key)])

    def items(self) -> Iterator[tuple[Value, float]]:
        """Keys with their values."""
        return zip(self.keys, map(float, self.values), strict=True)

    def at(self, keys: Iterable[object]) -> NDArray[np.float64]:
        """The values of several keys; AnswersError for a key that was not released."""
        if isinstance(keys, str):
            raise AnswersError(f"the keys {keys!r} are one text: give a list of keys, [{keys!r}]")
        positions = [self._position(key) for key in keys]
        return np.array(self.values[positions], dtype=np.float64)

    def above(self, threshold: float) -> Answers:
        """The answers with a noisy value above a threshold.

        Other keys have answers at or below the threshold. Noise alone lifts a share `Pr[noise > threshold]` of the
        absent keys above it.

        Parameters
        ----------
        threshold : float
            In units of the answers, chosen without using the data.

        Notes
        -----
        Privacy cost: none; the answers over the whole public domain were released.

        Examples
        --------
        >>> import wpinq as wp
        >>> words = wp.source("words", str)
        >>> counts = words.noisy_count(epsilon=1, over=["be", "or", "to"])
        >>> wp.simulate(counts, {"words": ["be"] * 90 + ["to"] * 80}, seed=1).above(40).keys
        ('be', 'to')
        """
        if not self.measurement.sink.per_key:
            raise AnswersError("only the answers of NoisyCount and GeometricCount can be listed above a threshold")
        if not isinstance(threshold, Real) or threshold != threshold:
            raise AnswersError(f"a threshold is a number, such as above(40), not {described(threshold)}")
        try:
            cut = float(threshold)
        except OverflowError:
            cut = math.inf if threshold > 0 else -math.inf
        kept = [i for i, value in enumerate(self.values) if value > cut]
        domain = self.measurement.domain or ()
        keys = tuple(domain[i] for i in kept)
        listing = self.listing and replace(self.listing, above=max(self.listing.above, cut))
        kept_of = replace(self.measurement, domain=keys, listing=listing)
        return replace(self, measurement=kept_of, values=self.values[kept])

    def interval(self, key: object, confidence: float = 0.95) -> tuple[float, float]:
        """The interval that contains the weight of a key without noise with this probability.

        `value ± scale · ln(1/(1 − confidence))`

        For a listed key it contains the weight with this probability *given that the key is listed*. Its lower end is
        lower than usual, because noise lifts keys above the threshold. Near the threshold the lower end is 0 if the
        plan proves that no weight is negative, and otherwise −∞.

        Parameters
        ----------
        key : record
            A released key.
        confidence : float
            Between 0 and 1.
        """
        if not self.measurement.sink.has_interval:
            raise AnswersError("a choice among candidates has no interval")
        return self.measurement.ends(self[key], self.scale, confidence)

    @property
    def kind(self) -> Kind:
        """The kind of the answers: a count, a rescaled count, a weight, or a statistic.

        The kind weight means a weight that is no count.
        """
        return self.measurement.kind

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The names of the fields of a key: `key` for one value, none for a single number."""
        type_ = self.measurement.key_type
        if self.measurement.sink.single:
            return ()
        return field_names(type_) if isinstance(type_, TupleOf) else ("key",)

    def rows(self, confidence: float = CONFIDENCE) -> Iterator[Row]:
        """A row for each answer: the fields of its key, the estimate, its interval and its kind.

        Parameters
        ----------
        confidence : float
            Between 0 and 1, for each interval by itself.

        Returns
        -------
        iterator of Row
            Rows with `key` (a value for each of `key_fields`), `estimate`, `low`, `high` and `kind`. A rescaled count
            and its ends are divided by `kind.factor`. A sum, an average, a choice or a count of subgraphs is one row
            without key fields.

        Notes
        -----
        Privacy cost: none. Rows follow from released values and the plan.

        Examples
        --------
        >>> import wpinq as wp
        >>> towns = wp.source("towns", str)
        >>> answers = wp.simulate(towns.noisy_count(epsilon=100, over=["York"]), {"towns": ["York"] * 7}, seed=1)
        >>> [(row.key, round(row.estimate), row.kind) for row in answers.rows()]
        [(('York',), 7, 'count')]
        """
        sink, kind = self.measurement.sink, self.kind
        if sink.single:
            low, high = self.value_interval(confidence) if sink.has_interval else (None, None)
            yield Row((), self.value, low, high, kind.name)
            return
        type_ = self.measurement.key_type
        width = len(type_.elements) if isinstance(type_, TupleOf) else 0
        selected = "" if self.listing is None else f", {self.listing.selection}"
        for known, key, weight in zip(self.measurement.domain or (), self.keys, self.values.tolist(), strict=True):
            name, factor = kind.at(known)
            low = high = None
            if sink.has_interval:
                low, high = (end / float(factor) for end in self.measurement.ends(weight, self.scale, confidence))
            shown = (key,) if not isinstance(type_, TupleOf) else (None,) * width if key is None else tuple(key)
            yield Row(shown, weight / float(factor), low, high, name + selected)

    def to_columns(self, confidence: float = CONFIDENCE) -> dict[str, list[Any]]:
        """The rows as lists: the fields of the keys, then `estimate`, `low`, `high` and `kind`.

        A key field with one of these names keeps it; the added column is then `answer_estimate` and so on.
        """
        found = list(self.rows(confidence))
        made: dict[str, list[Any]] = {name: [row.key[i] for row in found] for i, name in enumerate(self.key_fields)}
        for attribute in OWN_COLUMNS:
            name = attribute
            while name in made:
                name = f"answer_{name}"
            made[name] = [getattr(row, attribute) for row in found]
        return made

    def to_pandas(self, confidence: float = CONFIDENCE) -> pandas.DataFrame:
        """The rows as a pandas data frame with the columns of `to_columns`."""
        import pandas

        frame = pandas.DataFrame(self.to_columns(confidence))
        frame.attrs["kind"] = str(self.kind)
        return frame

    def to_arrow(self, confidence: float = CONFIDENCE) -> pyarrow.Table:
        import pyarrow

        made, type_, sink = self.to_columns(confidence), self.measurement.key_type, self.measurement.sink
        keys: tuple[Type, ...] = type_.elements if isinstance(type_, TupleOf) else (type_,)
        types = [*(() if sink.single else keys), type_ if sink.chooses else FLOAT, FLOAT, FLOAT]
        arrays = [
            pyarrow.array([arrow_value(value, kind) for value in column], type=arrow_type(kind))
            for column, kind in zip(made.values(), types, strict=False)  # all but the last, which is text
        ]
        kinds = pyarrow.array(list(made.values())[-1], type=pyarrow.string())
        table = pyarrow.Table.from_arrays([*arrays, kinds], names=list(made))
        return table.replace_schema_metadata({"kind": str(self.kind)})

    def to_json(self) -> dict[str, Any]:
        """The answers as plain data."""
        held = measurement_to_json(self.measurement)
        return {
            "format": FORMAT,
            "version": LISTING_VERSION if self.listing else FORMAT_VERSION,
            "simulated": self.simulated,
            "sink": held["sink"],
            "epsilon": held["epsilon"],
            "scale": self.scale,
            "reading": held["reading"],
            "kind": {"name": self.kind.name, "words": self.kind.words, "factors": self._factors()},
            "plan": held["plan"],
            "keys": held["keys"],
            "values": [float(value) for value in self.values],
            **({"listing": held["listing"]} if self.listing else {}),
        }

    @classmethod
    def _read(cls, data: Any) -> Self:
        if (data["format"], data["version"]) != (FORMAT, LISTING_VERSION if "listing" in data else FORMAT_VERSION):
            raise AnswersError("this is not a file of answers that this version can read")
        measurement = read_measurement(data)
        values = np.array(data["values"], dtype=np.float64)
        scale = float(data["scale"])
        if not (np.isfinite(values).all() and values.shape == (len(data["keys"]),) and 0 <= scale < math.inf):
            raise AnswersError("these answers hold numbers that are not finite, or not one for each key")
        answers = cls(measurement, scale, values, bool(data["simulated"]))
        if measurement.sink.single:
            _ = answers.value  # fails unless keys and values are those of the sink
        return answers

    def __reduce__(self) -> Any:
        return Answers.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        stamp = f" {STAMP};" if self.simulated else ""
        lines = [
            f"<Answers:{stamp} {self.measurement.sink.name}, epsilon {format_epsilon(self.epsilon)}, "
            f"noise scale {self.scale:.6g}, {len(self)} key{'s' * (len(self) != 1)}>"
        ]
        shown = list(islice(self.rows(), _SHOWN + 1))
        lines += map(_line, shown[:_SHOWN])
        words = self.kind.selection(self.listing) if self.listing else ""
        selected = [f"  {words}; intervals are conditional on the selection"] * bool(words)
        return "\n".join([*lines, *["  …"] * (len(shown) > _SHOWN), f"  {self.kind}", *selected])

    def _repr_html_(self) -> str:
        found, fields = list(islice(self.rows(), SHOWN_ROWS)), self.key_fields
        scale = interval_scale(end for row in found for end in (row.low, row.high))
        left_out = 0 if self.measurement.sink.single else len(self) - len(found)
        notes = [f"… {left_out} more: to_pandas() has all"] if left_out else []
        return render(
            "answers.html",
            title=self.measurement.sink.name,
            note=f"epsilon {format_epsilon(self.epsilon)}" + (f", {STAMP}" if self.simulated else ""),
            names=[*fields, "estimate", f"{100 * CONFIDENCE:g} % interval", "", "kind"],
            rows=[_cells(row, scale) for row in found],
            numbers=(len(fields), len(fields) + 1),
            notes=[*notes, str(self.kind)],
        )

    def _factors(self) -> str | list[str]:
        """The divisors of weights that make counts: one for all, or one for each key."""
        kind = self.kind
        if kind.form is None:
            return str(kind.factor)
        return [str(kind.at(key)[1]) for key in self.measurement.domain or ()]

    def _position(self, key: object) -> int:
        (known,) = check_domain([key], self.measurement.key_type)
        if not self._positions:
            object.__setattr__(self, "_positions", {key: i for i, key in enumerate(self.measurement.domain or ())})
        if known not in self._positions:
            if self.listing is not None and known in self.listing.domain:
                raise AnswersError(
                    f"the key {key!r} was not listed: its noisy value is at most {self.listing.above:.12g}; a count "
                    "over it, at the same epsilon, gives the value and costs nothing more"
                )
            raise AnswersError(f"the key {key!r} is not among those released; measure it with over=…")
        return self._positions[known]


def _line(row: Row) -> str:
    title = ", ".join(map(repr, row.key))
    number = f"{row.estimate:.6g}" if isinstance(row.estimate, float) else repr(row.estimate)
    ends = "" if row.low is None else f" ({row.low:.6g} to {row.high:.6g})"
    return f"  {title}: {number}{ends}, {row.kind}" if title else f"  {number}{ends}, {row.kind}"


def _cells(row: Row, scale: tuple[float, float]) -> list[Cell]:
    shown = f"{row.estimate:.6g}" if isinstance(row.estimate, float) else write_value(row.estimate)
    keys = map(write_value, row.key)
    if row.low is None or row.high is None:
        return [*keys, shown, "none", "", row.kind]
    bar = interval_bar(row.low, float(row.estimate), row.high, scale)
    return [*keys, shown, f"{row.low:.6g} to {row.high:.6g}", bar, row.kind]
