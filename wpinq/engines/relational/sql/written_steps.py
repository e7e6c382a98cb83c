"""Steps of plans as they were written, for plans that begin alike: what they have in common is compiled once.

What a step adds to a script is a function of the step, of what the plan says of it, of how many read it, of whether it
is shared, and of the steps before. So a program that goes on from remembered steps is, to the letter, the
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
    aliases : int
        How many aliases were given out by now.
    """

    gave: Any
    statements: tuple[SqlStatement, ...]
    aliases: int


class WrittenSteps:
    """The steps that were written last."""

    def __init__(self) -> None:
        self._held = lru_cache(maxsize=HELD)(_none_yet)

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
        held = self._held(before, step)
        if held:
            _go_on(script, held[0])
        else:
            number = len(script.statements)
            gave = write()
            held.append(WrittenStep(gave, tuple(script.statements[number:]), script.aliases))
        return held[0]


def _none_yet(before: WrittenStep | None, step: Hashable) -> list[WrittenStep]:
    return []


def _go_on(script: Script, step: WrittenStep) -> None:
    script.statements += step.statements
    script.made.update(statement.creates for statement in step.statements)
    script.aliases = step.aliases
