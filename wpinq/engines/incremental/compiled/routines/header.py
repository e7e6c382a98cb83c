"""The array of words that holds all state, so that undoing is writing words back: what its first words are.

Then come the headers of tables (see `store`).
"""

from __future__ import annotations

STATUS, LOG, LOG_START, LOG_END, SCORE = range(5)
HEADERS = 64
PARAMETERS, PARAMETERS_EACH = 5, 3
"""Where the parameters of outputs begin, and for each: its price within the domain and outside, and the width."""
MISSED, UNCHECKED = HEADERS - 1, HEADERS - 2
SLOTS, MASK, ROWS, STRIDE, COUNT, FREE, CAP, LIVE = range(8)
HEADER_WORDS = 8
LOG_FULL, NEGATIVE, NOT_UNIT, MISSING, UNSTEADY = range(1, 6)
DUST = 1e-12
GROWTH = 2.0**22
"""How far a norm n may grow at once, to m: records change before it does, so `m²/n` comes and goes, and takes digits of
`m` with it, 1e-9 of them where `m² = GROWTH · n · max(1, m)`."""

CONSTANTS = {
    name: globals()[name]
    for name in (
        *("STATUS", "LOG", "LOG_START", "LOG_END", "SCORE", "MISSED", "UNCHECKED"),
        *("SLOTS", "MASK", "ROWS", "STRIDE", "COUNT", "FREE", "CAP", "LIVE"),
        *("LOG_FULL", "NEGATIVE", "NOT_UNIT", "MISSING", "UNSTEADY", "DUST", "GROWTH"),
    )
}
"""Those that routines name."""
