"""Generated modules run by Python itself: what they say, without compiling, so that many random plans can be tried.

The few functions that are written in terms of machine words are replaced; all else is the generated text. Integers
are not cut to 64 bits here, so what is not there must not matter: a value that does not fit would raise when stored.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from wpinq.engines.delta.compiled import routine
from wpinq.engines.delta.compiled.routine import PRELUDE

WRAP = 2**64
INSTRUCTIONS = ("load", "save", "as_float", "as_word", "add_fits", "subtract_fits", "multiply_fits", "M32", "ONE")


def _mixer(factor: int, shift: int) -> Callable[[int, int], int]:
    # no stand-in by `hash`, for which 3 is 2**61 + 2: a memo of a group goes by its mixed words alone
    def mix(h: int, word: int) -> int:
        mixed = routine.wrapped((h ^ word) * factor)
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
    space.update({name: getattr(routine, name) for name in INSTRUCTIONS})
    space["Compiler"] = lambda apart: SimpleNamespace(inner=_declared, inlined=_declared, entry=_declared)
    exec(text.removeprefix(PRELUDE), space)
    for name in [name for name in space if name.startswith("hash_")]:
        space[name] = lambda *words: hash(words) & 0xFFFFFFFF
    space["draw"] = _draw
    space["mix"] = _mixer(-7046029254386353131, 32)
    space["mix_too"] = _mixer(-4417276706812531889, 29)
    space["plus"] = lambda a, b: routine.wrapped(a + b)
    return module
