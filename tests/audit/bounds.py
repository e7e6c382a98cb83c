"""Lower bounds on what releases tell of neighbours, against what is claimed; and controls, which must be caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tests.audit.asked import KINDS
from tests.audit.findings import Part
from tests.audit.hours import Allotment
from tests.audit.pairs import ALPHA, TOO_LITTLE, Measured, Measuring, Pair
from wpinq.noise.epsilon_text import format_epsilon

CONTROL = 2
"""A control is drawn half as often."""

FALSE_ALARM = 1e-9
"""With which the fit of the noise of a pair is a fault."""


Asked = tuple[str, Pair, Measuring, int]
"""The name of a pair, the pair, how it is measured, and its part of the time."""


def asked(kinds: tuple[str, ...] = tuple(KINDS), at: Fraction | None = None) -> Iterator[Asked]:
    """All pairs, each at the epsilon of its kind unless told."""
    for kind in kinds:
        make, measure, usual, weight = KINDS[kind]
        epsilon = usual if at is None else at
        for pair in make(epsilon):
            yield f"{pair.name}, at {format_epsilon(epsilon)}", pair, measure, weight


def judged(name: str, pair: Pair, sound: Measured) -> Iterator[str]:
    """What is wrong with what was found on a pair."""
    if sound.bound > pair.claim:
        yield f"{name}: at least {sound.bound:.4f} is lost, and {pair.claim:.4f} is billed"
    elif sound.bound > sound.exact * (1 + 1e-6):
        yield f"{name}: at least {sound.bound:.4f} is lost, and the law of the noise says {sound.exact:.4f}"
    if sound.exact > pair.claim * (1 + 1e-9):
        yield f"{name}: the law of the noise loses {sound.exact:.4f}, and {pair.claim:.4f} is billed"
    if pair.whole and sound.exact < 0.999 * pair.claim:
        yield f"{name}: the pair moves {sound.exact:.4f} of the {pair.claim:.4f} that it is here for"
    if sound.fit < FALSE_ALARM:
        yield f"{name}: the noise has not its law, p = {sound.fit:.3g}"


def within(allotment: Allotment, measure: Measuring, pair: Pair, noise: float, size: int) -> Measured:
    """A pair measured, with fewer draws where the time is over."""
    return measure(pair, noise, size, lambda: allotment.over)


def audit_bounds(size: int, allotment: Allotment, chosen: Sequence[Asked] | None = None, noise: float = 1.0) -> Part:
    """So many releases of either side of each pair, fewer where time is over; `noise` plants noise of "
    "another scale."""
    part = Part(
        "bounds",
        f"What is lost at least on pairs of neighbours (Clopper and Pearson, wrong with {ALPHA:g} a pair), "
        "drawn from the "
        f"kernel's noise at the certified scale. It must not be above what is billed, nor above the loss of "
        "the exact law on the pair. "
        f"The control has a tenth too little noise, and must be above that loss.",
        ("pair", "billed", "exact loss", "at least", "control", "draws a side", "of the control", "p of the fit"),
    )
    pairs = list(asked() if chosen is None else chosen)
    undecided: list[str] = []
    most = max(1, size // CONTROL)
    for place, (name, pair, measure, weight) in enumerate(pairs):
        mine = allotment.share(weight / sum(later for *_, later in pairs[place:]))
        sound = within(mine.share(CONTROL / (CONTROL + 1)), measure, pair, noise, size)
        control = within(mine, measure, pair, noise * TOO_LITTLE, most)
        cells = (pair.claim, sound.exact, sound.bound, control.bound, sound.drawn, control.drawn, sound.fit)
        part.rows.append((name, *cells))
        part.faults += judged(name, pair, sound)
        if control.bound <= sound.exact:
            missed = f"{name}: a tenth too little noise is not caught ({control.bound:.4f} of {sound.exact:.4f})"
            (part.faults if control.drawn == most else undecided).append(missed)
    part.ran = {
        "pairs": len(pairs),
        "of these move the whole bound": sum(pair.whole for _, pair, *_ in pairs),
        "controls that were not caught for want of draws": len(undecided),
        "releases": sum(2 * (int(row[5]) + int(row[6])) for row in part.rows),
        "fewest draws a side": min(int(row[5]) for row in part.rows),
        "largest share of a bill that was found lost": max(float(row[3]) / float(row[1]) for row in part.rows),
    }
    return part
