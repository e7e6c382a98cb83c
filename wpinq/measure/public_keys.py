"""Public keys that are given one by one, checked against the type of a plan's records."""

from __future__ import annotations

from collections.abc import Iterable

from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import UnfitValue, Value, check_canonical, normalize, normalize_all
from wpinq.ingest.typed_columns import plain


def check_domain(keys: Iterable[object], type_: Type, *, canonical: bool = False) -> tuple[Value, ...]:
    """Public keys in canonical form, each once, in the order given.

    Those of a measurement are `canonical`: what stands for dates and the like, and not these themselves.

    Raises
    ------
    PlanError
        When a key is not of the type of the plan's records.
    """
    if isinstance(keys, str):
        raise PlanError(f"the keys {keys!r} are one text: give a list of keys")
    checked: dict[Value, None] = {}
    nullable, check = type_.with_nullable(), check_canonical if canonical else normalize
    keys = list(keys)
    alike = normalize_all(keys, nullable, check)
    if alike is not None:
        return tuple(dict.fromkeys(alike))
    for key in keys:
        try:
            checked[check(plain(key, type_), nullable)] = None
        except UnfitValue as reason:
            raise PlanError(f"the key {key!r} cannot be released: {reason}; keys are of type {type_}") from None
    return tuple(checked)
