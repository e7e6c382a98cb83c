"""The way of a release: check, price, debit, draw, store, answer, in this order.

What a release reveals depends on the plan, the ledger and the noise alone. The debit is durable before the data
are looked at, and never given back. Once it stands, whatever goes wrong is one constant error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wpinq.engines.contract import Engine
from wpinq.errors import SessionError
from wpinq.expr.values import Value, canonical_bytes_of, from_canonical_bytes, order_key
from wpinq.kernel.batches import bill_of, prepared
from wpinq.kernel.ledger import Ledger
from wpinq.kernel.looking import Looking
from wpinq.kernel.orders import Order, Protected
from wpinq.kernel.release import Release
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.measure.compound import Together, regrouped
from wpinq.measure.labels import check_label
from wpinq.measure.listing import Listing
from wpinq.measure.measurement import NoisyChoice
from wpinq.progress import StepDisplay

_CHOICE = b"choice"


class WayOfRelease:
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
            with self._engine.together(together):
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
