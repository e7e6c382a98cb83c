"""Releases: live handles that answer for any public key, for sessions whose keys cannot be listed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from wpinq.errors import SessionError
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement, check_domain


class Release:
    """A measurement that was paid for, without a list of keys: it answers for keys as they are asked.

    Every key has an answer, whether or not the data hold the record: an absent record weighs 0 and gets noise
    like any other, drawn once and remembered in the ledger for ever. So a Release cannot say which keys there are:
    `len`, `in`, iteration, `keys`, `==` and pickling raise. It belongs to its session. (Paper, section 2.2.)

    Examples
    --------
    >>> import wpinq as wp
    >>> words = wp.source("words", str)
    >>> with wp.Session() as session:
    ...     session.protect(words, ["to", "be", "or", "not", "to", "be"], budget=1)
    ...     release = session.release(words.noisy_count(epsilon=1))
    ...     noisy = release["to"]
    ...     again = release["to"]
    >>> noisy == again
    True
    """

    __slots__ = ("_answer", "measurement")
    __hash__ = None  # type: ignore[assignment]  # a release is no value; nothing may be looked up by it

    def __init__(self, measurement: Measurement, answer: Callable[[tuple[Value, ...]], Answers]) -> None:
        self.measurement = measurement
        self._answer = answer

    def __getitem__(self, key: object) -> float:
        """The noisy answer for one key."""
        return self.at([key])[key]

    def at(self, keys: Iterable[object]) -> Answers:
        """The noisy answers for public keys, as a table that can be saved and shared.

        Parameters
        ----------
        keys : iterable
            Keys of the type of the plan's records; they must not be chosen by looking at the data.

        Notes
        -----
        Privacy cost: none beyond what the release cost. Each key of the domain has its own noise already, in
        principle; asking draws it.
        """
        return self._answer(check_domain(keys, self.measurement.plan.type))

    def __repr__(self) -> str:
        return f"<Release of {self.measurement.description}: ask with release[key] or release.at(keys)>"

    def _refuse(self, *arguments: object) -> NoReturn:
        raise SessionError(
            "a Release does not tell which keys there are, for that would reveal records: ask for public keys with "
            "release[key] or release.at(keys)"
        )

    __len__ = __iter__ = __contains__ = __reversed__ = __eq__ = __ne__ = __bool__ = _refuse

    @property
    def keys(self) -> NoReturn:
        """Refused: the keys that there are would reveal records."""
        self._refuse()

    items = values = keys

    def __reduce__(self) -> NoReturn:
        raise SessionError("a Release belongs to its session and cannot be pickled; save release.at(keys)")
