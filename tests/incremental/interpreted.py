"""Generated modules run by Python itself: what they say, without compiling, so that many random plans can be tried.

The few functions that are written in terms of machine words are replaced; all else is the generated text. Integers
are not cut to 64 bits here, so what is not there must not matter: a value that does not fit would raise when stored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

from wpinq.engines.incremental.compiled import runtime

WRAP = 2**64


def _wrapped(value: int) -> int:
    return (int(value) + WRAP // 2) % WRAP - WRAP // 2


def _save(array: Any, at: int, value: int) -> None:
    array[at] = _wrapped(int(value))


def _as_float(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", _wrapped(word)))[0])


def _as_word(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _fits(operation: Callable[[int, int], int]) -> Callable[[int, int], bool]:
    return lambda a, b: _wrapped(operation(int(a), int(b))) == operation(int(a), int(b))


def _mixer(factor: int, shift: int) -> Callable[[int, int], int]:
    # no stand-in by `hash`, for which 3 is 2**61 + 2: what is remembered of a group goes by its mixed words alone
    def mix(h: int, word: int) -> int:
        mixed = _wrapped((h ^ word) * factor)
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


MACHINE: dict[str, Any] = {
    "load": lambda array, at: int(array[at]),
    "save": _save,
    "as_float": _as_float,
    "as_word": _as_word,
    "add_fits": _fits(lambda a, b: a + b),
    "subtract_fits": _fits(lambda a, b: a - b),
    "multiply_fits": _fits(lambda a, b: a * b),
}


def interpret(text: str) -> ModuleType:
    """The module of a generated text, interpreted."""
    start = text.index(runtime.PRELUDE)
    functions = text[start + len(runtime.PRELUDE) :]
    module = ModuleType("interpreted")
    space = module.__dict__
    exec(
        "from math import exp, isfinite\nimport numpy as np\nM32 = 0xFFFFFFFF\nONE = np.uint64(1)\n" + text[:start],
        space,
    )
    space.update(MACHINE, inner=lambda signature: lambda f: f, entry=lambda signature: lambda f: f)
    space["OPTIONS"] = {}
    exec(functions, space)
    for name in [name for name in space if name.startswith("hash_")]:
        space[name] = lambda *words: hash(words) & 0xFFFFFFFF
    space["draw"] = _draw
    space["mix"] = _mixer(-7046029254386353131, 32)
    space["mix_too"] = _mixer(-4417276706812531889, 29)
    space["plus"] = lambda a, b: _wrapped(a + b)
    return module
