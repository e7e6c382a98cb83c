"""The way of a release: check, price, debit, draw, store, answer, in this order.

What a release reveals depends on the plan, the ledger and the noise alone. The debit is durable before the data
are looked at, and never given back. Once it stands, whatever goes wrong is one constant error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from wpinq.engines.contract import Engine
from wpinq.errors import SessionError
from wpinq.expr.values import Value, canonical_bytes_of, from_canonical_bytes, order_key
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.noisy_evaluation import Looking
from wpinq.kernel.prepare import Order, Protected, bill_of, prepared
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.group import Together, check_label, regrouped
from wpinq.measure.measurement import Measurement, NoisyChoice, check_domain
from wpinq.runtime.progress import StepDisplay
from wpinq.sinks.count_above import Listing

# Releases: live handles that answer for any public key, for sessions whose keys cannot be listed beforehand.


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


_CHOICE = b"choice"


class Releaser:
    """What a session does for a release: from measurements to answers, by way of the ledger.

    Parameters
    ----------
    ledger : Ledger
        Where budgets and answers are kept.
    engine : Engine
        What checks and evaluates plans.
    protected : mapping
        What the session protects, by source: its own mapping, which changes.
    steps : StepDisplay
        What is told the steps.
    run : str
        The random word that the session writes beside its debits.
    looking : Looking
        What looks at the data.
    """

    def __init__(
        self,
        ledger: Ledger,
        engine: Engine,
        protected: Mapping[str, Protected],
        steps: StepDisplay,
        run: str,
        looking: Looking,
    ) -> None:
        self._ledger, self._engine, self._protected, self._steps, self._run = ledger, engine, protected, steps, run
        self._looking = looking
        self.closed = False

    def check_open(self) -> None:
        """Refuse where the session is closed."""
        if self.closed:
            raise SessionError(
                "this session is closed: open another with wp.Session(ledger), and protect the data again"
            )

    def release(self, measurements: Together, fresh: bool, label: str | None, analyst: str | None = None) -> Any:
        """Debit the ledger, evaluate, and answer; several measurements together are one atomic debit.

        An analyst's name is that of who pays beside the sources, and is shown nothing of what others asked.
        """
        self.check_open()
        written = check_label(label)
        # one state of things for the whole batch, whatever other threads protect
        batch = prepared(measurements, dict(self._protected), fresh, partial(self._ledger.paid, analyst=analyst))
        orders = batch.orders
        looks = [(order, order.keys_at_once) for order in orders if order.looks_at_once]
        for order in orders:
            self._looking.check(order, order.keys_at_once)
        self._looking.get_ready(orders)
        # of which there can be no answers yet
        new = set(self._ledger.debit(batch.descriptions, batch.price, written, self._run, analyst))

        def answered() -> Any:
            together = [o.measurement.plan for o in orders if o.digest in new and o.looks_at_once]
            released = []
            with self._engine.batch(together):
                for order in orders:
                    released.append(self._release(order, order.digest in new, analyst))
                    new.discard(order.digest)
            return regrouped(measurements, batch.asked, released)  # a table asks at the keys that it listed

        try:
            return self._looking.asking(looks, answered)
        finally:
            self._steps.done()

    def bill(self, measurements: Together, fresh: bool) -> Bill:
        """What measurements would cost, before replay and earlier releases of partitions lower it."""
        return bill_of(measurements, dict(self._protected), fresh)

    def _release(self, order: Order, new: bool, analyst: str | None) -> Answers | Release:
        measurement = order.measurement
        if isinstance(measurement.sink, NoisyChoice):
            return self._shown(order, self._choose(order), analyst)
        if measurement.listing is not None:
            return self._shown(order, self._list(order, measurement.listing), analyst)
        if measurement.domain is None:
            return Release(measurement, lambda keys: self._ask(order, keys, analyst))
        return self._shown(order, self._answer(order, measurement.domain, new), analyst)

    def _shown(self, order: Order, answers: Answers, analyst: str | None) -> Answers:
        """Answers as they are shown; to an analyst only while the data are those that were paid for.

        Later on, keys that somebody asked for have answers and others cannot be drawn: it would show what others asked.
        """
        if analyst is not None:
            self._looking.check_held(order)
        return answers

    def _ask(self, order: Order, keys: tuple[Value, ...], analyst: str | None) -> Answers:
        self.check_open()
        self._looking.check(order, keys)
        self._looking.get_ready([order])
        return self._looking.asking([(order, keys)], lambda: self._shown(order, self._answer(order, keys), analyst))

    def _answer(self, order: Order, keys: tuple[Value, ...], new: bool = False) -> Answers:
        self.check_open()
        type_, factor = order.measurement.key_type, float(order.measurement.sink.factor)
        encoded = canonical_bytes_of(keys, type_)
        while True:
            listings = [] if new else self._ledger.listings(order.digest)
            stored = {} if new else self._ledger.answers(order.digest, encoded)
            coded = zip(encoded, keys, strict=True)
            missing = {code: key for code, key in coded if code not in stored} if stored else dict(coded)
            if not missing:
                break
            noisy = self._looking.draw(order, [*missing.values()], order.past(listings))
            drawn = dict(zip(missing, noisy, strict=True))
            standing = self._ledger.store_answers(order.digest, drawn, len(listings))
            if standing is not None:
                stored |= standing
                break
            new = False  # a listing came in between: what was drawn is for nobody
        values = np.array([*map(stored.__getitem__, encoded)]) * factor
        measurement = order.measurement if keys is order.measurement.domain else replace(order.measurement, domain=keys)
        return Answers(measurement, order.scale * factor, values)

    def _list(self, order: Order, listing: Listing) -> Answers:
        self.check_open()
        measurement, type_ = order.measurement, order.measurement.key_type
        written, factor = listing.to_json(type_), float(measurement.sink.factor)
        while True:
            listings = self._ledger.listings(order.digest)
            answers = self._ledger.answers(order.digest)
            stored = {from_canonical_bytes(code, type_): number for code, number in answers.items()}
            if written in listings:
                break
            rows = self._looking.draw_listing(order, listing, stored, order.past(listings))
            coded = dict(zip(canonical_bytes_of(list(rows), type_), rows.values(), strict=True))
            self._ledger.store_listing(order.digest, coded, written, listings=len(listings), answers=len(answers))
        cut = order.cut(listing)
        shown = sorted((key for key, number in stored.items() if number > cut and key in listing.domain), key=order_key)
        values = np.array([stored[key] for key in shown]) * factor
        return Answers(replace(measurement, domain=tuple(shown)), order.scale * factor, values)

    def _choose(self, order: Order) -> Answers:
        domain = order.measurement.domain
        assert domain is not None
        stored = self._ledger.answers(order.digest, [_CHOICE])
        if not stored:
            index = self._looking.pick(order)
            standing = self._ledger.store_answers(order.digest, {_CHOICE: float(index)})
            assert standing is not None  # which it is only of what was listed
            stored = standing
        values = np.zeros(len(domain))
        values[int(stored[_CHOICE])] = 1.0
        return Answers(order.measurement, 0.0, values)
