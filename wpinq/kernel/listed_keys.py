"""Listings: the keys of a public domain with a noisy value above a threshold, of a domain too large to go over.

Every key of the domain has its noisy value, as if all had been asked for. Those of the keys that are present are drawn.
Of the absent ones it is drawn which are above the threshold (`trials`), and their values given that (`conditional`).
Keys that were asked for before keep their answers. What earlier listings say of a key, that it is at most their
thresholds, holds for ever: its value is drawn given the least of them. `docs/proofs/listing.md` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np

from wpinq.expr.values import Value
from wpinq.kernel.conditional import ConditionalNoise
from wpinq.kernel.trials import successes
from wpinq.measure.key_domains import KeyDomain

Past = Sequence[tuple[KeyDomain, float]]
"""The domains of earlier listings of the same release, with their cuts."""


def least_cut(past: Past, key: Value) -> float:
    """What the noisy value of a key without an answer is known to be at most: infinity, where no listing held it."""
    return min((cut for domain, cut in past if key in domain), default=math.inf)


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
        In no order that may be shown.

    Notes
    -----
    Privacy cost: none beyond what the release cost, which is that of noisy values for all keys. How long it takes goes
    with the number of keys that are present, of those asked for, and of false positives.
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
