"""Steps of plans as they were written, for plans that begin alike: what they have in common is compiled once.

What a step adds to a script is a function of the step, of how many read it, of whether it is shared, of what was told
of the weight of tables, and of the steps before. So a program that goes on from remembered steps is, to the letter, the
one that is written from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from wpinq.engines.relational.sql.script import Script, SqlStatement

HELD = 2048
"""How many steps are remembered, those used last."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenStep:
    """What a step added to a script: itself alone, for it stands for all steps before it, too.

    Attributes
    ----------
    gave : object
        The dataset at the step; of the last one, what the output is read by.
    statements : tuple of SqlStatement
        The tables that it makes.
    open : frozenset of str
        The tables whose weights it took as any.
    looked_at : tuple of (str, float or None)
        What it was told of the weight of tables.
    aliases : int
        How many aliases were given out by now.
    """

    gave: Any
    statements: tuple[SqlStatement, ...]
    open: frozenset[str]
    looked_at: tuple[tuple[str, float | None], ...]
    aliases: int


class WrittenSteps:
    """The steps that were written last. What was found of the weight of tables may be in them: see `clear`."""

    def __init__(self) -> None:
        self._held = lru_cache(maxsize=HELD)(_none_yet)

    def clear(self) -> None:
        """Forget all of them."""
        self._held.cache_clear()

    def after(
        self, before: WrittenStep | None, step: Hashable, script: Script, write: Callable[[], object]
    ) -> WrittenStep:
        """What a step adds after the one before: remembered, else written; the script has it then.

        Parameters
        ----------
        before : WrittenStep or None
            The step before, which the script has; None where it has none.
        step : hashable
            All that tells this step from others that may come next.
        script : Script
            What it is added to.
        write : callable
            Adds it.
        """
        known, held = dict(script.equal), self._held(before, step)
        for found in held:
            if all(known.get(table) == weight for table, weight in found.looked_at):
                _go_on(script, found)
                return found
        written = _written(script, write)
        held.append(written)
        return written


def _none_yet(before: WrittenStep | None, step: Hashable) -> list[WrittenStep]:
    return []


def _written(script: Script, write: Callable[[], object]) -> WrittenStep:
    number, opened = len(script.statements), frozenset(script.open)
    script.looked_at = {}
    gave = write()
    return WrittenStep(
        gave,
        tuple(script.statements[number:]),
        frozenset(script.open - opened),
        tuple(script.looked_at.items()),
        script.aliases,
    )


def _go_on(script: Script, step: WrittenStep) -> None:
    script.statements += step.statements
    script.made.update(statement.creates for statement in step.statements)
    script.open |= step.open
    script.aliases = step.aliases
