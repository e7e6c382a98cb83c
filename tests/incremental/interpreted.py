"""Generated modules run by Python itself: what they say, without compiling, so that many random plans can be tried.

The few functions that are written in terms of machine words are replaced; all else is the generated text. Integers
are not cut to 64 bits here, so what is not there must not matter: a value that does not fit would raise when stored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from wpinq.engines.delta.compiled.routine import LANES, M32, ONE, PRELUDE

WRAP = 2**64


def wrapped(value: int) -> int:
    """The word that is left of an integer."""
    return (int(value) + 2**63) % WRAP - 2**63


def _save(state: Any, at: int, value: int) -> None:
    state[at] = wrapped(value)


def _fits(value: int) -> bool:
    return wrapped(value) == value


INSTRUCTIONS: dict[str, Any] = {
    "load": lambda state, at: int(state[at]),
    "save": _save,
    "as_float": lambda word: struct.unpack("<d", struct.pack("<q", wrapped(word)))[0],
    "as_word": lambda number: struct.unpack("<q", struct.pack("<d", number))[0],
    "fetch": lambda rows, at: rows[at],
    "add_fits": lambda a, b: _fits(int(a) + int(b)),
    "subtract_fits": lambda a, b: _fits(int(a) - int(b)),
    "multiply_fits": lambda a, b: _fits(int(a) * int(b)),
    "M32": M32,
    "ONE": ONE,
    "LANES": LANES,
}
"""The instructions on machine words, as Python has them."""


def _mixer(factor: int, shift: int) -> Callable[[int, int], int]:
    # no stand-in by `hash`, for which 3 is 2**61 + 2: a memo of a group goes by its mixed words alone
    def mix(h: int, word: int) -> int:
        mixed = wrapped((h ^ word) * factor)
        return mixed ^ ((mixed >> shift) & 0xFFFFFFFF)

    return mix


def _draw(seeds: Any) -> float:
    first, second = int(seeds[0]), int(seeds[1])
    total = (first + second) % WRAP
    second ^= first
    turned = ((first << 24) | (first >> 40)) % WRAP
    seeds[0] = (turned ^ second ^ (second << 16)) % WRAP
    seeds[1] = ((second << 37) | (second >> 27)) % WRAP
    return float((total >> 11) * 2.0**-53)


def _declared(signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda function: function


def interpret(text: str) -> ModuleType:
    """The module of a generated text, interpreted."""
    module = ModuleType("interpreted")
    space = module.__dict__
    exec("from math import exp, isfinite\nimport numpy as np", space)
    space.update(INSTRUCTIONS)
    space["Compiler"] = lambda apart: SimpleNamespace(inner=_declared, inlined=_declared, entry=_declared)
    exec(text.removeprefix(PRELUDE), space)
    for name in [name for name in space if name.startswith("hash_")]:
        space[name] = lambda *words: hash(words) & 0xFFFFFFFF
    space["draw"], space["next_draw"] = _draw, lambda seeds: _draw(list(seeds))
    space["mix"] = _mixer(-7046029254386353131, 32)
    space["mix_too"] = _mixer(-4417276706812531889, 29)
    space["plus"] = lambda a, b: wrapped(a + b)
    return module
