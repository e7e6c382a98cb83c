"""Programs and plans: what is asked of a text or a JSON document that may be one."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import wpinq as wp
from tests.fuzz import texts
from tests.fuzz.following import follow
from wpinq.errors import WpinqError
from wpinq.language import parse
from wpinq.plan.format import plan_from_json, plan_to_json

LONGEST_MESSAGE = 3000


def check_program(text: str) -> None:
    """A text is a program, which is what it prints as, or a LanguageError that can be read."""
    try:
        program = parse(text)
    except wp.LanguageError as error:
        assert len(str(error)) < LONGEST_MESSAGE
        assert error.__cause__ is None
        return
    again = parse(str(program))
    assert str(again) == str(program)
    for query in program.queries.values():
        follow(query.plan)
    for release in program.releases.values():
        with contextlib.suppress(WpinqError):
            str(wp.bill([release]))


class AnyDigest(str):
    """A digest that agrees with all: whoever writes a file can compute the right one."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def check_plan(document: Any) -> None:
    """A document is a plan, or a PlanError."""
    if isinstance(document, dict) and "digest" in document:
        document["digest"] = AnyDigest()
    follow(plan_from_json(document))


@cache
def plans() -> list[Any]:
    """Plans of most kinds, as documents."""
    return [plan_to_json(query.plan) for query in parse(texts.SEEDS[0]).queries.values()]
