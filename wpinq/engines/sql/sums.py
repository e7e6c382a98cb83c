"""Sums in any order: each contribution is an integer of 128 bits on one fine grid.

Let `M` bound the norm of what is summed, `2^b >= M > 2^(b-1)`. A contribution `c` becomes one of the two integers next
to `c · 2^(116-b)`; the integers are summed exactly, in whatever order, thread by thread, and the total is turned back
into a float once. The grid depends on the plan alone, never on the data.

No total overflows: absolute values add up to at most `M · (1 + 2^-20) · 2^(116-b) < 2^117`.

The error in norm over all records of an output, for `N` contributions in all, in roundoffs `u = 2^-53` of M. Each
contribution is moved by at most one grid step: `N · 2^(b-116)`, at most `N · 2^-62` roundoffs. A total is turned into a
float half by half at worst: the upper 64 bits, at most `2^53`, without an error, the lower with one of at most
`2 · 2^11` grid steps (over all records `N · 2^-50` roundoffs), and their sum is rounded once, which is one roundoff of
the total.
No machine that runs this engine sees `2^44` rows (at ten million rows a second, three weeks). The whole is within
`u · M · (1 + 2^-6 + 2^-18)`, and the `SUM_ROUNDING_UNITS` of `plan.arithmetic` leave as much again for what is of
second order.

A grid is no threat to stability here, because it is never coarse: what reaches the noise is the exact output, off
by an error that the slack of the plan covers (`PlanProperties.rounding_error`), not the exact output of a rounded
input.

**Norms of a Join** are on a grid of `2^(125-b)`, and turning them into floats takes up to two roundoffs. A norm
`n_k = ‖A_k‖ + ‖B_k‖` is a divisor, so its contributions are rounded up: no key with weight has norm zero, and the
norm found, `n'`, is at least `n_k (1 - 3u)`. If `n' <= n_k + d_k`, the output of the key
moves by at most `(‖A_k‖·‖B_k‖ / n_k) · d_k / (n_k + d_k) <= d_k / 4`, for `‖A_k‖·‖B_k‖ <= n_k² / 4`. So the steps
add at most `N · step / 4` in norm. That must be small against the mass of the *output*, `M_A·M_B/(M_A + M_B)`, which
is at least half the smaller of the two. With `b` for the mass that is summed and `o` for that of the output, the
steps add `2^44 · 2^(b-125) / 4`, below one roundoff of the output's mass, `2^(o-1) · 2^-53`, while `b - o <= 26`. Where
one side may be heavier than that, a second grid, `2^80` finer, takes what is below the first.

**Where no sum is needed.** Rows of one weight, known from the plan to be a function of what is grouped by, are
counted: `count · w` rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from wpinq.engines.sql.dialect import DUCKDB, Dialect
from wpinq.engines.sql.terms import SqlTerm, call, number
from wpinq.errors import PlanError
from wpinq.expr.functions import PRIMITIVES
from wpinq.expr.types import FLOAT
from wpinq.plan.operators.source import Source

RANGE_BITS = 125
SUM_BITS = 116
GAP_BITS = 26
SECOND_BITS = 80


def bits(mass: Fraction) -> int:
    """The least b with `2^b >= mass`."""
    if mass <= 0:
        return 0
    near = mass.numerator.bit_length() - mass.denominator.bit_length()  # 2^(near-1) < mass < 2^(near+1)
    return near + (Fraction(2) ** near < mass)


def exponent(mass: Fraction, range_bits: int = RANGE_BITS) -> int:
    """The power of two that takes weights to the grid."""
    power = range_bits - bits(mass)
    if abs(power) > 900:
        raise PlanError("the caps of this plan's sources are out of the range in which floats can be summed")
    return power


def power_of_two(power: int) -> str:
    """The float 2^power as SQL; exact."""
    return f"CAST({2.0**power!r} AS DOUBLE)"


def sum_sql(weights: Sequence[str], mass: Fraction, dialect: Dialect = DUCKDB) -> str:
    """The SQL of a sum of weights, one or several a row."""
    power = exponent(mass, SUM_BITS)
    scaled = [f"{weight} * {power_of_two(power)}" for weight in weights]
    return f"{dialect.write(f'grid_sum:{len(weights)}', *scaled)} * {power_of_two(-power)}"


def partial_sum_sql(weights: Sequence[str], mass: Fraction, dialect: Dialect = DUCKDB) -> str:
    """The SQL of the integer on the grid that `sum_sql` turns into a float."""
    scaled = [f"{weight} * {power_of_two(exponent(mass, SUM_BITS))}" for weight in weights]
    return dialect.write(f"grid_part:{len(weights)}", *scaled)


def on_grid(weights: Sequence[SqlTerm], mass: Fraction) -> SqlTerm:
    """The integer on the grid that one or several weights of a row add to `partial_sum_sql`."""
    scale = number(2.0 ** exponent(mass, SUM_BITS))
    first, *more = [call("to_grid", call("float_multiply", weight, scale)) for weight in weights]
    for term in more:
        first = call("int_add", first, term)
    return first


def sum_of_parts_sql(part: str, mass: Fraction, dialect: Dialect = DUCKDB) -> str:
    """The SQL of a sum whose rows were partly added up by `partial_sum_sql`, for the same mass.

    It gives the same float. All sums on the grid are exact, and it is their total alone that is turned into a float.
    """
    return f"{dialect.grid_whole(part)} * {power_of_two(-exponent(mass, SUM_BITS))}"


def norm_sql(weight: str, mass: Fraction, output: Fraction, dialect: Dialect = DUCKDB) -> str:
    """The SQL of a sum of absolute weights, rounded up, for an output of some mass."""
    power = exponent(mass)
    gap = bits(mass) - bits(output)
    scaled = f"(abs({weight}) * {power_of_two(power)})"
    if gap <= GAP_BITS:
        return f"{dialect.write('grid_sum:1', dialect.write('ceil', scaled))} * {power_of_two(-power)}"
    if gap > GAP_BITS + SECOND_BITS:
        raise PlanError(
            "Join: the caps of its sides differ by more than a factor of 2^106, so a norm could not be "
            "distinguished from rounding; declare closer caps"
        )
    whole = dialect.write("trunc", scaled)
    rest = f"(({scaled} - {whole}) * {power_of_two(SECOND_BITS)})"
    return (
        f"{dialect.write('grid_sum:1', whole)} * {power_of_two(-power)} + "
        f"{dialect.write('grid_sum:1', dialect.write('ceil', rest))} * {power_of_two(-power - SECOND_BITS)}"
    )


def check_weights(source: Source, numbers: Any) -> None:
    """Refuse weights, an array, that are more than the declared cap together."""
    near = float(abs(numbers).sum())
    exact = near if near <= float(source.cap) / 2 else sum((abs(Fraction(w)) for w in numbers.tolist()), Fraction(0))
    check_norm(source, exact)


def check_norm(source: Source, norm: float | Fraction) -> None:
    """Refuse a norm above the declared cap: the grid that sums are taken on is that of the cap."""
    if norm > source.cap * (1 + Fraction(1, 2**20)):  # weights that were rounded to floats on the way here
        raise PlanError(
            f"the data for the source {source.source!r} weigh more than the cap that it declares; declare a larger cap="
        )


# The two functions that SQL cannot say exactly: sums of floats rounded once, in Python.

#: What SQL calls them: `list_sum` and `share`.
FUNCTIONS = ("wpinq_sum", "wpinq_share")


#: The correctly rounded sum of the floats that are not null: the primitive's own meaning.
list_sum = PRIMITIVES["sum_list"].implement((FLOAT.name,))


def share(places: Sequence[int] | None, weights: Sequence[float | None] | None) -> list[float] | None:
    """The share of each element of a weighted list, at its first place, with 0 at its repeats.

    It is the merged weight over the norm. Merging and norm are exact, for opposite signs may cancel.
    """
    if places is None or weights is None:
        return None
    quick = _quick_shares(places, weights)
    return _exact_shares(places, weights) if quick is None else quick


def _quick_shares(places: Sequence[int], weights: Sequence[float | None]) -> list[float] | None:
    """The same for a list without repeats and nulls whose norm is exactly a float.

    Each quotient rounds once.
    """
    given = [weight for weight in weights if weight is not None]
    if len(given) < len(weights) or any(place != i for i, place in enumerate(places, 1)):
        return None
    sizes = list(map(abs, given))
    try:
        norm = math.fsum(sizes)
        exact = math.fsum([*sizes, -norm]) == 0
    except OverflowError:
        return None
    return [weight / max(norm, 1.0) for weight in given] if exact else None


def _exact_shares(places: Sequence[int], weights: Sequence[float | None]) -> list[float]:
    merged: dict[int, Fraction] = {}
    for place, weight in zip(places, weights, strict=True):
        if weight is not None:
            merged[place] = merged.get(place, Fraction(0)) + Fraction(weight)
    norm = max(Fraction(1), sum(map(abs, merged.values()), Fraction(0)))
    result = [0.0] * len(places)
    for place, total in merged.items():
        result[place - 1] = float(total / norm)
    return result


def register(connection: Any) -> None:
    """Make the functions known to a connection."""
    special, (sum_name, share_name) = "special", FUNCTIONS  # nulls are passed on to the function
    connection.create_function(sum_name, list_sum, ["DOUBLE[]"], "DOUBLE", null_handling=special)
    connection.create_function(share_name, share, ["BIGINT[]", "DOUBLE[]"], "DOUBLE[]", null_handling=special)
