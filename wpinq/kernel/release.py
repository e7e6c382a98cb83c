"""The release of measurements: check, price, debit, draw, store, answer, in this order.

What a release reveals depends on the plan, the ledger and the noise alone. The debit is committed before any data are
read, and is never refunded. Any failure of the evaluation raises the same constant error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NoReturn

from wpinq.errors import SessionError
from wpinq.expr.values import Value, canonical_bytes_of, from_canonical_bytes
from wpinq.kernel.ledger.debit import NewAnswers
from wpinq.kernel.ledger.ledger import Ledger, StoredAnswers
from wpinq.kernel.noisy_evaluation import NoisyEvaluator
from wpinq.kernel.prepare import PreparedMeasurement, Protected, prepare_batch
from wpinq.measure.answers import Answers
from wpinq.measure.group import Together, Unlisted, check_label, regrouped
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.runtime.public import public
from wpinq.sinks.count_above import Listing, shown_keys


@public
class Release(Unlisted):
    """A paid measurement without a list of keys; it answers each requested public key.

    Every key has an answer, also without a record in the data: an absent record weighs 0 and gets the same noise, drawn
    once and stored in the ledger. So a Release cannot list the existing keys: `len`, `in`, iteration, `keys`, `==` and
    pickling raise. It belongs to its session. (Paper, section 2.2.)

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
    _unlisted = (
        "a Release does not list its keys, because they would reveal records: query public keys with "
        "release[key] or release.at(keys)"
    )

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
            Keys of the type of the plan's records; they must not depend on the data.

        Notes
        -----
        Privacy cost: none beyond that of the release. Each key has its own noise, which a request draws.
        """
        return self._answer(check_domain(keys, self.measurement.key_type))

    def __repr__(self) -> str:
        return f"<Release of {self.measurement.description}: query with release[key] or release.at(keys)>"

    def __reduce__(self) -> NoReturn:
        raise SessionError("a Release belongs to its session and cannot be pickled; save release.at(keys)")


class Releaser:
    """The release of a session: from measurements to answers, by way of the ledger.

    Parameters
    ----------
    ledger : Ledger
        Where budgets and answers are kept.
    protected : mapping
        What the session protects, by source: its own mapping, which changes.
    run : str
        The random word that the session writes with its debits.
    evaluator : NoisyEvaluator
        Which evaluates the data.
    """

    def __init__(self, ledger: Ledger, protected: Mapping[str, Protected], run: str, evaluator: NoisyEvaluator) -> None:
        self._ledger, self._protected, self._run, self._evaluator = ledger, protected, run, evaluator
        self.closed = False

    def check_open(self) -> None:
        """Refuse where the session is closed."""
        if self.closed:
            raise SessionError("this session is closed: open wp.Session(ledger) again, and protect the data again")

    def release(self, measurements: Together, fresh: bool, label: str | None, analyst: str | None = None) -> Any:
        """Release measurements: debit all of them or none, evaluate, add noise, and answer.

        A named analyst pays in addition to the sources, and is shown nothing of the requests of others.
        """
        self.check_open()
        written = check_label(label)
        # one state of things for the whole batch, whatever other threads protect
        batch = prepare_batch(measurements, dict(self._protected), fresh)
        evaluated = [(each, each.keys_at_once) for each in batch.prepared if each.evaluates_at_once]
        for each in batch.prepared:
            self._evaluator.check(each, each.keys_at_once)
        self._evaluator.get_ready(batch.prepared)
        # of which there can be no answers yet
        new = self._ledger.debit(batch.descriptions, batch.price, written, self._run, analyst, batch.plan)

        def answered() -> Any:
            first = {each.digest: each for each, _ in evaluated if each.digest in new}
            with self._evaluator.batch([each.measurement.plan for each in first.values()]):
                standing = self._first_answers(first)
                released = [self._release(each, standing.get(each.digest), analyst) for each in batch.prepared]
            return regrouped(measurements, batch.items, released)  # a table is read at the keys that it listed

        return self._evaluator.asking(evaluated, answered)

    def _first_answers(self, new: Mapping[str, PreparedMeasurement]) -> dict[str, Sequence[float]]:
        """The first answers to measurements, by digest: drawn one by one, and stored together."""
        drawn = dict[str, NewAnswers]()
        try:
            for digest, each in new.items():
                m = each.measurement
                if m.domain is not None and m.listing is None:
                    noisy = self._evaluator.draw(each, m.domain, [])
                    drawn[digest] = (*m.sink.codes(m.domain, m.key_type), noisy)
        finally:  # also where a later one fails
            standing = self._ledger.store_together(drawn, durable=any(new[d].replays for d in drawn)) if drawn else {}
        return standing

    def _release(
        self, prepared: PreparedMeasurement, found: Sequence[float] | None, analyst: str | None
    ) -> Answers | Release:
        measurement = prepared.measurement
        if measurement.listing is not None:
            return self._shown(prepared, self._count_above(prepared, measurement.listing), analyst)
        if measurement.domain is None:
            return Release(measurement, lambda keys: self._ask(prepared, keys, analyst))
        return self._shown(prepared, self._answer(prepared, measurement.domain, found), analyst)

    def _shown(self, prepared: PreparedMeasurement, answers: Answers, analyst: str | None) -> Answers:
        """Shown answers; to an analyst only while the data are those that were paid for.

        Later, keys that were requested before have answers and others cannot be drawn. This would reveal the requests
        of others.
        """
        if analyst is not None:
            self._evaluator.held(prepared)
        return answers

    def _ask(self, prepared: PreparedMeasurement, keys: tuple[Value, ...], analyst: str | None) -> Answers:
        self.check_open()
        self._evaluator.check(prepared, keys)
        self._evaluator.get_ready([prepared])
        evaluated = [(prepared, keys)]
        return self._evaluator.asking(evaluated, lambda: self._shown(prepared, self._answer(prepared, keys), analyst))

    def _answer(
        self, prepared: PreparedMeasurement, keys: tuple[Value, ...], found: Sequence[float] | None = None
    ) -> Answers:
        self.check_open()
        measurement, sink = prepared.measurement, prepared.measurement.sink
        found = self._stored(prepared, keys) if found is None else found
        shown = measurement if keys is measurement.domain else replace(measurement, domain=keys)
        return Answers(shown, sink.answer_scale(prepared.scale), sink.answers(found, len(keys)))

    def _stored(self, prepared: PreparedMeasurement, keys: tuple[Value, ...]) -> list[float]:
        """The stored numbers for some keys; those that there are none for are drawn."""
        sink = prepared.measurement.sink
        codes, stored = [*map(b"".join, product(*sink.codes(keys, prepared.measurement.key_type)))], StoredAnswers()
        while not stored.keys() >= {*codes}:
            listings = self._ledger.listings(prepared.digest)
            stored = self._ledger.answers(prepared.digest, codes)
            if missing := [place for place, code in enumerate(codes) if code not in stored]:
                wanted = keys if sink.chooses else [keys[place] for place in missing]
                noisy = self._evaluator.draw(prepared, wanted, prepared.past(listings))
                drawn = dict(zip([codes[place] for place in missing], noisy, strict=True))
                # none where a listing came in between: the draw is for nobody
                stored |= self._ledger.store_answers(prepared.digest, drawn, len(listings), prepared.replays) or {}
        return [*map(stored.__getitem__, codes)]

    def _count_above(self, prepared: PreparedMeasurement, listing: Listing) -> Answers:
        self.check_open()
        measurement, sink, type_ = prepared.measurement, prepared.measurement.sink, prepared.measurement.key_type
        written = listing.to_json(type_)
        while True:
            listings = self._ledger.listings(prepared.digest)
            stored = {from_canonical_bytes(key, type_): n for key, n in self._ledger.answers(prepared.digest).items()}
            if written in listings:
                break
            rows = self._evaluator.draw_above(prepared, listing, stored, prepared.past(listings))
            coded = dict(zip(canonical_bytes_of(list(rows), type_), rows.values(), strict=True))
            self._ledger.store_listing(prepared.digest, coded, written, listings=len(listings), answers=len(stored))
        keys = shown_keys(sink, listing, stored)
        values = sink.answers([stored[key] for key in keys], len(keys))
        return Answers(replace(measurement, domain=keys), sink.answer_scale(prepared.scale), values)
