"""Counts above a threshold: the keys of a public domain with noisy values above it.

The domain may have any size. Every key of it has a noisy value, as if all had been requested, and those above the
threshold are shown. So the cost is that of noisy values for all keys, and each key that is not shown is known to be at
most the threshold. Some absent keys are shown because of their noise: `Listing.expected_by_noise` is their expected
number.

The values of the keys that are present are drawn. Of the absent ones a draw decides which are above the threshold
(`successes`), and another their values given that (`ConditionalNoise`). Keys that were requested before keep their
answers. An earlier listing bounds a key that it left out by its threshold, for ever: the value of the key is drawn
given the least of these bounds. `docs/proofs/listing.md` has the proof.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from wpinq.errors import PlanError, described
from wpinq.expr.types import Type
from wpinq.expr.values import Value, order_key
from wpinq.noise.conditional import ConditionalNoise, successes
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.sinks.keys import KeyDomain, domain_from_json, key_domain, ranges
from wpinq.sinks.sink import Output, Sink, gathered
from wpinq.sinks.syntax import Measured, Written, write_domain

LARGEST_THRESHOLD = 1e100

#: The most absent keys that a listing may expect: public, and checked before any debit.
MOST_BY_NOISE = 1_000_000


@dataclass(frozen=True, slots=True)
class Listing:
    """The selection of a listing: keys of a public domain with noisy values above a threshold.

    Attributes
    ----------
    domain : KeyDomain
        The public keys.
    above : float
        The threshold, at least 0, in units of the answers. Chosen without using the data.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", zip=str)
    >>> listed = people.select(lambda p: p.zip).noisy_count_above(epsilon=1, domain=wp.digits(5), above=20)
    >>> listed.listing.words
    'selected above 20, from the texts of 5 digits'
    """

    domain: KeyDomain
    above: float

    def __post_init__(self) -> None:
        if not isinstance(self.domain, KeyDomain):
            raise PlanError("a listing is out of a domain of keys: integers(0, 99_999), digits(5), product(…)")
        if type(self.above) is not float or not 0 <= self.above <= LARGEST_THRESHOLD:
            raise PlanError(f"a listing has a threshold from 0 to {LARGEST_THRESHOLD:g}, not {described(self.above)}")

    @property
    def selection(self) -> str:
        """The selection of its keys, in words."""
        return f"selected above {self.above:.12g}"

    @property
    def words(self) -> str:
        """The selection of its keys and their domain, in words."""
        return f"{self.selection}, from {self.domain}"

    def expected_by_noise(self, sink: Sink, scale: float) -> float:
        """The expected number of listed keys if all were absent; the scale is that of answers."""
        return self.domain.size * sink.chance_above(self.above, scale)

    def check_size(self, sink: Sink, scale: float) -> None:
        """Refuse, with PlanError, a threshold that noise alone would bring too many keys above.

        Privacy cost: none; domain, threshold and scale are public.
        """
        expected = self.expected_by_noise(sink, scale)
        if expected > MOST_BY_NOISE:
            enough, few = (scale * math.log(self.domain.size / most) for most in (MOST_BY_NOISE, 1))
            raise PlanError(
                f"noise alone would bring some {expected:.3g} of {self.domain.size:,} keys above {self.above:.12g}, "
                f"and a listing may expect at most {MOST_BY_NOISE:,}: list above {math.ceil(enough)} or more; above "
                f"{math.ceil(few)}, noise brings less than one"
            )

    def checked(self, type_: Type) -> Listing:
        """The same over keys of a type, whoever made it: PlanError where it is none."""
        with contextlib.suppress(Exception):
            return listing_from_json(self.to_json(type_), type_)
        raise PlanError(f"the listing is not over keys of type {type_}: query.noisy_count_above(...) makes one that is")

    def to_json(self, type_: Type) -> dict[str, Any]:
        """The listing, over keys of a type, as plain data."""
        return {"domain": self.domain.to_json(type_), "above": self.above}


def listing_from_json(data: Any, type_: Type) -> Listing:
    """The listing that plain data describe, over keys of a type.

    Any error may be raised where they describe none.
    """
    return Listing(domain_from_json(data["domain"], type_), float(data["above"]))


def listing_of(domain: KeyDomain | Iterable[object], above: object, type_: Type) -> Listing:
    """A listing over keys of a type, from what a user gives."""
    if isinstance(above, bool) or not isinstance(above, (Real, Fraction)):
        raise PlanError(f"a listing is above a threshold, a number of at least 0, not {described(above)}")
    try:
        threshold = float(above)
    except OverflowError:
        threshold = math.inf
    return Listing(key_domain(domain).of(type_), threshold)


#: The domains of earlier listings of the same release, with their cuts.
Past = Sequence[tuple[KeyDomain, float]]


def least_cut(past: Past, key: Value) -> float:
    """The known upper bound on the noisy value of a key without an answer.

    It is infinity where no listing had the key in its domain.
    """
    return min((cut for domain, cut in past if key in domain), default=math.inf)


def draw_keys(
    sink: Sink, output: Output, keys: Sequence[Value], past: Past, scale: float, random: RandomBytes
) -> list[float]:
    """The noisy values of keys, given that earlier listings left them out.

    Values are in units of the scale.
    """
    noise = ConditionalNoise(scale, sink.lattice is not None, random)
    return noise.at_most(gathered(sink, output, keys), [least_cut(past, key) for key in keys])


def draw_above(
    sink: Sink,
    listing: Listing,
    type_: Type,
    output: Output,
    asked: Collection[Value],
    past: Past,
    scale: float,
    random: RandomBytes,
) -> dict[Value, float]:
    """The shown keys of a listing that have no answer yet, with their noisy values.

    Values are in units of the scale.
    """
    noise = ConditionalNoise(scale, sink.lattice is not None, random)
    weights = output.weights(None, ranges(listing.domain, type_))
    given = dict(zip(weights, sink.in_units([*weights.values()]), strict=True))
    return draw_listing(given, asked, past, listing.domain, sink.cut(listing.above), noise)


def draw_listing(
    weights: Mapping[Value, float],
    asked: Collection[Value],
    past: Past,
    domain: KeyDomain,
    cut: float,
    noise: ConditionalNoise,
) -> dict[Value, float]:
    """The keys above a cut that have no answer yet, with their noisy values.

    Parameters
    ----------
    weights : mapping
        Of all keys that are present, in the units of the noise: protected. Those outside of the domain are left out.
    asked : collection
        Keys that have an answer.
    past : Past
        Earlier listings: all of them, so that a key is in the domain of one and without an answer only where its value
        is at most the cut.
    domain : KeyDomain
        Public.
    cut : float
        At least 0, public.
    noise : ConditionalNoise
        Of the release.

    Returns
    -------
    dict
        In an order that must not be shown.

    Notes
    -----
    Privacy cost: none beyond what the release cost, which is that of noisy values for all keys. How long it takes goes
    with the number of present keys, of requested keys, and of false positives.
    """
    asked_here = {key for key in asked if key in domain}
    held = [key for key in weights if key in domain and key not in asked_here]
    values = noise.at_most([weights[key] for key in held], [least_cut(past, key) for key in held])
    rows = {key: value for key, value in zip(held, values, strict=True) if value > cut}
    taken = np.sort(np.array([domain.index(key) for key in (*held, *asked_here)], dtype=np.int64))
    ranks = np.array(successes(domain.size - len(taken), partial(noise.chance, cut), noise.random), dtype=np.int64)
    # Of the keys that are not taken, the one of rank r follows as many taken ones as have at most r others before them.
    places = ranks + np.searchsorted(taken - np.arange(len(taken)), ranks, side="right")
    for place, value in zip(places.tolist(), noise.above(cut, len(places)), strict=True):
        key = domain.key(place)
        known = least_cut(past, key)
        # An absent key is drawn given what is known of it by trying until it is at most that: this was the first try.
        value = value if value <= known else noise.at_most([0.0], [known])[0]
        if value > cut:
            rows[key] = value
    return rows


def shown_keys(sink: Sink, listing: Listing, drawn: Mapping[Value, float]) -> tuple[Value, ...]:
    """The keys that a listing shows among those that have a noisy value, in canonical order."""
    cut = sink.cut(listing.above)
    return tuple(sorted((key for key, value in drawn.items() if value > cut and key in listing.domain), key=order_key))


def write_above(m: Measured) -> Written | None:
    """The text form of a count above a threshold."""
    if m.listing is None:
        return None
    return m.plan, [f"over: {write_domain(m.listing.domain, m.key_type)}", f"above: {m.listing.above!r}"]
